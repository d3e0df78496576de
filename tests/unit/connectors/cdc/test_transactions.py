"""The counts of a transaction's events."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.cdc.transactions import TransactionCounter

_TABLES = st.lists(st.sampled_from(("a.b", "a.c", "d_e.f")), max_size=12)


def _orders(counter: TransactionCounter, tables: list[str]) -> list[tuple[Any, ...]]:
    return [tuple(counter.event(table, "7").values_) for table in tables]


@given(_TABLES, _TABLES)
def test_the_counts_continue_after_a_restart_within_a_transaction(before: list[str], after: list[str]) -> None:
    whole, stopped, restarted = TransactionCounter(), TransactionCounter(), TransactionCounter()
    for each in (whole, stopped):
        each.begin("7")
        _orders(each, before)
    restarted.load(stopped.offset())
    assert restarted.id == "7"
    assert _orders(restarted, after) == _orders(whole, after)
    assert restarted.end_value("7", 1) == whole.end_value("7", 1)


def test_an_event_has_its_place_in_the_transaction_and_among_those_of_its_table() -> None:
    counter = TransactionCounter()
    counter.begin("7")
    assert _orders(counter, ["a.b", "a.c", "a.b"]) == [("7", 1, 1), ("7", 2, 1), ("7", 3, 2)]
    counter.end()
    assert (counter.id, counter.offset()) == (None, {})
