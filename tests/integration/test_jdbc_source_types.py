# ruff: noqa: S608 (of a database of our own)
"""Every type of every database: schema, value, and JSON."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import orjson
import pytest

from sluiceway.connectors.jdbc.source import table_reader
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import (
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_FLOAT32_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT8_SCHEMA,
    OPTIONAL_INT16_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
    validate_value,
)
from sluiceway.testing import run_source
from support.database import DatabaseForTest
from support.jdbc_source import columns_like_rows

UTC = dt.timezone.utc
MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)
DATE, TIME, TIMESTAMP = date_schema(optional=True), time_schema(optional=True), timestamp_schema(optional=True)

POSTGRESQL: dict[str, tuple[str, Schema, Any]] = {
    "smallint": ("-32768", OPTIONAL_INT16_SCHEMA, -32768),
    "integer": ("2147483647", OPTIONAL_INT32_SCHEMA, 2147483647),
    "bigint": ("-9223372036854775808", OPTIONAL_INT64_SCHEMA, -(1 << 63)),
    "real": ("1.5", OPTIONAL_FLOAT32_SCHEMA, 1.5),
    "double precision": ("0.1", OPTIONAL_FLOAT64_SCHEMA, 0.1),
    "boolean": ("true", OPTIONAL_BOOLEAN_SCHEMA, True),
    "numeric(10,2)": ("12345678.90", decimal_schema(2, optional=True), Decimal("12345678.90")),
    "numeric(5,0)": ("-12345", decimal_schema(0, optional=True), Decimal(-12345)),
    "numeric": ("0.00000001234567890123456789", OPTIONAL_STRING_SCHEMA, "0.00000001234567890123456789"),
    "text": ("'ä€😀'", OPTIONAL_STRING_SCHEMA, "ä€😀"),
    "varchar(5)": ("'abc'", OPTIONAL_STRING_SCHEMA, "abc"),
    "char(5)": ("'abc'", OPTIONAL_STRING_SCHEMA, "abc  "),
    "bytea": (r"'\x00ff10'", OPTIONAL_BYTES_SCHEMA, b"\x00\xff\x10"),
    "date": ("'2024-02-29'", DATE, dt.date(2024, 2, 29)),
    "time": ("'23:59:58.5'", TIME, dt.time(23, 59, 58, 500000)),
    "timetz": ("'23:00:00+02'", TIME, dt.time(21)),
    "timestamp": ("'2024-05-06 07:08:09.123456'", TIMESTAMP, MOMENT),
    "timestamptz": ("'2024-05-06 09:08:09.123456+02'", TIMESTAMP, MOMENT),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", OPTIONAL_STRING_SCHEMA, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "json": ("""'{"a": 1}'""", OPTIONAL_STRING_SCHEMA, '{"a": 1}'),
    "jsonb": ("""'{"a":1}'""", OPTIONAL_STRING_SCHEMA, '{"a": 1}'),
    "interval": ("'1 day 2 hours'", OPTIONAL_STRING_SCHEMA, "1 day 02:00:00"),
    "inet": ("'10.0.0.1'", OPTIONAL_STRING_SCHEMA, "10.0.0.1/32"),
    "xml": ("'<a/>'", OPTIONAL_STRING_SCHEMA, "<a/>"),
    "point": ("'(1,2)'", OPTIONAL_STRING_SCHEMA, "(1,2)"),
    "bit(1)": ("B'1'", OPTIONAL_BOOLEAN_SCHEMA, True),
    "bit(3)": ("B'101'", OPTIONAL_STRING_SCHEMA, "101"),
    "mood": ("'happy'", OPTIONAL_STRING_SCHEMA, "happy"),
    "positive": ("7", OPTIONAL_INT32_SCHEMA, 7),
    "int[]": ("'{1,null,3}'", Schema.array(OPTIONAL_INT32_SCHEMA, optional=True), [1, None, 3]),
    "text[]": ("'{a,b}'", Schema.array(OPTIONAL_STRING_SCHEMA, optional=True), ["a", "b"]),
    "uuid[]": (
        "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'",
        Schema.array(OPTIONAL_STRING_SCHEMA, optional=True),
        ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    ),
    "timestamp[]": ("'{2024-05-06 07:08:09.123456}'", Schema.array(TIMESTAMP, optional=True), [MOMENT]),
}

MARIADB: dict[str, tuple[str, Schema, Any]] = {
    "tinyint": ("-128", OPTIONAL_INT8_SCHEMA, -128),
    "tinyint(1)": ("1", OPTIONAL_INT8_SCHEMA, 1),
    "tinyint unsigned": ("255", OPTIONAL_INT16_SCHEMA, 255),
    "smallint": ("-32768", OPTIONAL_INT16_SCHEMA, -32768),
    "smallint unsigned": ("65535", OPTIONAL_INT32_SCHEMA, 65535),
    "mediumint": ("-8388608", OPTIONAL_INT32_SCHEMA, -8388608),
    "int": ("2147483647", OPTIONAL_INT32_SCHEMA, 2147483647),
    "int unsigned": ("4294967295", OPTIONAL_INT64_SCHEMA, 4294967295),
    "bigint": ("-9223372036854775808", OPTIONAL_INT64_SCHEMA, -(1 << 63)),
    "bigint unsigned": ("9223372036854775807", OPTIONAL_INT64_SCHEMA, (1 << 63) - 1),
    "decimal(10,2)": ("12345678.90", decimal_schema(2, optional=True), Decimal("12345678.90")),
    "float": ("1.5", OPTIONAL_FLOAT32_SCHEMA, 1.5),
    "double": ("0.1", OPTIONAL_FLOAT64_SCHEMA, 0.1),
    "bit(1)": ("b'1'", OPTIONAL_INT8_SCHEMA, 1),
    "bit(12)": ("b'100000000001'", OPTIONAL_BYTES_SCHEMA, b"\x08\x01"),
    "year": ("2024", OPTIONAL_INT32_SCHEMA, 2024),
    "date": ("'2024-02-29'", DATE, dt.date(2024, 2, 29)),
    "time(3)": ("'23:59:58.5'", TIME, dt.time(23, 59, 58, 500000)),
    "datetime(6)": ("'2024-05-06 07:08:09.123456'", TIMESTAMP, MOMENT),
    "datetime": ("'2024-05-06 07:08:09'", TIMESTAMP, MOMENT.replace(microsecond=0)),
    "timestamp(6) null": ("'2024-05-06 07:08:09.123456'", TIMESTAMP, MOMENT),
    "varchar(20)": ("'ä€😀'", OPTIONAL_STRING_SCHEMA, "ä€😀"),
    "char(5)": ("'abc'", OPTIONAL_STRING_SCHEMA, "abc"),
    "longtext": ("'x'", OPTIONAL_STRING_SCHEMA, "x"),
    "json": ("""'{"a": 1}'""", OPTIONAL_STRING_SCHEMA, '{"a": 1}'),
    "enum('a','b')": ("'b'", OPTIONAL_STRING_SCHEMA, "b"),
    "set('a','b')": ("'a,b'", OPTIONAL_STRING_SCHEMA, "a,b"),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", OPTIONAL_STRING_SCHEMA, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "inet6": ("'::1'", OPTIONAL_STRING_SCHEMA, "::1"),
    "binary(3)": ("x'00ff10'", OPTIONAL_BYTES_SCHEMA, b"\x00\xff\x10"),
    "varbinary(9)": ("x'00ff'", OPTIONAL_BYTES_SCHEMA, b"\x00\xff"),
    "blob": ("x'00ff'", OPTIONAL_BYTES_SCHEMA, b"\x00\xff"),
}

SQLITE: dict[str, tuple[str, Schema, Any]] = {
    "integer": ("-9223372036854775808", OPTIONAL_INT64_SCHEMA, -(1 << 63)),
    "real": ("0.1", OPTIONAL_FLOAT64_SCHEMA, 0.1),
    "text": ("'ä€😀'", OPTIONAL_STRING_SCHEMA, "ä€😀"),
    "varchar(5)": ("'abc'", OPTIONAL_STRING_SCHEMA, "abc"),
    "blob": ("x'00ff'", OPTIONAL_BYTES_SCHEMA, b"\x00\xff"),
    "boolean": ("1", OPTIONAL_BOOLEAN_SCHEMA, True),
    "decimal(10,2)": ("12.5", decimal_schema(2, optional=True), Decimal("12.50")),
    "date": ("'2024-02-29'", DATE, dt.date(2024, 2, 29)),
    "time": ("'23:59:58'", TIME, dt.time(23, 59, 58)),
    "timestamp": ("'2024-05-06 07:08:09.123456'", TIMESTAMP, MOMENT),
    "datetime": ("1714979289123", TIMESTAMP, MOMENT.replace(microsecond=123000)),
}


@pytest.mark.parametrize(("name", "types"), [("postgresql", POSTGRESQL), ("mariadb", MARIADB), ("sqlite", SQLITE)])
@pytest.mark.parametrize("as_query", [False, True])
def test_every_type_has_its_schema_and_value(
    name: str, types: dict[str, tuple[str, Schema, Any]], as_query: bool, request: pytest.FixtureRequest
) -> None:
    database: DatabaseForTest = request.getfixturevalue(name)
    if name == "postgresql":
        database.execute("create type mood as enum ('sad', 'happy')")
        database.execute("create domain positive as int check (value > 0)")
    fields = ", ".join(f"c{number} {text}" for number, text in enumerate(types))
    database.execute(f"create table everything (id integer not null primary key, {fields})")
    database.execute(f"insert into everything values (1, {', '.join(literal for literal, _, _ in types.values())})")
    database.execute(f"insert into everything values (2, {', '.join('null' for _ in types)})")
    more = {"query": "select * from everything"} if as_query else {}
    config = {**database.config, "mode": "incrementing", "incrementing.column.name": "id", "topic.prefix": "t-", **more}
    full, empty = run_source(JdbcSourceConnector, config, records=2)
    assert full.value_schema is not None
    found = {field.name: (field.schema, full.value[field.name]) for field in full.value_schema.fields}
    vague = {"enum('a','b')", "set('a','b')", "uuid", "inet6", "json", "year"} if as_query and name == "mariadb" else set()
    for number, (text, (_, schema, value)) in enumerate(types.items()):
        if text not in vague:
            assert (text, *found[f"c{number}"]) == (text, schema, value)
    for record in (full, empty):
        assert record.value_schema is not None
        validate_value(record.value_schema, record.value)
        payload = orjson.loads(JsonConverter().from_connect_data("t", record.value_schema, record.value) or b"")
        assert payload["payload"]["id"] == record.value["id"]
    assert all(value is None for field, value in empty.value.items() if field != "id")


@pytest.mark.parametrize(("name", "types"), [("postgresql", POSTGRESQL), ("mariadb", MARIADB), ("sqlite", SQLITE)])
def test_columns_equal_rows_for_every_type(
    name: str,
    types: dict[str, tuple[str, Schema, Any]],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_reader, "FEWEST_ROWS_FOR_COLUMNS", 1)
    database: DatabaseForTest = request.getfixturevalue(name)
    types = {text: each for text, each in types.items() if text not in ("mood", "positive")}  # other databases lack them
    fields = ", ".join(f"c{number} {text}" for number, text in enumerate(types))
    database.execute(f"create table everything (id integer not null primary key, {fields})")
    literals = ", ".join(literal for literal, _, _ in types.values())
    for row in (1, 2, 4, 5):
        database.execute(f"insert into everything values ({row}, {literals})")
    database.execute(f"insert into everything values (3, {', '.join('null' for _ in types)})")
    # An array's timestamps keep their microseconds, for which columns have no place.
    names = ", ".join(f"c{number}" for number, text in enumerate(types) if text != "timestamp[]")
    config = {**database.config, "mode": "incrementing", "incrementing.column.name": "id", "topic.prefix": "t-"}
    assert columns_like_rows({**config, "query": f"select id, {names} from everything"}, 5) == 5
    assert columns_like_rows({**config, "batch.max.rows": "2"}, 5) == (0 if "timestamp[]" in types else 5)


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ("none", [Decimal(12), Decimal("1.50"), "2.5"]),
        ("precision_only", [12, Decimal("1.50"), "2.5"]),
        ("best_fit", [12, 1.5, 2.5]),
        ("best_fit_eager_double", [12, 1.5, 2.5]),
    ],
)
def test_decimals_follow_numeric_mapping(postgresql: DatabaseForTest, mapping: str, expected: list[Any]) -> None:
    postgresql.execute("create table numbers (a numeric(4,0), b numeric(6,2), c numeric)")
    postgresql.execute("insert into numbers values (12, 1.5, 2.5)")
    config = {**postgresql.config, "mode": "bulk", "topic.prefix": "t-", "numeric.mapping": mapping}
    [record] = run_source(JdbcSourceConnector, config, records=1)
    assert list(record.value.values()) == expected


def test_timestamps_without_a_zone_are_in_db_timezone(postgresql: DatabaseForTest) -> None:
    postgresql.execute("create table times (id int primary key, at timestamp not null)")
    postgresql.execute("insert into times values (1, '2024-07-01 12:00:00'), (2, '2024-07-01 13:00:00')")
    config = {
        **postgresql.config,
        "mode": "timestamp",
        "timestamp.column.name": "at",
        "topic.prefix": "t-",
        "db.timezone": "Europe/Berlin",
        "timestamp.initial": "1719828000000",
    }
    [record] = run_source(JdbcSourceConnector, config, records=1)
    assert (record.value["id"], record.value["at"]) == (2, dt.datetime(2024, 7, 1, 11, 0, tzinfo=UTC))
    assert record.source_offset == {"timestamp": 1719831600000, "timestamp_nanos": 0}


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        ("micros_long", 1714979289123456),
        ("nanos_string", "1714979289123456000"),
        ("micros_iso_datetime_string", "2024-05-06T07:08:09.123456"),
    ],
)
def test_timestamps_follow_timestamp_granularity(postgresql: DatabaseForTest, granularity: str, expected: object) -> None:
    postgresql.execute("create table times (at timestamp)")
    postgresql.execute("insert into times values ('2024-05-06 07:08:09.123456')")
    config = {**postgresql.config, "mode": "bulk", "topic.prefix": "t-", "timestamp.granularity": granularity}
    [record] = run_source(JdbcSourceConnector, config, records=1)
    assert record.value["at"] == expected
