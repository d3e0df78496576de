"""JdbcSink under the keys of Debezium's sink, and its change events."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.debezium.connector import DebeziumJdbcSinkConnector, translated
from sluiceway.connectors.jdbc.debezium.events import Events, FieldFilter
from sluiceway.connectors.jdbc.sink.config import InsertMode, PkMode, SinkOptions
from sluiceway.connectors.jdbc.sink.types import binder_of, column_type
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.discovery import connector_class
from sluiceway.errors import DataError

CONFIG = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "tasks.max": "1",
    "topics": "orders",
    "connection.url": "jdbc:postgresql://127.0.0.1:1/db",
    "connection.username": "postgres",
    "connection.password": "hidden",
    "insert.mode": "upsert",
    "delete.enabled": "true",
    "primary.key.mode": "record_key",
    "schema.evolution": "basic",
    "use.time.zone": "UTC",
    "connection.pool.max_size": "8",
    "hibernate.show_sql": "true",
}
ROW = Schema.struct({"id": INT64_SCHEMA, "name": STRING_SCHEMA}, name="shop.public.orders.Value", optional=True)
SOURCE = Schema.struct({"db": STRING_SCHEMA, "table": STRING_SCHEMA}, name="source")
ENVELOPE = Schema.struct({"before": ROW, "after": ROW, "source": SOURCE, "op": STRING_SCHEMA}, name="shop.public.orders.Envelope")


def event(op: str, before: bool, after: bool, topic: str = "shop.public.orders") -> SinkRecord:
    def row(there: bool) -> Any:
        return Struct(ROW, {"id": 1, "name": "a"}) if there else None

    source = Struct(SOURCE, {"db": "shop", "table": "orders"})
    value = Struct(ENVELOPE, {"before": row(before), "after": row(after), "source": source, "op": op})
    return SinkRecord(topic, 0, 7, value, ENVELOPE)


def test_the_java_class_is_found() -> None:
    assert connector_class(CONFIG["connector.class"]) is DebeziumJdbcSinkConnector


def test_a_config_of_debeziums_says_the_same_to_our_sink() -> None:
    assert not {name: each.errors for name, each in DebeziumJdbcSinkConnector.validate(CONFIG).items() if each.errors}
    options = SinkOptions.of(translated(CONFIG))
    assert (options.insert_mode, options.pk_mode, options.delete_enabled) == (InsertMode.UPSERT, PkMode.RECORD_KEY, True)
    assert (options.auto_create, options.auto_evolve, options.connection.quote) == (True, True, False)
    assert (options.batch_size, options.max_retries, options.backoff) == (500, 5, 1.0)
    assert (options.connection.url.user, options.connection.url.password) == ("postgres", "hidden")
    assert "hidden" not in repr(options)


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"primary.key.mode": "none"}, "primary.key.mode", "insert.mode=upsert needs a primary key"),
        ({"primary.key.mode": "record_header"}, "primary.key.mode", "record_header"),
        ({"primary.key.mode": "record_value"}, "delete.enabled", "needs primary.key.mode=record_key"),
        ({"use.time.zone": "Mars"}, "use.time.zone", "Mars"),
        ({"truncate.enabled": "true"}, "truncate.enabled", "passed over"),
        ({"field.include.list": "a", "field.exclude.list": "b"}, "field.exclude.list", "field.include.list"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_config(changes: dict[str, str], key: str, message: str) -> None:
    found = DebeziumJdbcSinkConnector.validate({**CONFIG, **changes})
    assert message in found[key].errors[0]


def rows(*records: SinkRecord, collection: str = "${topic}", deletes: bool = True, **fields: frozenset[str]) -> list[Any]:
    found = Events(collection, FieldFilter(**fields), deletes=deletes).records(records)
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


def test_an_event_without_a_row_is_left_for_the_sink_to_refuse() -> None:
    broken = event("c", False, False)
    assert list(Events("${topic}", FieldFilter(), deletes=True).records([broken])) == [broken]


def test_a_table_may_be_named_by_the_events_source() -> None:
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
def test_fields_are_chosen_by_name(fields: dict[str, frozenset[str]], left: dict[str, Any]) -> None:
    assert rows(event("c", False, True), **fields)[0][1] == left


NOON = dt.datetime(2024, 5, 6, 12, 0, 0, 123456, dt.timezone.utc).replace(tzinfo=None)
MICROS = 1_714_996_800_123_456


@pytest.mark.parametrize(
    ("name", "type_", "value", "column", "bound"),
    [
        ("io.debezium.time.MicroTimestamp", Type.INT64, MICROS, "TIMESTAMP(6)", NOON),
        ("io.debezium.time.NanoTimestamp", Type.INT64, MICROS * 1000 + 999, "TIMESTAMP(6)", NOON),
        ("io.debezium.time.Timestamp", Type.INT64, MICROS // 1000, "TIMESTAMP(3)", NOON.replace(microsecond=123000)),
        (
            "io.debezium.time.ZonedTimestamp",
            Type.STRING,
            "2024-05-06T12:00:00.123456Z",
            "TIMESTAMP(6) WITH TIME ZONE",
            NOON.replace(tzinfo=dt.timezone.utc),
        ),
        ("io.debezium.time.Date", Type.INT32, -1, "DATE", dt.date(1969, 12, 31)),
        ("io.debezium.time.MicroTime", Type.INT64, 3_600_000_001, "TIME(6)", dt.time(1, 0, 0, 1)),
        ("io.debezium.data.Json", Type.STRING, "{}", "JSON", "{}"),
    ],
)
def test_semantic_types_have_their_columns_and_values(name: str, type_: Type, value: Any, column: str, bound: Any) -> None:
    schema = Schema(type_, name=name)
    assert column_type("postgresql", "f", schema) == column
    binder = binder_of("postgresql", ZoneInfo("Europe/Berlin"), "f", schema)
    assert binder is not None
    assert binder(value) == bound


def test_a_decimal_of_any_scale_keeps_its_digits() -> None:
    schema = Schema.struct({"scale": INT32_SCHEMA, "value": Schema(Type.BYTES)}, name="io.debezium.data.VariableScaleDecimal")
    binder = binder_of("postgresql", ZoneInfo("UTC"), "f", schema)
    assert binder is not None
    assert str(binder(Struct(schema, {"scale": 3, "value": (-12345).to_bytes(4, "big", signed=True)}))) == "-12.345"


def test_a_value_that_is_none_of_its_type_is_a_bad_record() -> None:
    binder = binder_of("mysql", ZoneInfo("UTC"), "at", Schema(Type.INT64, name="io.debezium.time.MicroTime"))
    assert binder is not None
    with pytest.raises(DataError, match="Field at holds 86400000000"):
        binder(86_400_000_000)
