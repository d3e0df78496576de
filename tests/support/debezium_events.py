"""Random change events as Debezium writes them, and records that are none, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.data import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Header,
    Headers,
    Schema,
    Struct,
    Type,
    validate_value,
)
from sluiceway.errors import DataError
from support.random_data import random_schema, random_text, random_value

TOPICS = ("shop.public.orders", "shop.public.orders_eu", "shop.public.people", "other", "7-é.x")
OPERATIONS = ("c", "r", "u", "d", "t", "m")

TRANSACTION = Schema.struct(
    {"id": STRING_SCHEMA, "total_order": INT64_SCHEMA, "data_collection_order": INT64_SCHEMA},
    name="event.block",
    version=1,
    optional=True,
)
SOURCE = Schema.struct(
    {
        "version": STRING_SCHEMA,
        "connector": STRING_SCHEMA,
        "ts_ms": INT64_SCHEMA,
        "snapshot": Schema(Type.STRING, optional=True, default="false", name="io.debezium.data.Enum", version=1),
        "db": STRING_SCHEMA,
        "ts_us": OPTIONAL_INT64_SCHEMA,
        "ts_ns": OPTIONAL_INT64_SCHEMA,
        "table": OPTIONAL_STRING_SCHEMA,
        "lsn": OPTIONAL_INT64_SCHEMA,
    },
    name="io.debezium.connector.postgresql.Source",
    version=1,
)


def _moment(per_second: int) -> Callable[[Random], int]:
    """Return a function that makes local times of 1970 to 2060, and some far from now, in units per second."""

    def make(rng: Random) -> int:
        far = rng.choice([0, -1, 9 * 10**12, -(10**12)]) if rng.random() < 0.1 and per_second < 10**9 else None
        seconds = rng.randrange(2_840_140_800) if far is None else far
        return seconds * per_second + rng.randrange(per_second)

    return make


def _zoned(rng: Random) -> str:
    zone = rng.choice(["Z", "Z", "+02:00", "-05:30", "+01:24:30", "+0530", "+05", "bad"])
    time = rng.choice(["12:00", "23:59:59", "00:00:00.000000", "01:02:03.123450", "02:30:00.000000001", "25:00:00"])
    year = rng.choice(["1971", "2000", "2024", "2024", "2055", "0001", "9999", "+10000", "-0001", "+292278993"])
    return f"{year}-{rng.choice(['01-01', '03-31', '07-15', '10-27', '12-31', '02-30'])}T{time}{zone}"


def _payload(rng: Random) -> str:
    return rng.choice(PAYLOADS)


PAYLOADS = (
    '{"a": 1, "b": "x", "c": [1, 2], "d": {"e": true, "f": null}, "g": 1.5, "h": 12345678901}',
    '{"a": null, "empty": [], "o": {}}',
    '{"a": [{"x": 1}, {"x": 2}, null], "n": [null, 1]}',
    '{"a": [{"x": 1}, {"x": 3}]}',
    '{"mixed": [1, "a"]}',
    '{"mixed": [1, 12345678901]}',
    '{"nulls": [null]}',
    '{"deep": [[1, 2], [3]], "other": [[1], ["a"]]}',
    '{"big": 123456789012345678901234567890}',
    '{"9-é.x": 1, "_b": 2, "9-\\u00ea.x": "same"}',
    '{"": 1}',
    '{"a": 1, "a": "twice"} and more',
    "[1, 2]",
    "[]",
    "{}",
    "{bad",
    '{"a": NaN}',
    '{"a": 01}',
    '{"a": 1e400, "b": -0.0}',
    "text",
    " ",
    "",
)

SPECIAL: dict[str, Callable[[Random], Any]] = {
    "io.debezium.time.Timestamp": _moment(1000),
    "io.debezium.time.MicroTimestamp": _moment(10**6),
    "io.debezium.time.NanoTimestamp": _moment(10**9),
    "io.debezium.time.ZonedTimestamp": _zoned,
    "io.debezium.time.ZonedTime": lambda rng: _zoned(rng).partition("T")[2],
    "io.debezium.time.Date": lambda rng: rng.randrange(20_000),
    "io.debezium.data.Json": _payload,
    "some.Other": lambda _: 5,
}
"""Values of Debezium's types, by schema name."""


