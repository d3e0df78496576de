"""The log's messages as records, and restarts in the middle of transactions."""

from __future__ import annotations

import struct
from typing import Any, cast

import pytest

from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.catalog import Catalog, CatalogColumn, CatalogTable
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.receiver import Received
from sluiceway.connectors.cdc.postgres.source import Position
from sluiceway.connectors.cdc.postgres.stream import StreamReader
from sluiceway.connectors.cdc.postgres.types import TypeRegistry

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}


class _Catalog:
    def table(self, table: TableId) -> CatalogTable:
        columns = (CatalogColumn("id", 23, -1, True, None, False, None), CatalogColumn("a", 25, -1, False, None, False, None))
        return CatalogTable(table, columns, ("id",))


class _Listener:
    def state(self) -> dict[str, Any]:
        return {}

    def inserted(self, *_: object) -> None: ...

    deleted = changed = inserted


def _types(query: str) -> list[tuple[Any, ...]]:
    scalar = [(23, "int4", "b", 0, -1, 0, ","), (25, "text", "b", 0, -1, 0, ",")]
    return [] if "pg_enum" in query else scalar


def _reader(position: Position, **more: str) -> StreamReader:
    config = postgres_config({**_CONFIG, **more})
    types = TypeRegistry(_types, config.settings)
    emitter = Emitter(config.common, "postgresql")
    return StreamReader(config, cast("Catalog", _Catalog()), types, emitter, position, _Listener())


def _row(*values: str) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(b"t" + struct.pack(">I", len(value)) + value.encode() for value in values)


def _transaction(xid: int, commit: int, *inserts: tuple[int, str]) -> list[Received]:
    columns = b"\x01id\0" + struct.pack(">Ii", 23, -1) + b"\0a\0" + struct.pack(">Ii", 25, -1)
    relation = b"R" + struct.pack(">I", 9) + b"public\0t\0d" + struct.pack(">H", 2) + columns
    rows = [Received(lsn, b"I" + struct.pack(">I", 9) + b"N" + _row(value, value)) for lsn, value in inserts]
    begin = Received(inserts[0][0], b"B" + struct.pack(">qqI", commit, 0, xid))
    return [begin, Received(0, relation), *rows, Received(commit, b"C" + struct.pack(">BQQq", 0, commit, commit, 0))]


def _change(kind: bytes, *rows: bytes) -> list[Received]:
    """Return a transaction with one change of a row: an update (``U``) or a delete (``D``)."""
    begin, relation, _, commit = _transaction(7, 50, (10, "0"))
    return [begin, relation, Received(10, kind + struct.pack(">I", 9) + b"".join(rows)), commit]


def _operations(changes: list[Received], **more: str) -> list[str | None]:
    """Return the operations of the records of changes, None for a tombstone."""
    reader = _reader(Position(), **{name.replace("_", "."): value for name, value in more.items()})
    records = [record for message in changes for record in reader.read(message)]
    return [None if record.value is None else record.value["op"] for record in records]


def _ids(reader: StreamReader, messages: list[Received]) -> list[int]:
    return [record.value["after"]["id"] for message in messages for record in reader.read(message)]


def test_a_restart_within_a_transaction_goes_on_behind_the_stored_event() -> None:
    messages = _transaction(7, 50, (10, "1"), (20, "2"), (20, "3"), (30, "4"))
    for count in range(1, 5):
        first = _reader(Position())
        records = [record for message in messages for record in first.read(message)]
        stored = records[count - 1].source_offset
        assert stored is not None
        again = _reader(Position.of(stored))
        assert _ids(again, messages) == list(range(count + 1, 5))


def test_rows_of_the_next_transaction_are_read_even_if_they_are_older_in_the_log() -> None:
    position = Position.of({"lsn_proc": 45, "lsn_events_processed": 1, "lsn_commit": 40, "txId": 6, "messageType": "INSERT"})
    assert _ids(_reader(position), _transaction(7, 60, (10, "1"))) == [1]


def test_a_transaction_that_ended_is_not_read_again() -> None:
    position = Position.of({"lsn_proc": 20, "lsn_events_processed": 2, "lsn_commit": 5, "txId": 7, "messageType": "INSERT"})
    reader = _reader(position)
    assert _ids(reader, _transaction(7, 50, (10, "1"), (20, "2"), (20, "3"))) == []
    assert _ids(reader, _transaction(8, 70, (15, "4"))) == [4]


def test_a_changed_key_is_stored_only_with_its_last_record() -> None:
    reader = _reader(Position())
    begin, relation, insert, _commit = _transaction(7, 50, (10, "1"))
    for message in (begin, relation, insert):
        reader.read(message)
    update = b"U" + struct.pack(">I", 9) + b"K" + _row("1", "x") + b"N" + _row("2", "x")
    records = reader.read(Received(20, update))
    assert [(record.source_offset or {})["lsn"] for record in records] == [10, 10, 20]
    assert records[0].headers[0].key == "__debezium.newkey"


def test_transaction_records_surround_the_rows() -> None:
    reader = _reader(Position(), **{"provide.transaction.metadata": "true"})
    messages = _transaction(7, 50, (10, "1"), (20, "2"))
    records = [record for message in messages for record in reader.read(message)]
    assert [record.topic for record in records] == ["p.transaction", "p.public.t", "p.public.t", "p.transaction"]
    assert records[2].value["transaction"]["id"] == "7:20"
    assert records[3].value["event_count"] == 2


_DELETE = _change(b"D", b"O", _row("1", "x"))
_UPDATE = _change(b"U", b"O", _row("1", "x"), b"N", _row("1", "y"))
_TOUCH = _change(b"U", b"O", _row("1", "x"), b"N", _row("1", "x"))
_MOVE = _change(b"U", b"O", _row("1", "x"), b"N", _row("2", "x"))


@pytest.mark.parametrize(
    ("changes", "config", "operations"),
    [
        (_DELETE, {}, ["d", None]),
        (_DELETE, {"tombstones_on_delete": "false"}, ["d"]),
        (_DELETE, {"skipped_operations": "d"}, []),
        (_UPDATE, {}, ["u"]),
        (_UPDATE, {"skip_messages_without_change": "true"}, ["u"]),
        (_UPDATE, {"skipped_operations": "u"}, []),
        (_TOUCH, {"skip_messages_without_change": "true"}, []),
        (_MOVE, {}, ["d", None, "c"]),
        (_MOVE, {"tombstones_on_delete": "false"}, ["d", "c"]),
    ],
)
def test_a_change_has_the_records_that_the_config_asks_for(
    changes: list[Received], config: dict[str, str], operations: list[str | None]
) -> None:
    assert _operations(changes, **config) == operations
