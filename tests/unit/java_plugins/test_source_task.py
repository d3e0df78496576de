from __future__ import annotations

from typing import Any

import pytest

from sluiceway.java_plugins.errors import JavaProcessError
from sluiceway.java_plugins.source_task import StopWatch


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
