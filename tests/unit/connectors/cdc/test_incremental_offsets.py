"""The progress of incremental snapshots in source offsets."""

from __future__ import annotations

import json

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental_offsets import Request, loaded, stored
from sluiceway.java.object_arrays import dump_array

_TABLE = TableId("public", "t")


def test_progress_is_debeziums() -> None:
    request = Request(_TABLE, "s1", "a > 1", kinds=("Integer",), sent=["4"], maximum=["20"])
    assert stored([request]) == {
        "incremental_snapshot_primary_key": dump_array([("Integer", 4)]).hex(),
        "incremental_snapshot_maximum_key": dump_array([("Integer", 20)]).hex(),
        "incremental_snapshot_collections": '[{"incremental_snapshot_collections_id":"public.t",'
        '"incremental_snapshot_collections_additional_condition":"a > 1",'
        '"incremental_snapshot_collections_surrogate_key":null}]',
        "incremental_snapshot_correlation_id": "s1",
    }
    assert stored([]) == {}


def test_progress_of_debezium_continues() -> None:
    collections = [
        {
            "incremental_snapshot_collections_id": name,
            "incremental_snapshot_collections_additional_condition": None,
            "incremental_snapshot_collections_surrogate_key": key,
        }
        for name, key in (("public.t", None), ("db.public.u", "b"))
    ]
    offset = {
        "incremental_snapshot_primary_key": dump_array([("Long", 4), ("String", "x")]).hex(),
        "incremental_snapshot_maximum_key": dump_array([("Long", 20), ("String", "y")]).hex(),
        "incremental_snapshot_collections": json.dumps(collections),
        "incremental_snapshot_correlation_id": "s1",
    }
    assert loaded(offset) == [
        Request(_TABLE, "s1", after=["4", "x"], sent=["4", "x"], maximum=["20", "y"]),
        Request(TableId("public", "u"), "s1", surrogate="b"),
    ]


def test_ranges_of_further_entries_are_kept() -> None:
    requests = [
        Request(_TABLE, "s1"),
        Request(TableId("public", "u"), "s1", kinds=("UUID",), sent=["01234567-89ab-cdef-f123-456789abcdef"]),
        Request(TableId("public", "v"), "s1", kinds=("bytes",), maximum=[b"\1"]),
    ]
    again = loaded(stored(requests))
    assert [(each.after, each.sent, each.maximum) for each in again] == [
        (None, None, None),
        (requests[1].sent, requests[1].sent, None),
        (None, None, [b"\1"]),
    ]


@pytest.mark.parametrize(
    "requests",
    [
        [Request(_TABLE, "initial-snapshot"), Request(TableId("public", "u"), "s1"), Request(TableId("public", "v"), "s2")],
        [Request(TableId("public", "a.b"), "s1"), Request(TableId("s.t", 'q"'), "s1", "a > 1", "b")],
    ],
)
def test_each_request_keeps_its_signal_and_its_table(requests: list[Request]) -> None:
    assert loaded(stored(requests)) == requests


def test_a_key_of_an_unknown_class_starts_the_table_again() -> None:
    offset = stored([Request(_TABLE, "s1", kinds=("Integer",), sent=["4"], maximum=["20"])])
    offset["incremental_snapshot_primary_key"] = "aced0005"
    assert loaded(offset) == [Request(_TABLE, "s1")]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("Integer", "-2147483648"),
        ("Integer", "4294967295"),
        ("Long", "18446744073709551615"),
        ("BigDecimal", "NaN"),
        ("BigDecimal", "Infinity"),
        ("BigDecimal", "-1234567890123456789012345678901234567890.12345678901234567890"),
        ("Float", "Infinity"),
        ("Date", "0044-03-15 BC"),
        ("Timestamp", "infinity"),
        ("Integer", "no number"),
        ("Integer", None),
    ],
)
def test_a_value_that_its_class_cannot_hold_is_kept_in_another(kind: str, value: str | None) -> None:
    again = loaded(stored([Request(_TABLE, "s1", kinds=(kind,), sent=[value], maximum=[value])]))
    assert [(each.sent, each.maximum) for each in again] in ([([value], [value])], [(["inf"], ["inf"])])
