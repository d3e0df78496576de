"""Microseconds from a message of the log to the encoded record, without servers: python tests/benchmarks/bench_cdc_rows.py.

The table and the changes are those of bench_cdc. Besides the records encoded straight from rows, it measures those that are made
of structs and encoded by the converters, as with transforms.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import struct
import time
from collections.abc import Callable
from typing import Any, cast

from sluiceway.api import ENCODED, SourceRecord, TaskConverters
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.catalog import Catalog, CatalogColumn, CatalogTable
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.receiver import Received
from sluiceway.connectors.cdc.postgres.source import Position
from sluiceway.connectors.cdc.postgres.stream import StreamReader
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.converters.json_converter import JsonConverter

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}
_COLUMNS = [
    ("id", 20, "int8", -1, "1234567"),
    ("a", 23, "int4", -1, "42"),
    ("b", 20, "int8", -1, "9007199254740993"),
    ("c", 25, "text", -1, "the text of row 1234567, as long as a note"),
    ("d", 1700, "numeric", (12 << 16 | 2) + 4, "12345.67"),
    ("e", 1114, "timestamp", -1, "2024-01-15 10:34:56.123456"),
    ("f", 1184, "timestamptz", -1, "2024-01-15 10:34:56.123456+00"),
    ("g", 16, "bool", -1, "t"),
    ("h", 701, "float8", -1, "3.14159"),
    ("i", 1043, "varchar", 54, "customer 1234567"),
]
_EVENTS_PER_TRANSACTION = 1000


class _Catalog:
    def table(self, table: TableId) -> CatalogTable:
        columns = tuple(CatalogColumn(name, oid, mod, name == "id", None, False, None) for name, oid, _, mod, _ in _COLUMNS)
        return CatalogTable(table, columns, ("id",))


class _Listener:
    def state(self) -> dict[str, Any]:
        return {}

    def inserted(self, *_: object) -> None: ...

    deleted = changed = inserted


def _messages(count: int) -> list[Received]:
    """Return transactions of inserts and updates."""
    columns = b"".join(
        bytes([name == "id"]) + name.encode() + b"\0" + struct.pack(">Ii", oid, mod) for name, oid, _, mod, _ in _COLUMNS
    )
    head = struct.pack(">I", 16_512)
    found = [Received(0, b"R" + head + b"public\0t\0d" + struct.pack(">H", len(_COLUMNS)) + columns)]
    lsn = 1000
    for number in range(count):
        if number % _EVENTS_PER_TRANSACTION == 0:
            found.append(Received(lsn, b"B" + struct.pack(">qqI", lsn + 900_000, 7, number)))
        values = [str(1_000_000 + number).encode(), *(value.encode() for *_, value in _COLUMNS[1:])]
        row = struct.pack(">H", len(values)) + b"".join(b"t" + struct.pack(">I", len(value)) + value for value in values)
        found.append(Received(lsn, (b"U" if number % 2 else b"I") + head + b"N" + row))
        lsn += 200
        if number % _EVENTS_PER_TRANSACTION == _EVENTS_PER_TRANSACTION - 1:
            found.append(Received(lsn, b"C" + struct.pack(">BQQq", 0, lsn, lsn, 7)))
    return found


def _types(query: str) -> list[tuple[Any, ...]]:
    return [] if "pg_enum" in query else [(oid, name, "b", 0, -1, 0, ",") for _, oid, name, _, _ in _COLUMNS]


def _run(messages: list[Received], *, schemas: bool, encoding: bool) -> tuple[float, int]:
    """Return the seconds of CPU, and the bytes of the records."""
    converters = TaskConverters(JsonConverter(), JsonConverter())
    for converter in converters:
        cast("JsonConverter", converter).configure({"schemas.enable": str(schemas).lower()})
    config = postgres_config(_CONFIG)
    emitter = Emitter(config.common, "postgresql", converters if encoding else None)
    reader = StreamReader(
        config, cast("Catalog", _Catalog()), TypeRegistry(_types, config.settings), emitter, Position(), _Listener()
    )
    size = 0
    started = time.process_time()
    for message in messages:
        for record in reader.read(message):
            key, value = _encoded(record, converters)
            size += len(key or b"") + len(value or b"")
    return time.process_time() - started, size


def _encoded(record: SourceRecord, converters: TaskConverters) -> tuple[bytes | None, bytes | None]:
    if record.value_schema is ENCODED:
        return record.key, record.value
    key = converters.key.encoder(record.topic, record.key_schema)(record.key)
    return key, converters.value.encoder(record.topic, record.value_schema)(record.value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument(
        "--profile", action="store_true", help="show where the encoding of records without schemas takes its time"
    )
    arguments = parser.parse_args()
    messages = _messages(arguments.events)
    if arguments.profile:
        profile = cProfile.Profile()
        profile.runcall(cast("Callable[..., object]", _run), messages, schemas=False, encoding=True)
        pstats.Stats(profile).sort_stats("tottime").print_stats(20)
        return
    for schemas in (False, True):
        for encoding in (True, False):
            seconds, size = min(_run(messages, schemas=schemas, encoding=encoding) for _ in range(3))
            print(
                f"JSON {'with   ' if schemas else 'without'} schemas, {'rows   ' if encoding else 'structs'}: "
                f"{seconds / arguments.events * 1e6:6.2f} us an event, {size // arguments.events} bytes"
            )


if __name__ == "__main__":
    main()
