from __future__ import annotations

import datetime as dt
import functools
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from sluiceway.api import SinkRecord
from sluiceway.config.definition import ConfigValue
from sluiceway.connectors.jdbc.sink.columns import Layout, layout_of
from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.connectors.jdbc.sink.types import binder_of, column_definition, column_type
from sluiceway.data import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Instant,
    Schema,
    Struct,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from sluiceway.errors import ConfigError, ConnectError, DataError

URL = {"connection.url": "jdbc:sqlite:people.db"}
KEY = Schema.struct({"id": INT64_SCHEMA, "region": STRING_SCHEMA})
VALUE = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA, "level": Schema(Type.INT32, optional=True, default=3)})
PRECISE = decimal_schema(2).replace(parameters={"scale": "2", "connect.decimal.precision": "10"})
UTC = ZoneInfo("UTC")


def options(**config: str) -> SinkOptions:
    return SinkOptions.of({**URL, **{key.replace("_", "."): value for key, value in config.items()}})


def layout(key: Schema | None = KEY, value: Schema | None = VALUE, *, tombstone: bool = False, **config: str) -> Layout:
    return layout_of(options(**config), functools.partial(binder_of, "postgresql", UTC), key, value, tombstone=tombstone)


RECORD = SinkRecord(
    "people", 2, 41, Struct(VALUE, {"id": 1, "name": "Ann"}), VALUE, Struct(KEY, {"id": 9, "region": "eu"}), KEY
).new_record(topic="renamed")


@pytest.mark.parametrize(
    ("config", "names", "keys", "row"),
    [
        ({"pk_mode": "none"}, ("id", "name", "level"), 0, (1, "Ann", 3)),
        ({"pk_mode": "record_key"}, ("id", "region", "name", "level"), 2, (9, "eu", "Ann", 3)),
        ({"pk_mode": "record_key", "pk_fields": "region"}, ("region", "id", "name", "level"), 1, ("eu", 1, "Ann", 3)),
        ({"pk_mode": "record_value", "pk_fields": "name,id"}, ("name", "id", "level"), 2, ("Ann", 1, 3)),
        ({"pk_mode": "record_value", "pk_fields": "id", "fields_whitelist": "name"}, ("id", "name"), 1, (1, "Ann")),
        ({"pk_mode": "kafka", "pk_fields": "t,p,o", "fields_whitelist": "id"}, ("t", "p", "o", "id"), 3, ("people", 2, 41, 1)),
    ],
)
def test_columns_by_where_the_key_is(config: dict[str, str], names: tuple[str, ...], keys: int, row: tuple[object, ...]) -> None:
    made = layout(**config)
    assert (made.names, made.keys, made.row(RECORD)) == (names, keys, row)
    assert made.key(RECORD) == row[:keys]


def test_a_single_value_is_the_key_under_the_name_that_is_given() -> None:
    made = layout(STRING_SCHEMA, pk_mode="record_key", pk_fields="code")
    assert made.row(RECORD.new_record(key="k", key_schema=STRING_SCHEMA)) == ("k", 1, "Ann", 3)


def test_tombstones_have_only_their_key() -> None:
    made = layout(value=None, tombstone=True, pk_mode="record_key")
    assert made.names == ("id", "region")
    assert made.key(RECORD.new_record(value=None, value_schema=None)) == (9, "eu")


@pytest.mark.parametrize(
    ("key", "value", "config", "message"),
    [
        (None, VALUE, {"pk_mode": "record_key"}, "the record's key has none"),
        (Schema.array(STRING_SCHEMA), VALUE, {"pk_mode": "record_key"}, "not ARRAY"),
        (KEY, None, {}, "no schema"),
        (KEY, STRING_SCHEMA, {}, "type STRING"),
        (KEY, VALUE, {"pk_mode": "record_value", "pk_fields": "nothing"}, "nothing, which the record's value has not; it"),
        (KEY, VALUE, {"fields_whitelist": "nothing"}, "no fields that become columns"),
        (KEY, Schema.struct({"in": VALUE}), {}, "Field in is of type STRUCT.*Flatten"),
        (KEY, Schema.struct({"in": Schema.array(Schema.map(STRING_SCHEMA, STRING_SCHEMA))}), {}, "array of MAP"),
    ],
)
def test_records_that_cannot_be_rows_say_why(
    key: Schema | None, value: Schema | None, config: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        layout(key, value, **config)


def test_a_single_value_without_a_name_is_the_configs_mistake() -> None:
    with pytest.raises(ConnectError, match=r"pk\.fields has to name one column") as raised:
        layout(STRING_SCHEMA, pk_mode="record_key")
    assert not isinstance(raised.value, DataError)


def test_a_struct_that_is_missing_is_the_records_mistake() -> None:
    with pytest.raises(DataError, match="has no key"):
        layout(pk_mode="record_key").row(RECORD.new_record(key=None))


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({"insert.mode": "upsert"}, "pk.mode", "needs a primary key"),
        ({"insert.mode": "update", "pk.mode": "none"}, "pk.mode", "needs a primary key"),
        ({"delete.enabled": "true", "pk.mode": "kafka"}, "delete.enabled", "record_key"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.fields", "three columns"),
        ({"table.types": "INDEX"}, "table.types", "TABLE, VIEW"),
    ],
)
def test_keys_that_do_not_go_together_are_found(config: dict[str, str], key: str, message: str) -> None:
    [error] = JdbcSinkConnector.validate({**URL, **config})[key].errors
    assert message in error
    with pytest.raises(ConfigError, match=message):
        SinkOptions.of({**URL, **config})


