"""Micro-batches that end at the end of the log."""

from __future__ import annotations

from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.testing import MemorySourceContext


class _Log:
    """A log that pauses before each record, and grows while it is read."""

    def __init__(self, end: int) -> None:
        self.position, self._end, self._pauses = 0, end, 0

    def poll(self) -> list[object] | None:
        self._pauses += 1
        if self._pauses % 3:
            return None
        self.position += 1
        return [self.position]

    def reached(self) -> bool:
        return self.position >= self._end


def _poll(log: _Log, mode: str) -> list[object]:
    found: list[object] = []
    task = CatchUp({"airflow.mode": mode}, MemorySourceContext(), log.reached)
    while polled := task.poll(log.poll):
        found += polled
    return found


def test_a_micro_batch_outlasts_pauses_and_ends_at_the_first_end() -> None:
    log = _Log(3)
    assert len(_poll(log, "micro-batch")) == 3
    assert log.position == 3


def test_a_long_running_task_polls_as_it_is_asked() -> None:
    assert _poll(_Log(3), "long-running") == []
