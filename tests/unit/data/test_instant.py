from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data.instant import Instant, date_of, millis_of, time_of, timestamp_of

UTC = dt.timezone.utc
DAY = 86_400_000


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_timestamp_round_trips(millis: int) -> None:
    for make in (timestamp_of, date_of, time_of):
        assert millis_of(make(millis)) == millis


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (timestamp_of(0), dt.datetime),
        (timestamp_of(253402300799999), dt.datetime),
        (timestamp_of(253402300800000), Instant),
        (timestamp_of(-62135596800001), Instant),
        (date_of(DAY), dt.date),
        (date_of(DAY + 1), Instant),
        (time_of(DAY - 1), dt.time),
        (time_of(DAY), Instant),
        (time_of(-1), Instant),
    ],
)
def test_an_instant_stands_only_where_pythons_type_cannot(value: Any, kind: type) -> None:
    assert type(value) is kind


def test_a_moment_in_any_zone_is_the_same() -> None:
    assert millis_of(dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))) == 0
    assert millis_of(dt.datetime(1970, 1, 1, 0, 0, 0, 5999)) == 5  # noqa: DTZ001 (naive: taken as UTC)


def test_other_values_have_no_milliseconds() -> None:
    with pytest.raises(TypeError, match="int is not a date, time or timestamp"):
        millis_of(5)


def test_instants_compare_hash_pickle_and_print() -> None:
    far = Instant(2**62)
    assert far > Instant(0)
    assert {far: 1}[Instant(2**62)] == 1
    assert pickle.loads(pickle.dumps(far)) == far  # noqa: S301
    assert str(Instant(253402300800000)) == "Sat Jan 01 00:00:00 UTC 10000"
    with pytest.raises(AttributeError):
        far.millis = 1