def test_a_password_shows_in_no_text() -> None:
    made = options(connection_url="jdbc:postgresql://db/people", connection_user="me", connection_password="hush")
    assert "hush" not in repr(made)
    assert made.connection.url.password == "hush"


def test_the_defaults_are_the_usual_ones() -> None:
    shown: dict[str, ConfigValue] = {key.name: key.shown_default for key in JdbcSinkConnector.config_def()}
    expected = {
        "insert.mode": "insert",
        "batch.size": "3000",
        "delete.enabled": "false",
        "table.types": "TABLE",
        "table.name.format": "${topic}",
        "pk.mode": "none",
        "pk.fields": "",
        "fields.whitelist": "",
        "db.timezone": "UTC",
        "auto.create": "false",
        "auto.evolve": "false",
        "quote.sql.identifiers": "always",
        "max.retries": "10",
        "retry.backoff.ms": "3000",
        "connection.attempts": "3",
        "connection.backoff.ms": "10000",
    }
    assert {name: shown[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("dialect", "schema", "key", "expected"),
    [
        ("postgresql", decimal_schema(2), False, "NUMERIC"),
        ("postgresql", PRECISE, False, "NUMERIC(10,2)"),
        ("mysql", decimal_schema(2), False, "DECIMAL(65,2)"),
        ("mysql", decimal_schema(40), False, "DECIMAL(65,30)"),
        ("mysql", STRING_SCHEMA, False, "LONGTEXT"),
        ("mysql", STRING_SCHEMA, True, "VARCHAR(255)"),
        ("postgresql", Schema.array(INT32_SCHEMA), False, "INTEGER[]"),
        ("sqlite", timestamp_schema(), False, "TIMESTAMP"),
    ],
)
def test_column_types(dialect: str, schema: Schema, key: bool, expected: str) -> None:
    assert column_type(dialect, "x", schema, key=key) == expected


@pytest.mark.parametrize(
    ("dialect", "schema", "expected"),
    [
        ("postgresql", Schema(Type.INT32, optional=True), "INTEGER NULL"),
        ("postgresql", Schema(Type.STRING, default="it's"), "TEXT DEFAULT 'it''s' NOT NULL"),
        ("mysql", Schema(Type.STRING, default="a"), "LONGTEXT DEFAULT ('a') NOT NULL"),
        ("mysql", Schema(Type.STRING, default="a\\' or 1"), "LONGTEXT NOT NULL"),
        ("sqlite", Schema(Type.BOOLEAN, default=True), "BOOLEAN DEFAULT TRUE NOT NULL"),
        ("postgresql", Schema(Type.FLOAT64, default=float("nan")), "DOUBLE PRECISION NOT NULL"),
    ],
)
def test_column_definitions(dialect: str, schema: Schema, expected: str) -> None:
    assert column_definition(dialect, "x", schema) == expected


MOMENT = dt.datetime(2024, 7, 1, 22, 30, 0, 5000, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize(
    ("dialect", "zone", "schema", "value", "expected"),
    [
        ("postgresql", "UTC", timestamp_schema(), MOMENT, MOMENT.replace(tzinfo=None)),
        ("mysql", "Europe/Berlin", timestamp_schema(), MOMENT, dt.datetime(2024, 7, 2, 0, 30, 0, 5000)),  # noqa: DTZ001
        ("sqlite", "UTC", timestamp_schema(), MOMENT, "2024-07-01 22:30:00.005"),
        ("sqlite", "UTC", date_schema(), dt.date(2024, 1, 2), "2024-01-02"),
        ("sqlite", "UTC", time_schema(), dt.time(1, 2, 3), "01:02:03.000"),
        ("sqlite", "UTC", decimal_schema(1), Decimal("1.5"), "1.5"),
        ("postgresql", "UTC", date_schema(), dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc), dt.date(2024, 1, 2)),
        ("postgresql", "UTC", Schema.array(date_schema()), [dt.date(2024, 1, 2), None], [dt.date(2024, 1, 2), None]),
    ],
)
def test_values_become_the_drivers(dialect: str, zone: str, schema: Schema, value: object, expected: object) -> None:
    binder = binder_of(dialect, ZoneInfo(zone), "x", schema)
    assert binder is not None
    assert binder(value) == expected


@pytest.mark.parametrize("schema", [date_schema(), time_schema(), timestamp_schema()])
def test_moments_beyond_the_calendar_are_refused(schema: Schema) -> None:
    binder = binder_of("postgresql", UTC, "born", schema)
    assert binder is not None
    with pytest.raises(DataError, match="Field born holds"):
        binder(Instant(10**15))
