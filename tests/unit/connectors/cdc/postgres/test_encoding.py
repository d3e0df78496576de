"""PostgreSQL's rows are encoded as the structs of the same rows."""

from __future__ import annotations

import itertools
import time
from random import Random
from typing import Any

import pytest

from sluiceway.connectors.cdc.columns import UNAVAILABLE, Column
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.config import PostgresConfig, postgres_config
from sluiceway.connectors.cdc.postgres.source import SOURCE, Position, Sources
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.tables import TableSchema
from support.cdc_encoding import NAMES, TEXTS, Comparison, converters

_SHORT = range(120)
_LONG = [range(start, start + 480) for start in range(120, 2000, 480)]  # parts, because each test has a time limit

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}

_DATES = ("2024-02-29", "1970-01-01", "0001-01-01", "1582-10-10", "9999-12-31", "10000-01-01", "0044-03-15 BC")
_CLOCKS = ("00:00:00", "23:59:59", "12:34:56.5", "12:34:56.123456", "01:02:03.000001")
_SPECIAL_DATES = ("infinity", "-infinity")
_STAMPS = (
    *(f"{date} {clock}" for date, clock in itertools.product(_DATES[:6], _CLOCKS)),
    "0044-03-15 12:00:00.25 BC",
    *_SPECIAL_DATES,
)
_ZONED = (*(f"{text}+00" for text in _STAMPS[:30]), "0044-03-15 12:00:00+00 BC", "2024-01-01 00:00:00-03:30", *_SPECIAL_DATES)
_INTEGERS = ("0", "1", "-1", "32767", "-32768")
_FLOATS = ("0", "1", "-1.5", "0.001", "1e-05", "12345678.9", "1e+20", "NaN", "Infinity", "-Infinity", "3.14159")
_DECIMALS = (
    "0.00",
    "1.10",
    "-1.10",
    "12345678901234567890.12",
    "-0.01",
    "127.00",
    "1.28",
    "-1.28",
    "NaN",
    "Infinity",
    "-Infinity",
)
_NUMBERS = ("0", "0.00", "1.10", "100", "-100.0", "0.001", "-123.456", "1" * 40, "NaN", "Infinity", "-Infinity")

_LABELS = ("small", "la,rge", 'qu"oted')

