"""Rows between two keys, with nulls and several columns, are those that the order of the database has between them."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.cdc.key_order import KeyColumn, KeyOrder, where

_VALUES = (None, 1, 2, 3)
_KEYS = [*itertools.product(_VALUES, _VALUES)]


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table t (a, b)")
        connection.executemany("insert into t values (?, ?)", _KEYS)
        yield connection


def _order(*, nulls_first: bool) -> KeyOrder:
    columns = [KeyColumn(name, name, lambda operator, value, name=name: f"{name} {operator} {value}", True) for name in "ab"]
    return KeyOrder(tuple(columns), nulls_first)


def _place(key: tuple[int | None, ...], *, nulls_first: bool) -> list[tuple[bool, int]]:
    return [((value is None) != nulls_first, value or 0) for value in key]


_BOUND = st.none() | st.sampled_from([*_KEYS, *((value,) for value in _VALUES)])


@given(nulls_first=st.booleans(), after=_BOUND, last=_BOUND)
def test_conditions_hold_for_the_rows_between_two_keys(
    database: sqlite3.Connection, nulls_first: bool, after: tuple[int | None, ...] | None, last: tuple[int | None, ...] | None
) -> None:
    def place(key: tuple[int | None, ...], bound: tuple[int | None, ...]) -> list[tuple[bool, int]]:
        return _place(key[: len(bound)], nulls_first=nulls_first)

    expected = {
        key
        for key in _KEYS
        if (after is None or place(key, after) > _place(after, nulls_first=nulls_first))
        and (last is None or place(key, last) <= _place(last, nulls_first=nulls_first))
    }
    found = database.execute(f"select a, b from t{where(_order(nulls_first=nulls_first).between(after, last))}")  # noqa: S608
    assert set(found) == expected
