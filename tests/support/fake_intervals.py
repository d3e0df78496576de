"""Intervals without Kafka, for tests of operators."""

from __future__ import annotations

from sluiceway.config.intervals import Interval
from sluiceway.provider.driver.interval_connector import IntervalConnector, Outcome, WantedInterval
from sluiceway.storage.intervals import IntervalEntry, IntervalState, begun


class FakeIntervals:
    """Begins what is wanted, unless ``outcomes`` has something else, and notes the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.wanted: list[WantedInterval] = []
        self.outcomes: list[Outcome] = []
        self.late = 0

    def begin(self, wanted: WantedInterval) -> Outcome:
        self.wanted.append(wanted)
        if self.outcomes:
            return self.outcomes.pop(0)
        made = IntervalConnector.plan(wanted, begun(None, wanted.given(None, None), wanted.run_id, 0), {})
        self.calls.append(("begin", made.name))
        return made

    def end(self, name: str, records: int | None) -> IntervalEntry:
        self.calls.append(("end", name))
        return IntervalEntry(Interval(0, 1), IntervalState.DONE, runs=("r1",), records=records, late=self.late)

    def fail(self, name: str, error: str) -> None:
        self.calls.append(("fail", name))
