from __future__ import annotations

import struct
from typing import Any

import pytest

from sluiceway.java_plugins.errors import JavaProcessError
from sluiceway.java_plugins.source_task import Acknowledgements, StopWatch


def places(data: bytes) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("<qq", data))


def test_ranges_are_taken_in_order_once_they_are_complete() -> None:
    made = Acknowledgements()
    made.expect(1, 0, 2)
    made.expect(1, 2, 2)
    made.expect(2, 0, 1)
    made.add(2, 0, 0, 12)
    made.add(1, 1, 3, 11)
    assert made.take() == ([], b"")
    made.add(1, 0, -1, -1)
    ranges, data = made.take()
    assert ranges == [(1, 0, 2), (2, 0, 1)]
    assert places(data) == [(-1, -1), (3, 11), (0, 12)]
    assert made.take() == ([], b"")


class _Task:
    """Stands for a Java object and its host."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.host: Any = self

    def interrupt(self) -> None:
        self.calls.append("interrupt")

    def kill(self) -> None:
        self.calls.append("kill")


def test_a_late_call_is_interrupted_once_and_then_its_process_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    now, task = [100.0], _Task()
    monkeypatch.setattr("sluiceway.java_plugins.source_task.time.monotonic", lambda: now[0])
    commands = iter([False, True])
    watch = StopWatch(lambda: next(commands), 10)
    for seconds in (0, 50, 52, 53.1, 57, 57.9):
        now[0] = 100.0 + seconds
        watch(task, "poll()")  # type: ignore[arg-type]
    assert task.calls == ["interrupt"]
    now[0] = 158.1
    with pytest.raises(JavaProcessError, match=r"poll\(\) of the task did not return within 8.1 s"):
        watch(task, "poll()")  # type: ignore[arg-type]
    assert task.calls == ["interrupt", "kill"]