class Events:
    """Makes records of a few tables, whose schemas the seed decides."""

    def __init__(
        self, rng: Random, tables: int = 6, columns: Mapping[str, Schema] | None = None, *, simple: bool = False
    ) -> None:
        """``columns`` are in each table, besides random ones; ``simple`` makes none of bytes, arrays, maps and structs."""
        self.rng = rng
        self._simple = simple
        self._tables = [self._table(number, columns or {}) for number in range(tables)]

    def _table(self, number: int, columns: Mapping[str, Schema]) -> tuple[str, Schema, Schema]:
        rng = self.rng
        topic = TOPICS[number % len(TOPICS)]
        random = {f"c{at}": self._column() for at in range(rng.randrange(5))}
        fields = {"id": INT32_SCHEMA, **columns, **random, "name": OPTIONAL_STRING_SCHEMA}
        extra = {"version": 3} if rng.random() < 0.2 else {}
        row = Schema.struct(fields, name=f"{topic}.Value", optional=True, **extra)
        blocks: dict[str, Schema] = {
            "before": row,
            "after": row,
            "source": SOURCE,
            "transaction": TRANSACTION,
            "op": STRING_SCHEMA,
        }
        if rng.random() < 0.15:
            blocks.pop(rng.choice(list(blocks)))
        if rng.random() < 0.1:
            blocks["op"] = INT32_SCHEMA
        if rng.random() < 0.1:
            blocks[rng.choice(["before", "after"])] = OPTIONAL_STRING_SCHEMA
        blocks |= dict.fromkeys(("ts_ms", "ts_us", "ts_ns"), OPTIONAL_INT64_SCHEMA)
        envelope = Schema.struct(blocks, name=f"{topic}.Envelope", version=2)
        return topic, row, envelope

    def _column(self) -> Schema:
        while True:
            schema = random_schema(self.rng, 0 if self._simple else 1)
            if not self._simple or schema.type is not Type.BYTES or schema.name is not None:
                return schema

    def records(self, count: int) -> list[SourceRecord]:
        """Return so many records: four in five are change events of these tables."""
        return [self._event() if self.rng.random() < 0.8 else self._other() for _ in range(count)]

    def _event(self) -> SourceRecord:
        rng = self.rng
        topic, row, envelope = rng.choice(self._tables)
        operation = rng.choice(OPERATIONS[:4]) if rng.random() < 0.9 else rng.choice(OPERATIONS)
        values: dict[str, Any] = {
            "before": self._row(row) if operation == "d" or (operation == "u" and rng.random() < 0.7) else None,
            "after": self._row(row) if operation in ("c", "r", "u") else None,
            "source": self._source(topic),
            "transaction": rng.choice([None, Struct.of(TRANSACTION, ["tx", 1, 2])]),
            "op": operation,
            "ts_ms": rng.choice([None, 1_700_000_000_123]),
            "ts_us": rng.choice([None, 1_700_000_000_123_456]),
            "ts_ns": rng.choice([None, 1_700_000_000_123_456_789]),
        }
        fields = [self._fit(field.schema, values[field.name]) for field in envelope.fields]
        return self._record(topic, envelope, Struct.of(envelope, fields))

    def _fit(self, schema: Schema, value: Any) -> Any:
        """Return the value, or one of the schema's type for a block that has another type than Debezium's."""
        if schema.type is Type.INT32:
            return 5
        if schema.type is Type.STRING and isinstance(value, Struct):
            return "text"
        return value

    def _row(self, schema: Schema) -> Struct:
        return Struct.of(schema, [self._value(field.schema) for field in schema.fields])

    def _value(self, schema: Schema) -> Any:
        """Return a valid value, or None for a column with a default."""
        special = SPECIAL.get(schema.name or "")
        if special is not None:
            return None if schema.optional and self.rng.random() < 0.2 else special(self.rng)
        while True:
            value = random_value(self.rng, schema)
            try:
                if value is not None:
                    validate_value(schema, value)
            except DataError:  # a null inside the value
                continue
            return value

    def _source(self, topic: str) -> Struct:
        rng = self.rng
        values = [
            "3.7.0.Final",
            "postgresql",
            1_700_000_000_000 + rng.randrange(999),
            rng.choice([None, "true", "false"]),
            "shop",
        ]
        more = [rng.choice([None, 1_700_000_000_123_456]), rng.choice([None, 1_700_000_000_123_456_789])]
        return Struct.of(SOURCE, [*values, *more, rng.choice([topic.rpartition(".")[2], None, "orders"]), rng.choice([None, 7])])

    def _record(self, topic: str, schema: Schema | None, value: Any) -> SourceRecord:
        rng = self.rng
        keys = Schema.struct({"id": INT32_SCHEMA}, name=f"{topic}.Key")
        key: Any = Struct(keys, {"id": rng.randrange(9)})
        kind = rng.random()
        key_schema: Schema | None = keys
        if kind < 0.05:
            key_schema, key = None, None
        elif kind < 0.08:
            key_schema, key = STRING_SCHEMA, "k"
        elif kind < 0.1:
            key_schema, key = None, {"id": 1}
        partition, timestamp = rng.choice([None, None, 2]), rng.choice([None, 1_700_000_000_000])
        return SourceRecord(
            {"server": "s"}, {"lsn": 1}, topic, value, schema, key, key_schema, partition, timestamp, self._headers()
        )

    def _headers(self) -> Headers:
        rng = self.rng
        listed = Schema.array(STRING_SCHEMA)
        choices: Sequence[Header] = (
            Header("h1", rng.randrange(5), INT32_SCHEMA),
            Header("h2", random_text(rng), STRING_SCHEMA),
            Header("h3", None, OPTIONAL_STRING_SCHEMA),
            Header("drop", rng.choice([["name"], ["id", "name"], ["c0", "c1"], [], ["none"]]), listed),
            Header("drop", rng.choice([["c0", "c2", "name"], None]), listed.replace(optional=True)),
            Header("drop", "name", STRING_SCHEMA),
            Header("loose", {"a": 1}, None),
        )
        weights = (3, 3, 1, 4, 1, 0.2, 0.5)
        return tuple(rng.choices(choices, weights, k=rng.randrange(4)))

    def _other(self) -> SourceRecord:
        """Return a tombstone, a record that is no change event, or one that only seems to be."""
        rng = self.rng
        topic, _, envelope = rng.choice(self._tables)
        kind = rng.randrange(7)
        if kind < 3:
            return self._record(topic, rng.choice([None, None, envelope]), None)
        if kind == 3:
            return self._record(topic, None, {"before": None, "after": {"id": 1}, "op": "c"})
        if kind == 4:
            return self._record(topic, STRING_SCHEMA.replace(name="a.Envelope"), "text")
        if kind == 5:
            plain = Schema.struct({"id": INT32_SCHEMA, "name": OPTIONAL_STRING_SCHEMA}, name="plain")
            return self._record(topic, plain, Struct(plain, {"id": 1}))
        schema = random_schema(rng, 2)
        return self._record(topic, schema, self._value(schema))