# name, oid, typmods, values
_TYPES: list[tuple[str, int, tuple[int, ...], tuple[str, ...]]] = [
    ("int2", 21, (-1,), _INTEGERS),
    ("int4", 23, (-1,), (*_INTEGERS, "2147483647", "-2147483648")),
    ("int8", 20, (-1,), (*_INTEGERS, "9223372036854775807", "-9223372036854775808")),
    ("oid", 26, (-1,), ("0", "4294967295")),
    ("float4", 700, (-1,), _FLOATS),
    ("float8", 701, (-1,), _FLOATS),
    ("numeric", 1700, ((10 << 16 | 2) + 4,), _DECIMALS),
    ("numeric", 1700, ((38 << 16) + 4,), ("0", "-1", "255", "99999999999999999999999999999999999999", "NaN")),
    ("numeric", 1700, (-1,), _NUMBERS),
    ("money", 790, (-1,), ("$1.00", "-$1,234.56", "$0.00")),
    ("bool", 16, (-1,), ("t", "f")),
    ("bit", 1560, (1, 8), ("1", "00000000", "10100000")),
    ("varbit", 1562, (-1, 10), ("", "1", "10101010")),
    ("text", 25, (-1,), TEXTS),
    ("varchar", 1043, (54, -1), TEXTS),
    ("name", 19, (-1,), TEXTS[:3]),
    ("bytea", 17, (-1,), ("\\x", "\\x00", "\\xdeadbeef")),
    ("uuid", 2950, (-1,), ("6f1c9b1e-3c55-4a3a-9d35-6a3a1a1a1a1a",)),
    ("json", 114, (-1,), ('{"a": "b\\n"}', "[1,2]", '"😀"')),
    ("jsonb", 3802, (-1,), ('{"a": 1}',)),
    ("xml", 142, (-1,), ("<a>é</a>",)),
    ("inet", 869, (-1,), ("192.168.0.1/24", "::1")),
    ("int4range", 3904, (-1,), ("[1,5)", "empty")),
    ("date", 1082, (-1,), (*_DATES, *_SPECIAL_DATES)),
    ("time", 1083, (-1, 0, 3, 6), (*_CLOCKS, "24:00:00")),
    ("timetz", 1266, (-1, 3), ("12:34:56.5+02", "24:00:00+00", "00:00:00-03:30")),
    ("timestamp", 1114, (-1, 0, 3, 6), _STAMPS),
    ("timestamptz", 1184, (-1, 0, 3, 6), _ZONED),
    ("interval", 1186, (-1,), ("1 year 2 mons 3 days 04:05:06.789", "-00:00:01", "00:00:00")),
    ("hstore", 9001, (-1,), ('"a"=>"1", "b"=>NULL', "")),
    ("point", 600, (-1,), ("(1,2)", "(-1.5,1e+20)")),
    ("polygon", 604, (-1,), ("((0,0),(1,1),(1,0))",)),
    ("_int4", 1007, (-1,), ("{1,NULL,3}", "{}", "{{1,2},{3,4}}")),
    ("_text", 1009, (-1,), ('{a,"b,c",NULL}', "{}")),
    ("_timestamp", 1115, (-1,), ('{"2024-01-01 00:00:00.5"}',)),
    ("size", 9002, (-1,), (*_LABELS, "added later")),
    ("other", 9003, (-1,), ("(1,2)",)),
]
_ELEMENTS = {"_int4": 23, "_text": 25, "_timestamp": 1114}
_TOASTED = frozenset(("text", "varchar", "bytea", "json", "jsonb", "xml", "hstore", "_int4", "_text", "numeric", "polygon"))
_KINDS = {"int4range": "r", "size": "e", "other": "c"}

_CHOICES = {
    "decimal.handling.mode": ("precise", "double", "string"),
    "binary.handling.mode": ("bytes", "base64", "base64-url-safe", "hex"),
    "time.precision.mode": ("adaptive", "adaptive_time_microseconds", "connect", "microseconds", "nanoseconds", "isostring"),
    "interval.handling.mode": ("numeric", "string"),
    "hstore.handling.mode": ("json", "map"),
    "include.unknown.datatypes": ("true", "false"),
    "sluiceway.cdc.compat": ("debezium", "correct"),
    "tombstones.on.delete": ("true", "false"),
    "skip.messages.without.change": ("true", "false"),
    "unavailable.value.placeholder": ("__debezium_unavailable_value", "hex:00ff22"),
    "field.name.adjustment.mode": ("none", "avro"),
    "extended.headers.enabled": ("true", "false"),
}
_MASKS = {
    "column.mask.with.3.chars": "public.t.a",
    "column.truncate.to.2.chars": "public.t.b",
    "column.mask.hash.SHA-256.with.salt.x": "public.t.c",
}

_SHARED_TOPIC = {
    "topic.naming.strategy": "io.debezium.schema.SchemaRegexTopicNamingStrategy",
    "topic.regex": "(.*)t",
    "topic.replacement": "$1all",
}


def _query(query: str) -> list[tuple[Any, ...]]:
    if "pg_enum" in query:
        return [(9002, label) for label in _LABELS]
    return [(oid, name, _KINDS.get(name, "b"), 0, -1, _ELEMENTS.get(name, 0), ",") for name, oid, _, _ in _TYPES]


