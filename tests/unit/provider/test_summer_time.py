"""Intervals of timetables over both changes of summer time: no record is in two of them, none is between two."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from airflow.timetables.base import DagRunInfo, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import instance

from sluiceway.config.intervals import Interval
from sluiceway.provider.driver.interval_connector import WantedInterval
from sluiceway.provider.driver.run_variables import run_variables
from sluiceway.storage.intervals import Ledger

_BERLIN = ZoneInfo("Europe/Berlin")
_HOUR = 3_600_000


def _intervals(cron: str, first: datetime, last: datetime) -> list[Interval]:
    """Return the intervals that exact runs of a DAG move between two times."""
    timetable = CronDataIntervalTimetable(cron, timezone="Europe/Berlin")
    restriction = TimeRestriction(earliest=instance(first), latest=instance(last), catchup=True)
    found: list[Interval] = []
    info: DagRunInfo | None = None
    while True:
        before = None if info is None else info.data_interval
        info = timetable.next_dagrun_info(last_automated_data_interval=before, restriction=restriction)
        if info is None:
            return found
        own = info.data_interval
        assert own is not None
        run = SimpleNamespace(data_interval_start=own.start, data_interval_end=own.end, run_id="r", logical_date=own.start)
        wanted = WantedInterval.of("c", {"topics": "t"}, run_variables({"dag_run": run}))
        interval = wanted.given(Ledger())
        assert isinstance(interval, Interval)
        found.append(interval)


@pytest.mark.parametrize(
    ("day", "hours"), [(datetime(2026, 3, 29, tzinfo=_BERLIN), 23), (datetime(2026, 10, 25, tzinfo=_BERLIN), 25)]
)
@pytest.mark.parametrize("cron", ["0 * * * *", "*/15 * * * *", "30 2 * * *", "0 0 * * *", "15 1-3 * * *"])
def test_intervals_follow_each_other_without_a_gap(cron: str, day: datetime, hours: int) -> None:
    found = _intervals(cron, day.replace(day=day.day - 2), day.replace(day=day.day + 2))
    assert found
    for before, after in pairwise(found):
        assert before.start < before.end == after.start, f"{before} and {after}"
    if cron == "0 * * * *":
        midnight, next_midnight = (int(each.timestamp() * 1000) for each in (day, day.replace(day=day.day + 1)))
        inside = [each for each in found if midnight <= each.start < next_midnight]
        assert [each.end - each.start for each in inside] == [_HOUR] * hours
