"""Micro-batches that end at the end of the log, or of the interval of their run."""

from __future__ import annotations

import pytest

from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.testing import MemorySourceContext

_RUN = IntervalRun("c", Interval(1000, 2000), 1).keys()
_MICROS = 2_000_000


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


def _catch_up(config: dict[str, str]) -> CatchUp:
    return CatchUp(config, MemorySourceContext({}), lambda: False)


@pytest.mark.parametrize(
    ("micros", "passes"),
    [(0, False), (_MICROS - 1, False), (_MICROS, True), (_MICROS + 1, True), (4_000_000_000_000_000, False)],
)
def test_the_first_transaction_behind_the_interval_ends_it_unless_it_is_of_the_future(micros: int, passes: bool) -> None:
    catch_up = _catch_up(_RUN)
    assert (catch_up.wanted, catch_up.has_interval) == (True, True)
    assert catch_up.passes(micros) is passes
    assert catch_up.passed is passes
    assert catch_up.passes(0) is passes, "what is behind it is behind the interval too, whatever its time is"


def test_a_run_without_an_interval_passes_nothing() -> None:
    assert not _catch_up({"airflow.mode": "micro-batch"}).passes(_MICROS)
    assert not _catch_up({}).wanted
