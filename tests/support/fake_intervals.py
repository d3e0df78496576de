"""Intervals without Kafka, for tests of operators."""

from __future__ import annotations

from sluiceway.config.intervals import Interval
from sluiceway.errors import ConnectError
from sluiceway.provider.driver.interval_connector import IntervalConnector, Outcome, WantedInterval
from sluiceway.storage.intervals import IntervalEntry, IntervalState, Ledger, begun, introduced


class FakeIntervals:
    """Begins what is wanted, unless ``outcomes`` has something else, and notes the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.wanted: list[WantedInterval] = []
        self.outcomes: list[Outcome] = []
        self.late = 0
        self.incomplete = ""

    def begin(self, wanted: WantedInterval) -> Outcome:
        self.wanted.append(wanted)
        if self.outcomes:
            return self.outcomes.pop(0)
        interval = wanted.given(Ledger())
        assert isinstance(interval, Interval)
        entry = introduced(Ledger(), interval, wanted.rerun_within)
        made = IntervalConnector.plan(wanted, begun(entry, interval, wanted.run_id, 0, {}), {})
        self.calls.append(("begin", made.name))
        return made

    def moves(self, name: str, run_id: str) -> bool:
        return ("begin", name) in self.calls

    def leave(self, name: str) -> None:
        self.calls.append(("leave", name))

    def end(self, name: str, records: int | None) -> IntervalEntry:
        if self.incomplete:
            raise ConnectError(self.incomplete)
        self.calls.append(("end", name))
        return IntervalEntry(Interval(0, 1), IntervalState.DONE, runs=("r1",), records=records, late=self.late)

    def fail(self, name: str, error: str) -> None:
        self.calls.append(("fail", name))
