"""Rows of the binary log and of queries are encoded as the structs of the same rows."""

from __future__ import annotations

import struct
import time
from random import Random
from typing import Any

import pytest

from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.temporal import INVALID, Calendar
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import source_config
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import apply_statement
from sluiceway.connectors.cdc.mysql.fields import FieldSettings
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from support.cdc_encoding import NAMES, TEXTS, Comparison, converters

_SHORT = range(80)
_LONG = [range(start, start + 480) for start in range(80, 2000, 480)]  # parts, because each test has a time limit

_CONFIG = {
    "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
    "topic.prefix": "p",
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "x",
    "database.server.id": "1",
    "schema.history.internal.kafka.bootstrap.servers": "k:9092",
    "schema.history.internal.kafka.topic": "history",
}

_POINT = struct.pack("<IBIdd", 4326, 1, 1, 1.5, -2.0)
_MICROS = (0, 1, 999_999, 1_700_000_000_123_456, 1_700_000_000_000_000, 60_000_000)
_FLOATS = (0.0, 1.5, -2.25, 1e20, 1e-7, 3.14159, 12345678.9)
_TIMES = ("00:00:00", "23:59:59.5", "-838:59:59", "100:00:00.000001")
_DATETIMES = ("2024-02-29 12:34:56.123456", "0000-00-00 00:00:00", "9999-12-31 23:59:59", "1582-10-10 00:00:00", "2024-01-01")

# declaration, values of the log, values of queries
_TYPES: list[tuple[str, tuple[Any, ...], tuple[Any, ...]]] = [
    ("int", (0, 1, -5, 2_147_483_647), ("0", "-5", "42")),
    ("tinyint(1)", (0, 1, 2), ("0", "1")),
    ("boolean", (0, 1), ("0", "1")),
    ("smallint unsigned", (65_535,), ("65535",)),
    ("int unsigned zerofill", (42,), ("0000000042",)),
    ("bigint", (1 << 62, -(1 << 63)), (str(1 << 62),)),
    ("bigint unsigned", (0, (1 << 64) - 1), (str((1 << 64) - 1),)),
    ("float", _FLOATS, ("1.5", "3.14159", "1e20")),
    ("float(7,3)", _FLOATS, ("1.500",)),
    ("double", _FLOATS, ("1.5", "1e-7", "1e20", "0")),
    ("real", _FLOATS, ("1.5",)),
    ("decimal(10,2)", (0, 1, -1, 12_345, -128, 127), ("0.00", "-0.01", "123.45")),
    ("decimal(18,0)", (0, -5, 10**17 + 1), ("0", "-5", "100000000000000001")),
    ("decimal(18,18)", (0, -5, 10**17 + 1, 299_792_458_000_000_000), ("0.000000000000000000", "-0.000000000000000005")),
    ("decimal(30,0)", (0, 10**29, -(10**29)), ("0", "-100000000000000000000000000000")),
    ("bit(1)", (0, 1), (b"\x00", b"\x01")),
    ("bit(11)", (0, 0x501), (b"\x05\x01",)),
    ("char(10)", TEXTS, TEXTS),
    ("varchar(20) charset latin1", (b"\xe9", "plain", b""), ("é", "plain")),
    ("longtext", TEXTS, TEXTS),
    ("json", ('{"a": "b\\n😀"}',), ('{"a": 1}',)),
    ("binary(4)", (b"ab", b""), (b"ab\0\0",)),
    ("varbinary(9)", (b"ab\xff", b""), (b"ab",)),
    ("blob", (b"\0\1", b""), (b"\0\1",)),
    ("date", (0, -1, 19_782, INVALID), ("1970-01-01", "2024-02-29", "0000-00-00", "1582-10-10")),
    ("time", (0, -3_020_399_000_000, 3_600_000_000), _TIMES),
    ("time(6)", (1, 86_399_999_999), _TIMES),
    ("datetime", (*_MICROS, INVALID), _DATETIMES),
    ("datetime(3)", (*_MICROS, -1, INVALID), _DATETIMES),
    ("datetime(6)", (*_MICROS, -62_167_219_200_000_000, INVALID), _DATETIMES),
    ("timestamp", _MICROS[3:], _DATETIMES),
    ("timestamp(3)", _MICROS, _DATETIMES),
    ("timestamp(6)", _MICROS, _DATETIMES),
    ("year", (0, 2024, 69), ("0000", "2024")),
    ("enum('a','b''c','d,e')", (0, 1, 2, 3, 9), ("a", "b'c")),
    ("set('a','b')", (0, 1, 3), ("", "a,b")),
    ("point", (_POINT,), (_POINT,)),
    ("uuid", (bytes(range(16)),), ("00010203-0405-0607-0809-0a0b0c0d0e0f",)),
    ("inet6", (bytes(16),), ("::",)),
]

