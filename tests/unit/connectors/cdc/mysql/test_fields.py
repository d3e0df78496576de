"""The fields of declared types: values of the log and of queries."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.temporal import INVALID, Calendar
from sluiceway.connectors.cdc.mysql.converters import converters
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import apply_statement
from sluiceway.connectors.cdc.mysql.defaults import default_value
from sluiceway.connectors.cdc.mysql.fields import FieldSettings, field_type
from sluiceway.data import Instant, Type
from sluiceway.errors import ConfigError

POINT = struct.pack("<IBIdd", 4326, 1, 1, 1.5, -2.0)


def _settings(**changes: Any) -> FieldSettings:
    values = {
        "decimal_mode": "precise",
        "binary_mode": "bytes",
        "time_mode": "adaptive_time_microseconds",
        "bigint_unsigned_mode": "long",
        "placeholder": b"__debezium_unavailable_value",
        "calendar": Calendar(adjust_years=True),
    }
    return FieldSettings(**{**values, **changes})


def _column(declaration: str) -> ColumnDefinition:
    tables = Tables(server_charset="utf8mb4")
    apply_statement(tables, f"create table t (c {declaration})", "d")
    table = tables.get(TableId("d", "t"))
    assert table is not None
    return table.columns[0]


def _field(declaration: str, **changes: Any) -> FieldType:
    field = field_type(_column(declaration), _settings(**changes))
    assert field is not None
    return field


@pytest.mark.parametrize(
    ("declaration", "log", "query", "expected"),
    [
        ("bigint unsigned", (1 << 64) - 1, str((1 << 64) - 1), -1),
        ("decimal(5,2)", -5, "-0.05", Decimal("-0.05")),
        ("bit(11)", 0b101_0000_0001, b"\x05\x01", b"\x01\x05"),
        ("bit", 1, b"\x01", True),
        ("binary(4)", b"ab", b"ab", b"ab\0\0"),
        ("varchar(5) charset latin1", b"\xe9", "é", "é"),
        ("year", 2024, "2024", 2024),
        ("set('a','b','c')", 5, "a,c", "a,c"),
        ("enum('a','b')", 2, "b", "b"),
        ("enum('a','b')", 0, "", ""),
        ("uuid", bytes(15) + b"\x01", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001"),
        ("inet6", bytes(15) + b"\x01", "::1", "::1"),
        ("inet4", b"\x0a\x00\x00\x01", "10.0.0.1", "10.0.0.1"),
        ("time(3)", -1_500_000, "-00:00:01.500", -1_500_000),
        ("date", 1, "1970-01-02", 1),
        ("date", INVALID, "0000-00-00", None),
        ("date not null", INVALID, "2024-02-31", 0),
        ("datetime(6)", 1, "1970-01-01 00:00:00.000001", 1),
        ("datetime", 1_709_210_096_000_000, "2024-02-29 12:34:56", 1_709_210_096_000),
    ],
)
def test_values_of_the_log_and_of_queries_are_the_same(declaration: str, log: Any, query: Any, expected: Any) -> None:
    field = _field(declaration)

    assert field.convert(log) == expected
    assert (field.snapshot or field.convert)(query) == expected


def test_timestamps_differ_as_in_debezium() -> None:
    field = _field("timestamp(6) null")
    assert field.snapshot is not None

    assert (field.convert(1_500_000), field.snapshot("1970-01-01 00:00:01.500000")) == (
        "1970-01-01T00:00:01.500000Z",
        "1970-01-01T00:00:01.5Z",
    )
    assert (field.convert(0), field.snapshot("0000-00-00 00:00:00.000000")) == ("1970-01-01T00:00:00Z", None)


def test_points_have_their_coordinates() -> None:
    value = _field("point").convert(POINT)

    assert (value["x"], value["y"], value["srid"], value["wkb"]) == (1.5, -2.0, 4326, POINT[4:])


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("int default 5", 5),
        ("decimal(5,2) default 1.5", Decimal("1.50")),
        ("bool not null default true", True),
        ("varchar(5) default 'x'", "x"),
        ("date default '2020-01-02'", 18263),
        ("timestamp null default current_timestamp()", None),
        ("timestamp not null default current_timestamp()", "1970-01-01T00:00:00Z"),
        ("datetime default '2020-01-01 01:02:03'", 1_577_840_523_000),
        ("time default '10:11:12'", 36_672_000_000),
        ("bit(3) default b'101'", b"\x05"),
        ("bigint unsigned default 18446744073709551615", (1 << 63) - 1),
        ("int default (1 + 1)", None),
        ("date default 'nonsense'", None),
        ("date default '0000-00-00'", None),
        ("date not null default '0000-00-00'", 0),
    ],
)
def test_defaults_are_values_of_the_field(declaration: str, expected: Any) -> None:
    column = _column(declaration)
    settings = _settings()
    field = field_type(column, settings)
    assert field is not None

    assert default_value(column, field, settings) == expected


@pytest.mark.parametrize(
    ("changes", "declaration", "log", "type_", "expected"),
    [
        ({"bigint_unsigned_mode": "precise"}, "bigint unsigned", (1 << 64) - 1, Type.BYTES, Decimal((1 << 64) - 1)),
        ({"decimal_mode": "string"}, "decimal(5,2)", 150, Type.STRING, "1.50"),
        ({"decimal_mode": "double"}, "decimal(5,2)", 150, Type.FLOAT64, 1.5),
        ({"binary_mode": "hex"}, "varbinary(4)", b"\xff", Type.STRING, "ff"),
        ({"time_mode": "isostring"}, "time", 86_400_000_000, Type.STRING, "00:00:00Z"),
        ({"time_mode": "isostring"}, "time", 90_000_000_000, Type.STRING, None),
        ({"time_mode": "connect"}, "time", 86_400_000_000, Type.INT32, Instant(86_400_000)),
        ({"time_mode": "connect"}, "time(3)", 86_399_999_000, Type.INT32, Instant(86_399_999)),
        ({"time_mode": "connect"}, "time", 86_401_000_000, Type.INT32, None),
        ({"time_mode": "connect"}, "time", -1_000_000, Type.INT32, None),
        ({"time_mode": "nanoseconds"}, "time", 86_400_000_000, Type.INT64, 86_400_000_000_000),
    ],
)
def test_handling_modes(changes: dict[str, Any], declaration: str, log: Any, type_: Type, expected: Any) -> None:
    field = _field(declaration, **changes)

    assert field.schema.type is type_
    assert field.convert(log) == expected


def test_years_of_two_digits_are_adjusted() -> None:
    assert _field("date").snapshot("0069-01-01") == 36160
    assert _field("date", calendar=Calendar(adjust_years=False)).snapshot("0069-01-01") == -694325


def test_tinyint_becomes_boolean_by_a_converter() -> None:
    config = {
        "converters": "b",
        "b.type": "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
        "b.selector": r"d\.t\.c",
    }
    [converter] = converters(config)

    field = converter.field(TableId("d", "t"), _column("tinyint(1)"))

    assert field is not None
    assert (field.schema.type, field.convert(-1), field.convert(2)) == (Type.BOOLEAN, False, True)
    assert converter.field(TableId("d", "u"), _column("tinyint(1)")) is None
    assert converter.field(TableId("d", "t"), _column("tinyint(4)")) is None


def test_other_converters_are_refused() -> None:
    with pytest.raises(ConfigError, match="which this connector does not have"):
        converters({"converters": "x", "x.type": "com.example.Converter"})


@pytest.mark.parametrize(("declaration", "precision"), [("bigint(20) unsigned", "20"), ("bigint unsigned", None)])
def test_large_unsigned_numbers_have_the_declared_precision(declaration: str, precision: str | None) -> None:
    field = _field(declaration, bigint_unsigned_mode="precise")

    assert field.schema.parameters.get("connect.decimal.precision") == precision


@pytest.mark.parametrize(
    ("declaration", "default"),
    [
        ("timestamp(3) default '2020-01-01 00:00:00'", "2020-01-01T00:00:00.000Z"),
        ("timestamp(6) default '2020-01-01 00:00:00.5'", "2020-01-01T00:00:00.500000Z"),
        ("timestamp default '2020-01-01 00:00:01'", "2020-01-01T00:00:01Z"),
    ],
)
def test_defaults_of_timestamps_have_the_declared_digits(declaration: str, default: str) -> None:
    assert default_value(_column(declaration), _field(declaration), _settings()) == default


@pytest.mark.parametrize(
    ("declaration", "generated"),
    [
        ("timestamp default '2020-01-01' on update current_timestamp", True),
        ("timestamp null on update now(3)", True),
        ("datetime default now() on update now()", False),
        ("timestamp default current_timestamp(3) on update current_timestamp(3) comment 'x'", False),
        ("datetime default now()", False),
    ],
)
def test_on_update_alone_makes_a_column_generated(declaration: str, generated: bool) -> None:
    assert _column(declaration).auto_incremented is generated


@pytest.mark.parametrize("kind", ["smallint", "int", "int4", "bigint", "tinyint", "mediumint", "float", "decimal(5,2)", "double"])
def test_numbers_filled_with_zeros_are_unsigned(kind: str) -> None:
    assert _field(f"{kind} zerofill").schema == _field(f"{kind} unsigned").schema == _field(f"{kind} unsigned zerofill").schema


@pytest.mark.parametrize("mode", ["adaptive_time_microseconds", "connect", "isostring", "nanoseconds"])
@pytest.mark.parametrize(
    ("declaration", "log", "query"),
    [
        ("date", INVALID, "0000-00-00"),
        ("date", INVALID, "2024-00-00"),
        ("datetime", INVALID, "0000-00-00 00:00:00"),
        ("datetime(6)", 9_999 * 366 * 86_400_000_000, "9999-12-31 23:59:59.999999"),
        ("timestamp", 0, "0000-00-00 00:00:00"),
        ("time", 838 * 3_600_000_000, "838:00:00"),
        ("time(6)", -1, "-00:00:00.000001"),
    ],
)
def test_a_required_column_is_never_null(declaration: str, log: Any, query: str, mode: str) -> None:
    field = _field(f"{declaration} not null", time_mode=mode)

    assert field.convert(log) is not None
    assert field.snapshot is not None
    assert field.snapshot(query) is not None
