"""What a config names and does not exist: a long-running task shows that it waits, and a micro-batch fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sluiceway.kafka import clients
from sluiceway.runtime.source import record_sender
from support.engine import RunningTask
from support.engine_connectors import SINK, script
from unit.runtime.fake_clients import FakeProducer
from unit.runtime.fake_consumer import FakeConsumer

WORKER = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
MISSING = {
    "file": ({"connector.class": "FileStreamSource", "topic": "t", "file": "nothing.txt"}, "Couldn't find file nothing.txt"),
    "folder": ({"connector.class": "FileStreamSource", "topic": "t", "file": "."}, ". is a directory, not a file"),
    "topic": ({"connector.class": SINK, "topics": "tt"}, "Topic tt does not exist."),
    "one of two topics": ({"connector.class": SINK, "topics": "t,tt"}, "Topic tt does not exist."),
}


@pytest.fixture(autouse=True)
def clients_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clients, "consumer", FakeConsumer)
    monkeypatch.setattr(record_sender, "producer", FakeProducer)
    monkeypatch.chdir(tmp_path)
    script("c")


@pytest.mark.parametrize(("config", "reason"), MISSING.values(), ids=MISSING)
def test_a_micro_batch_fails_with_what_is_missing(config: Mapping[str, str], reason: str) -> None:
    with RunningTask({"name": "c", **config}, WORKER, bounded=True) as task:
        trace = task.join().trace or ""
    assert trace.startswith(
        "sluiceway.errors.ConnectError: The micro-batch has ended, but not all that the config names exists. "
    )
    assert reason in trace.splitlines()[0]
