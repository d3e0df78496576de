"""The safe horizon of the source."""

from __future__ import annotations

import datetime as dt

import pytest

from sluiceway.connectors.jdbc.source.horizon import SafeNumbers, WaitLog, safe_time
from sluiceway.connectors.jdbc.source.task import interval_of

UTC = dt.timezone.utc


NOON = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)


def test_a_number_is_safe_once_the_writers_of_its_time_have_ended() -> None:
    numbers = SafeNumbers()
    assert numbers.add(5, frozenset()) == 5
    assert numbers.add(9, frozenset({"a"})) == 5
    assert numbers.oldest == 9
    assert numbers.add(12, frozenset({"a", "b"})) == 5
    assert numbers.add(15, frozenset({"b"})) == 9
    assert numbers.add(16, frozenset({"c"})) == 15
    assert numbers.add(20, frozenset()) == 20
    assert numbers.oldest is None


def test_a_safe_number_does_not_wait() -> None:
    numbers = SafeNumbers()
    assert numbers.add(5, frozenset({"a"})) is None
    assert numbers.add(5, frozenset({"b"})) == 5
    assert numbers.oldest is None


def test_a_long_wait_is_logged_at_doubled_intervals_and_a_new_cause_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    wait = WaitLog(lambda: now[0])
    logged = []
    for moment, cause in ((0.0, 9), (59.0, 9), (61.0, 9), (100.0, 9), (130.0, 9), (200.0, 9), (201.0, 12), (262.0, 12)):
        now[0] = moment
        caplog.clear()
        wait.note(cause, "Rows wait")
        logged += [now[0]] * len(caplog.records)
    assert logged == [61.0, 130.0, 262.0]
    assert [interval_of(5, seconds) for seconds in (None, 0.0, 10.0, 3600.0)] == [5, 0.2, 1.0, 5]


def test_timestamps_are_safe_before_the_oldest_open_transaction_and_its_rounding() -> None:
    earlier, second = NOON - dt.timedelta(seconds=9), dt.timedelta(seconds=1)
    assert safe_time(NOON, None, fraction=6, coarse=False, delay=0) == NOON
    assert safe_time(NOON, earlier, fraction=6, coarse=False, delay=0) == earlier
    assert safe_time(NOON, earlier, fraction=0, coarse=False, delay=0) == earlier - second
    assert safe_time(NOON, None, fraction=6, coarse=True, delay=0) == NOON - second
    assert safe_time(NOON, earlier, fraction=6, coarse=False, delay=60) == NOON - dt.timedelta(seconds=60)
