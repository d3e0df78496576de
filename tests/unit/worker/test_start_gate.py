"""Tests of the limit of starts, between threads and between processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluiceway.worker.start_gate import StartGate
from support.eventually import LIMIT, eventually

HOLDER = """
import sys
from pathlib import Path
from sluiceway.worker.start_gate import StartGate
slot = StartGate("task", limit=1, hold=600, folder=Path(sys.argv[1])).enter()
print("held", flush=True)
sys.stdin.read()
"""


def gate(folder: Path, limit: int = 1, hold: float = 600, patience: float = 600) -> StartGate:
    return StartGate("task", limit=limit, hold=hold, patience=patience, folder=folder / "starts")


def test_no_more_threads_start_at_once_than_the_limit(tmp_path: Path) -> None:
    shared, lock = gate(tmp_path, limit=2), threading.Lock()
    together, most = 0, 0

    def start(_number: int) -> None:
        nonlocal together, most
        slot = shared.enter()
        assert slot is not None
        with lock:
            together += 1
            most = max(most, together)
        with lock:
            together -= 1
        slot.release()
        slot.release()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(start, range(64)))
    assert 1 <= most <= 2


def test_a_process_waits_for_another_and_starts_when_that_one_ends(tmp_path: Path) -> None:
    (tmp_path / "starts").mkdir()
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "starts")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        shared = gate(tmp_path)
        tries = iter([False, False, True])
        assert shared.enter(lambda: next(tries)) is None
        holder.kill()
    assert shared.enter() is not None


@pytest.mark.parametrize(("hold", "patience"), [(0.05, 600), (600, 0.05)])
def test_a_start_that_takes_long_does_not_keep_others_from_starting(tmp_path: Path, hold: float, patience: float) -> None:
    first, second = (gate(tmp_path, hold=hold, patience=patience) for _ in range(2))
    assert first.enter() is not None
    assert second.enter() is not None
    assert first.enter() is not None


def test_a_thread_gives_up_its_wait(tmp_path: Path) -> None:
    shared, gives_up = gate(tmp_path), threading.Event()
    slot = shared.enter()
    assert slot is not None
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shared.enter, gives_up.is_set)
        gives_up.set()
        assert waiting.result(LIMIT) is None
    slot.release()
    eventually(lambda: shared.enter() is not None, what="a free slot")


def test_without_a_folder_everything_starts(tmp_path: Path) -> None:
    (tmp_path / "starts").write_text("a file")
    assert gate(tmp_path).enter() is not None
