"""The preview's process: what connector code does to it does not reach the server."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError
from sluiceway.preview import launcher
from sluiceway.preview.answer import Answer
from sluiceway.preview.request import Limits, PreviewRequest
from support.eventually import LIMIT
from support.preview_connectors import SOURCE

WORKER = WorkerConfig.of({"bootstrap.servers": "localhost:1", "value.converter": "StringConverter"})


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert not [each for each in psutil.Process(os.getpid()).children(recursive=True) if _is_preview(each)]


def _is_preview(process: psutil.Process) -> bool:
    try:
        return "sluiceway.preview.process" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it has ended; a zombie too, which another test of this worker may have left
        return False


def answered(seconds: float = LIMIT, **config: str) -> Answer:
    answer = Answer()
    full = {"name": "odd", "connector.class": SOURCE, **config}
    launcher.run_preview(PreviewRequest(full, WORKER, None, Limits(20, seconds)), answer)
    return answer


def test_a_crash_is_told_with_the_records_before_it_and_prints_do_not_disturb() -> None:
    answer = answered(behavior="print and crash")
    assert len(answer.records) == 5
    assert answer.error is not None
    assert answer.error["message"] == "The preview's process ended by signal 11 in OddSourceTask.poll() of task 0."
    assert "not JSON" in answer.error["trace"]


def test_a_call_that_never_returns_is_ended_at_the_limit() -> None:
    answer = answered(1.0, behavior="hang")
    assert [record["before"]["value"]["data"] for record in answer.records] == ["n1", "n2", "n3", "n4", "n5"]
    assert answer.note == "The preview was ended after 1 s, in OddSourceTask.poll() of task 0."


def test_a_process_that_does_not_start_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 3600\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    monkeypatch.setattr(launcher, "_START_SECONDS", 0.2)
    assert answered().note == "The preview was ended after 0.2 s, in the start of its process."


def test_an_endless_answer_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec cat /dev/zero\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    monkeypatch.setattr(launcher, "_LARGEST_ANSWER", 1 << 20)
    assert answered().note == "The preview was ended, because its records are too large. Ask for fewer."


def test_too_many_previews_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_TURN_SECONDS", 0.0)
    monkeypatch.setattr(launcher, "_turns", threading.BoundedSemaphore(1))
    assert launcher._turns.acquire()
    with pytest.raises(ConflictError, match="previews run already"):
        answered()
