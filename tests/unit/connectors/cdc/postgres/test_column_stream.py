"""The columnar form of the log against the form that reads message by message, which is the reference."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from sluiceway.api import ENCODED, EncodedRecords, SourceRecord, TaskConverters
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.catalog import Catalog, CatalogColumn, CatalogTable
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.receiver import Received
from sluiceway.connectors.cdc.postgres.source import Position
from sluiceway.connectors.cdc.postgres.stream import StreamReader
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.converters.json_converter import JsonConverter

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}
_COLUMNS = {
    "id": (20, "int8", -1, ["1", "-5", "9007199254740993"]),
    "small": (21, "int2", -1, ["0", "-7"]),
    "text": (25, "text", -1, ["", "plain", 'a "quote"', "back\\slash", "tab\tline\n", "\x01\x1f", "Grüße", "😀", "x" * 300]),
    "amount": (1700, "numeric", (12 << 16 | 2) + 4, ["0.00", "12345.67", "-0.01", "-99999.99", "9999999999.99", "NaN"]),
    "whole": (1700, "numeric", (38 << 16 | 0) + 4, ["0", "127", "128", "-128", "-129", "9" * 18, "9" * 38]),
    "free": (1700, "numeric", -1, ["1.50", "0", "-3.14159"]),
    "at": (1114, "timestamp", -1, ["2024-01-15 10:34:56.123456", "1969-12-31 23:59:59.5", "2024-02-29 00:00:00", "infinity"]),
    "at_millis": (1114, "timestamp", 3, ["2024-01-15 10:34:56.123", "1969-12-31 23:59:59.999", "1582-10-04 00:00:00"]),
    "zoned": (1184, "timestamptz", -1, ["2024-01-15 10:34:56.123456+00", "2024-01-15 10:34:56+00", "2024-01-15 10:34:56.1+00"]),
    "zoned_millis": (1184, "timestamptz", 3, ["2024-01-15 10:34:56.123+00", "2024-01-15 10:34:56+00", "2024-01-15 10:34:56+02"]),
    "flag": (16, "bool", -1, ["t", "f"]),
    "double": (701, "float8", -1, ["3.14159", "0", "-0", "1e+20", "1e-05", "100", "NaN", "Infinity", "12345678.9"]),
    "single": (700, "float4", -1, ["1.5", "0.1"]),
    "day": (1082, "date", -1, ["2024-01-15", "1969-12-31"]),
    "clock": (1083, "time", -1, ["10:34:56.123456", "00:00:00"]),
    "uuid": (2950, "uuid", -1, ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    "document": (3802, "jsonb", -1, ['{"a": [1, "b"]}']),
    "content": (17, "bytea", -1, ["\\x", "\\xdeadbeef"]),
    "state": (5000, "state", -1, ["new", "done"]),
}
_UNUSUAL = frozenset(["NaN", "infinity", "Infinity", "2024-01-15 10:34:56+02"])
_OID = struct.pack(">I", 16_512)
_NOW = 1_700_000_000_123_456_789


class _Catalog:
    def table(self, table: TableId) -> CatalogTable:
        columns = tuple(
            CatalogColumn(name, oid, mod, name != "text" and name != "amount", None, False, None)
            for name, (oid, _, mod, _) in _COLUMNS.items()
        )
        return CatalogTable(table, columns, ("id",))


class _Listener:
    def state(self) -> dict[str, Any]:
        return {}

    def inserted(self, table: TableId, row: Sequence[Any]) -> None: ...

    def deleted(self, table: TableId, row: Sequence[Any]) -> None: ...

    def changed(self, table: TableSchema, row: Sequence[Any]) -> None: ...


def _types(query: str) -> list[tuple[Any, ...]]:
    if "pg_enum" in query:
        return [(5000, "new"), (5000, "done")]
    return [(oid, name, "e" if name == "state" else "b", 0, -1, 0, ",") for oid, name, _, _ in _COLUMNS.values()]


def _reader(*, schemas: bool, more: Mapping[str, str]) -> StreamReader:
    converters = TaskConverters(JsonConverter(), JsonConverter())
    for converter in converters:
        cast("JsonConverter", converter).configure({"schemas.enable": str(schemas).lower()})
    config = postgres_config({**_CONFIG, **more})
    emitter = Emitter(config.common, "postgresql", converters)
    emitter.encode_columns()
    types = TypeRegistry(_types, config.settings)
    return StreamReader(config, cast("Catalog", _Catalog()), types, emitter, Position(), _Listener())


def _relation() -> Received:
    columns = b"".join(
        bytes([name == "id"]) + name.encode() + b"\0" + struct.pack(">Ii", oid, mod)
        for name, (oid, _, mod, _) in _COLUMNS.items()
    )
    return Received(0, b"R" + _OID + b"public\0t\0d" + struct.pack(">H", len(_COLUMNS)) + columns)


def _row(values: Sequence[str | None]) -> bytes:
    """Return a row; ``u`` is a value that the log leaves out."""
    parts = [struct.pack(">H", len(values))]
    for value in values:
        data = None if value is None else value.encode()
        parts.append(b"n" if data is None else b"u" if data == b"u" else b"t" + struct.pack(">I", len(data)) + data)
    return b"".join(parts)


class _Log:
    """Random changes, with or without the values and changes that have no columnar form."""

    def __init__(self, seed: int, *, unusual: bool) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._unusual = unusual
        self._lsn = 1000

    def messages(self, count: int) -> list[Received]:
        found = [_relation()]
        changes = 0
        while changes < count:
            size = self._random.choice([1, 3, 50, 100])
            self._lsn += 100
            found.append(Received(self._lsn, b"B" + struct.pack(">qqI", self._lsn + 900_000, 7 + changes, changes + 1)))
            for _ in range(size):
                self._lsn += self._random.choice([0, 40])
                found.append(Received(self._lsn, self._change()))
            self._lsn += 40
            found.append(Received(self._lsn, b"C" + struct.pack(">BQQq", 0, self._lsn, self._lsn + 8, 7)))
            changes += size
        return found

    def _change(self) -> bytes:
        kind = self._random.choice("IIUUDFK" if self._unusual else "IIUUDF")
        row = self._values()
        key = [row[0], *[None] * (len(row) - 1)]
        if kind == "I":
            return b"I" + _OID + b"N" + _row(row)
        if kind == "D":
            return b"D" + _OID + b"K" + _row(key)
        if kind == "F":  # an update with the whole row before it
            return b"U" + _OID + b"O" + _row([row[0], *self._values()[1:]]) + b"N" + _row(row)
        if kind == "K":
            return b"U" + _OID + b"K" + _row(["77", *key[1:]]) + b"N" + _row(row)
        row[2] = self._random.choice(["u", row[2]])
        return b"U" + _OID + b"N" + _row(row)

    def _values(self) -> list[str | None]:
        found: list[str | None] = []
        for name, (_, _, _, values) in _COLUMNS.items():
            usual = [value for value in values if self._unusual or value not in _UNUSUAL]
            nullable = name not in ("id", "small")
            found.append(None if nullable and self._random.random() < 0.1 else self._random.choice(usual))
        return found


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: _NOW)


def _one_by_one(reader: StreamReader, messages: Sequence[Received], converter: JsonConverter) -> list[tuple[Any, ...]]:
    return [_data(record, converter) for message in messages for record in reader.read(message)]


def _data(record: SourceRecord, converter: JsonConverter) -> tuple[Any, ...]:
    key = record.key if record.key_schema is ENCODED else converter.encoder("t", record.key_schema)(record.key)
    value = record.value if record.value_schema is ENCODED else converter.encoder("t", record.value_schema)(record.value)
    return record.topic, key, value, len(record.headers)


def _together(reader: StreamReader, messages: list[Received], converter: JsonConverter) -> tuple[list[tuple[Any, ...]], int]:
    found: list[tuple[Any, ...]] = []
    encoded_count = 0
    while messages:
        encoded, end = reader.read_many(messages)
        if encoded is None:
            found += _one_by_one(reader, messages[:end], converter)
        else:
            encoded_count += len(encoded)
            assert encoded.source_offset == reader.offset()
            found += _parts(encoded)
        messages = messages[end:]
    return found, encoded_count


def _parts(encoded: EncodedRecords) -> list[tuple[Any, ...]]:
    return [(encoded.topic, key, value, len(encoded.headers)) for key, value in zip(encoded.keys, encoded.values, strict=True)]


@pytest.mark.parametrize("schemas", [False, True])
@pytest.mark.parametrize("unusual", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tombstones.on.delete": "false", "extended.headers.enabled": "false"},
        {"decimal.handling.mode": "string", "time.precision.mode": "connect"},
    ],
)
def test_columns_have_the_records_and_the_position_of_single_messages(
    more: dict[str, str], *, unusual: bool, schemas: bool
) -> None:
    converter = JsonConverter()
    converter.configure({"schemas.enable": str(schemas).lower()})
    for seed in range(2):
        messages = _Log(seed, unusual=unusual).messages(400)
        single, many = _reader(schemas=schemas, more=more), _reader(schemas=schemas, more=more)
        expected = _one_by_one(single, messages, converter)
        found, encoded = _together(many, messages, converter)
        assert found == expected
        assert many.position == single.position
        assert (many.safe_lsn, many.in_transaction) == (single.safe_lsn, single.in_transaction)
        assert unusual or encoded > 200