_CHOICES = {
    "decimal.handling.mode": ("precise", "double", "string"),
    "binary.handling.mode": ("bytes", "base64", "base64-url-safe", "hex"),
    "time.precision.mode": ("adaptive_time_microseconds", "connect", "microseconds", "nanoseconds", "isostring"),
    "bigint.unsigned.handling.mode": ("long", "precise"),
    "tombstones.on.delete": ("true", "false"),
    "skip.messages.without.change": ("true", "false"),
    "sluiceway.cdc.compat": ("debezium", "correct"),
    "extended.headers.enabled": ("true", "false"),
    "include.query": ("true", "false"),
}
_MASKS = {"column.mask.with.3.chars": "d.t.a", "column.truncate.to.2.chars": "d.t.b"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)


class _Rows:
    """Random rows of random columns, of which some are missing from the log."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.kinds = [_TYPES[0], *(rng.choice(_TYPES) for _ in range(rng.randrange(len(NAMES))))]
        self.optional = [False, *(rng.random() < 0.7 for _ in self.kinds[1:])]

    def declaration(self) -> str:
        columns = [
            f"`{name}` {kind[0]}{'' if optional else ' not null'}"
            for name, kind, optional in zip(NAMES, self.kinds, self.optional, strict=False)
        ]
        return f"create table t ({', '.join(columns)}{self._rng.choice(('', ', primary key (id)'))})"

    def row(self, place: int, *, partial: bool = False) -> tuple[Any, ...]:
        kinds: list[Any] = list(self.kinds)
        return tuple(self._value(index, kind[place], partial=partial) for index, kind in enumerate(kinds))

    def _value(self, index: int, values: tuple[Any, ...], *, partial: bool) -> Any:
        if self.optional[index] and self._rng.random() < 0.2:
            return None
        return UNAVAILABLE if partial and self._rng.random() < 0.2 else self._rng.choice(values)


_SHARED_TOPIC = {
    "topic.naming.strategy": "io.debezium.schema.SchemaRegexTopicNamingStrategy",
    "topic.regex": "(.*)t",
    "topic.replacement": "$1all",
}


def _compare(seed: int) -> Comparison:
    rng = Random(seed)  # noqa: S311 (cases, not secrets)
    more = {name: rng.choice(values) for name, values in _CHOICES.items() if rng.random() < 0.5}
    more |= {name: value for name, value in _MASKS.items() if rng.random() < 0.2}
    more |= _SHARED_TOPIC if rng.random() < 0.2 else {}
    config = source_config({**_CONFIG, **more})
    common, comparison = config.common, Comparison(config.common, converters(rng))
    rows = _Rows(rng)
    tables = Tables(server_charset="utf8mb4")
    apply_statement(tables, rows.declaration(), "d")
    definition = tables.get(TableId("d", "t"))
    assert definition is not None
    settings = FieldSettings(
        decimal_mode=common.decimal_mode,
        binary_mode=common.binary_mode,
        time_mode=common.time_mode,
        bigint_unsigned_mode=config.choice("bigint.unsigned.handling.mode"),
        placeholder=common.placeholder,
        calendar=Calendar(adjust_years=True),
        correct=common.correct,
    )
    position = LogPosition("mariadb", "p")
    table = Catalog(common.schemas(position.schema), settings, common.config).schema(definition)
    for _ in range(4):
        position.gtid, position.query = rng.choice((None, "0-1-2")), rng.choice((None, 'select "1"'))
        position.position, position.seconds = rng.randrange(1 << 40), rng.randrange(1 << 31)
        source = position.block("d", "t", row=rng.randrange(3))
        partial = rng.random() < 0.3
        old, new = rows.row(1), rows.row(1, partial=partial)
        if rng.random() < 0.5:
            new = (*old[:2], *new[2:])
        comparison.check(table, None, new, source, rng, snapshot=False)
        comparison.check(table, old, new, source, rng, snapshot=False)
        comparison.check(table, new, None, source, rng, snapshot=False)
        source = position.block("d", "t", snapshot=rng.choice(("first", "true", "last")))
        comparison.check(table, None, rows.row(2), source, rng, snapshot=True)
    for _ in range(2):
        comparison.check_columns(table, [rows.row(1) for _ in range(12)], position.block("d", "t"), rng, snapshot=False)
        comparison.check_columns(
            table, [rows.row(2) for _ in range(12)], position.block("d", "t", snapshot="true"), rng, snapshot=True
        )
    return comparison


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("seeds", [_SHORT, *(pytest.param(seeds, marks=pytest.mark.long) for seeds in _LONG)])
def test_rows_are_encoded_like_their_structs(seeds: range) -> None:
    compared = [_compare(seed) for seed in seeds]
    fast, count = sum(each.fast for each in compared), sum(each.count for each in compared)
    assert fast > 0.4 * count, "most records need no structs"
    together, batches = sum(each.together for each in compared), sum(each.batches for each in compared)
    assert together > 0.4 * batches, "many batches have a columnar form"
