"""Columns and values of records."""

from __future__ import annotations

import functools
from zoneinfo import ZoneInfo

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.sink.columns import Layout, layout_of
from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.types import binder_of
from sluiceway.data import (
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    Type,
    decimal_schema,
)
from sluiceway.errors import ConnectError, DataError

URL = {"connection.url": "jdbc:sqlite:people.db"}


KEY = Schema.struct({"id": INT64_SCHEMA, "region": STRING_SCHEMA})


VALUE = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA, "level": Schema(Type.INT32, optional=True, default=3)})


PRECISE = decimal_schema(2).replace(parameters={"scale": "2", "connect.decimal.precision": "10"})


UTC = ZoneInfo("UTC")


def options(**config: str) -> SinkOptions:
    return SinkOptions.of({**URL, **{key.replace("_", "."): value for key, value in config.items()}})


def layout(key: Schema | None = KEY, value: Schema | None = VALUE, *, tombstone: bool = False, **config: str) -> Layout:
    return layout_with(config, key, value, tombstone=tombstone)


def layout_with(
    config: dict[str, str], key: Schema | None = KEY, value: Schema | None = VALUE, *, tombstone: bool = False
) -> Layout:
    return layout_of(
        options(**config), functools.partial(binder_of, dialect_of("postgresql"), UTC), key, value, tombstone=tombstone
    )


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
def test_columns_follow_pk_mode_and_pk_fields(
    config: dict[str, str], names: tuple[str, ...], keys: int, row: tuple[object, ...]
) -> None:
    made = layout_with(config)
    assert (made.names, made.keys, made.row(RECORD)) == (names, keys, row)
    assert made.key(RECORD) == row[:keys]


def test_a_primitive_key_takes_the_name_in_pk_fields() -> None:
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
        (KEY, VALUE, {"pk_mode": "record_value", "pk_fields": "nothing"}, "nothing, which the record's value does not have; it"),
        (KEY, VALUE, {"fields_whitelist": "nothing"}, "no fields that become columns"),
        (KEY, Schema.struct({"in": VALUE}), {}, "Field in is of type STRUCT.*Flatten"),
        (KEY, Schema.struct({"in": Schema.array(Schema.map(STRING_SCHEMA, STRING_SCHEMA))}), {}, "array of MAP"),
    ],
)
def test_records_that_cannot_be_rows_are_refused_with_the_reason(
    key: Schema | None, value: Schema | None, config: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        layout_with(config, key, value)


def test_a_primitive_key_without_pk_fields_is_an_error_of_the_config() -> None:
    with pytest.raises(ConnectError, match=r"pk\.fields has to name one column") as raised:
        layout(STRING_SCHEMA, pk_mode="record_key")
    assert not isinstance(raised.value, DataError)


def test_a_missing_key_is_an_error_of_the_record() -> None:
    with pytest.raises(DataError, match="has no key"):
        layout(pk_mode="record_key").row(RECORD.new_record(key=None))
