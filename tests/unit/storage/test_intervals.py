"""The ledger of intervals: what is written is read back, and old intervals are forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import Interval
from sluiceway.errors import DataError
from sluiceway.storage.codec import encode_offset
from sluiceway.storage.intervals import (
    IntervalEntry,
    IntervalState,
    Ledger,
    begun,
    closing_update,
    forgotten,
    introduced,
    ledger_name,
)

_PLACE = TopicPartition("t", 3)


def _ledger(*updates: tuple[Any, Any]) -> Ledger:
    return Ledger.of([(key, value) for key, value in updates if value is not None])


def _entry(start: int, **more: Any) -> IntervalEntry:
    return IntervalEntry(Interval(start, start + 10), IntervalState.DONE, **more)


def test_a_ledger_is_read_back() -> None:
    entry = _entry(
        0,
        attempt=2,
        starts={_PLACE: 5},
        ends={_PLACE: 9},
        runs=("a", "b"),
        records=4,
        late=1,
        at_least=True,
        error="why",
        updated=7,
    )
    found = _ledger(entry.update(), closing_update(10, {_PLACE: 9}))
    assert found == Ledger({0: entry}, {10: {_PLACE: 9}})
    assert found.last == entry
    assert Ledger().last is None


def test_a_record_of_the_ledger_has_the_form_of_an_offset() -> None:
    key, value = encode_offset(ledger_name("orders"), *_entry(0, ends={_PLACE: 9}).update())
    assert key == b'["orders\\u001Fintervals",{"start":0}]'
    assert value is not None


@pytest.mark.parametrize(
    "update", [({"start": 0}, {"end": 1}), ({"closed": 0}, {}), ({"closed": 0}, {"positions": "{"}), ({}, {})]
)
def test_a_record_that_cannot_be_read_is_an_error(update: tuple[Any, Any]) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        _ledger(update)


def test_two_intervals_that_start_at_the_same_time_are_refused() -> None:
    with pytest.raises(DataError, match="starts at the same time"):
        begun(_entry(0), Interval(0, 20), "r", 1, {})


def test_old_intervals_are_forgotten_with_their_closings() -> None:
    entries = {start: _entry(start) for start in (0, 10, 20, 30)}
    known = Ledger(entries, {boundary: {_PLACE: boundary} for boundary in (0, 10, 20, 30, 40)})
    assert forgotten(known, 4) == []
    gone = forgotten(known, 2)
    assert gone == [({"start": 0}, None), ({"start": 10}, None), ({"closed": 0}, None), ({"closed": 10}, None)]


def test_late_records_are_left_only_to_intervals_that_can_be_moved_again() -> None:
    def entry(start: int, number: int, column: str | None) -> IntervalEntry:
        return replace(_entry(start), number=number, column=column)

    known = Ledger({0: entry(0, 1, "hour"), 10: entry(10, 2, None), 20: entry(20, 3, "hour"), 30: entry(30, 4, "hour")})
    assert introduced(known, Interval(40, 50), 100, "hour").leaves_from == 20, "interval 10 has no column to replace its rows by"
    new = introduced(known, Interval(40, 50), 15, "hour")
    assert (new.number, new.leaves_from) == (5, 25)
    assert Ledger(known.entries).left_by(new) == [Interval(30, 40)]
    assert introduced(known, Interval(40, 50), 100, "other").leaves_from == 40
    assert introduced(known, Interval(40, 50), None, "hour").leaves_from is None
    assert introduced(Ledger({}), Interval(40, 50), 100).leaves_from == -60
    assert introduced(known, Interval(20, 30), 5, "hour") == known.entries[20]


def test_only_intervals_that_late_records_wait_for_are_read_from_a_ledger_if_asked() -> None:
    late = replace(_entry(10), rerun=2)
    stored = [_entry(0).update(), late.update(), closing_update(0, {}), ({"start": 20}, {"end": "not read"})]
    assert Ledger.waiting((key, value) for key, value in stored if value is not None) == [late]
