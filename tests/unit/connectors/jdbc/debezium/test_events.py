"""Debezium's change events."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.debezium.events import Events, FieldFilter
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct

ROW = Schema.struct({"id": INT64_SCHEMA, "name": STRING_SCHEMA}, name="shop.public.orders.Value", optional=True)


SOURCE = Schema.struct({"db": STRING_SCHEMA, "table": STRING_SCHEMA}, name="source")


ENVELOPE = Schema.struct({"before": ROW, "after": ROW, "source": SOURCE, "op": STRING_SCHEMA}, name="shop.public.orders.Envelope")


def event(op: str, before: bool, after: bool, topic: str = "shop.public.orders") -> SinkRecord:
    def row(there: bool) -> Any:
        return Struct(ROW, {"id": 1, "name": "a"}) if there else None

    source = Struct(SOURCE, {"db": "shop", "table": "orders"})
    value = Struct(ENVELOPE, {"before": row(before), "after": row(after), "source": source, "op": op})
    return SinkRecord(topic, 0, 7, value, ENVELOPE)


def rows(
    *records: SinkRecord, collection: str = "${topic}", deletes: bool = True, fields: FieldFilter | None = None
) -> list[Any]:
    found = Events(collection, fields or FieldFilter(), deletes=deletes).records(records)
    return [(each.topic, None if each.value is None else dict(each.value), each.original_topic) for each in found]


ORDERS = "shop_public_orders"


@pytest.mark.parametrize(
    ("record", "deletes", "expected"),
    [
        (event("c", False, True), True, [(ORDERS, {"id": 1, "name": "a"}, "shop.public.orders")]),
        (event("u", True, True), False, [(ORDERS, {"id": 1, "name": "a"}, "shop.public.orders")]),
        (event("d", True, False), True, [(ORDERS, None, "shop.public.orders")]),
        (event("d", True, False), False, []),
        (event("t", False, False), True, []),
        (SinkRecord("a", 0, 0, None), True, [("a", None, "a")]),
        (SinkRecord("a", 0, 0, None), False, []),
    ],
)
def test_an_event_becomes_the_row_after_it(record: SinkRecord, deletes: bool, expected: list[Any]) -> None:
    assert rows(record, deletes=deletes) == expected


def test_an_event_without_a_row_is_passed_on_for_the_sink_to_refuse() -> None:
    broken = event("c", False, False)
    assert list(Events("${topic}", FieldFilter(), deletes=True).records([broken])) == [broken]


def test_the_table_name_may_come_from_the_events_source() -> None:
    assert rows(event("r", False, True), collection="${source.db}.t_${source.table}")[0][0] == "shop.t_orders"
    assert rows(SinkRecord("a", 0, 0, None), collection="${source.db}") == []


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"included": frozenset({"shop.public.orders:id"})}, {"id": 1}),
        ({"excluded": frozenset({"name", "other"})}, {"id": 1}),
        ({"included": frozenset({"name"})}, {"name": "a"}),
        ({"excluded": frozenset({"elsewhere:id"})}, {"id": 1, "name": "a"}),
    ],
)
def test_fields_are_selected_by_name(fields: dict[str, frozenset[str]], left: dict[str, Any]) -> None:
    assert rows(event("c", False, True), fields=FieldFilter(**fields))[0][1] == left