class _Table:
    """A random table of a config, and its rows."""

    def __init__(self, rng: Random, config: PostgresConfig) -> None:
        types = TypeRegistry(_query, config.settings)
        self._kinds = [_TYPES[1], *(rng.choice(_TYPES) for _ in range(rng.randrange(len(NAMES))))]
        self._optional: list[bool] = []
        columns = []
        for index, (name, oid, typmods, values) in enumerate(self._kinds):
            field = types.resolve(oid, rng.choice(typmods))[1]
            optional = bool(index) and rng.random() < 0.7
            self._optional.append(optional or rng.random() < 0.1)
            column = Column(name=NAMES[index], field=field, optional=optional, type_name=name, length=rng.choice((None, 5)))
            if field is not None and rng.random() < 0.2:
                column = Column(
                    name=NAMES[index], field=field, optional=optional, type_name=name, default=_default(field.convert, values)
                )
            columns.append(column)
        keys = rng.choice(((), ("id",), ("id", "a")))
        self.schema: TableSchema = config.common.schemas(SOURCE).build(TableId("public", "t"), columns, keys)

    def row(self, rng: Random, *, whole: bool) -> list[Any]:
        return [self._value(rng, index, whole=whole) for index in range(len(self._kinds))]

    def _value(self, rng: Random, index: int, *, whole: bool) -> Any:
        name, _, _, values = self._kinds[index]
        if self._optional[index] and rng.random() < 0.2:
            return None
        if not whole and name in _TOASTED and rng.random() < 0.3:
            return UNAVAILABLE
        return rng.choice(values)


def _default(convert: Any, values: tuple[str, ...]) -> Any:
    return next((value for value in map(convert, values) if value is not None), None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)


def _compare(seed: int) -> Comparison:
    rng = Random(seed)  # noqa: S311 (cases, not secrets)
    more = {name: rng.choice(values) for name, values in _CHOICES.items() if rng.random() < 0.5}
    more |= {name: value for name, value in _MASKS.items() if rng.random() < 0.2}
    more |= _SHARED_TOPIC if rng.random() < 0.2 else {}
    config = postgres_config({**_CONFIG, **more})
    comparison = Comparison(config.common, converters(rng))
    table = _Table(rng, config)
    sources = Sources("p", 'd"b')
    position = Position(lsn=1234, processed=1, commit_lsn=rng.choice((None, 1200)), xid=7, micros=rng.randrange(1 << 50))
    for _ in range(4):
        position.origin = rng.choice((None, "o\\rigin"))
        position.lsn += rng.randrange(100)
        old, new = table.row(rng, whole=True), table.row(rng, whole=False)
        if rng.random() < 0.5:
            new[:2] = old[:2]
        source = sources.stream("public", "t", position)
        comparison.check(table.schema, None, new, source, rng, snapshot=False)
        comparison.check(table.schema, old, new, source, rng, snapshot=False)
        comparison.check(table.schema, old, None, source, rng, snapshot=False)
        source = sources.snapshot(rng.choice(("first", "true", "last")), "public", "t", position)
        comparison.check(table.schema, None, table.row(rng, whole=True), source, rng, snapshot=True)
    for _ in range(2):
        comparison.check_columns(
            table.schema,
            [table.row(rng, whole=True) for _ in range(12)],
            sources.stream("public", "t", position),
            rng,
            snapshot=False,
        )
        comparison.check_columns(
            table.schema,
            [table.row(rng, whole=True) for _ in range(12)],
            sources.snapshot("true", "public", "t", position),
            rng,
            snapshot=True,
        )
    return comparison


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("seeds", [_SHORT, *(pytest.param(seeds, marks=pytest.mark.long) for seeds in _LONG)])
def test_rows_are_encoded_like_their_structs(seeds: range) -> None:
    compared = [_compare(seed) for seed in seeds]
    fast, count = sum(each.fast for each in compared), sum(each.count for each in compared)
    assert fast > 0.5 * count, "most records need no structs"
    together, batches = sum(each.together for each in compared), sum(each.batches for each in compared)
    assert together > 0.4 * batches, "many batches have a columnar form"
