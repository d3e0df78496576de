"""Windows of incremental snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluiceway.connectors.cdc.columns import Column, FieldType
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import source_schema
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental import IncrementalSnapshots, Request
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.tables import Row, TableSchema
from sluiceway.data.schema import INT32_SCHEMA

_TABLE = TableId("public", "t")
_CONFIG = {
    "topic.prefix": "p",
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "x",
    "database.dbname": "d",
    "incremental.snapshot.chunk.size": "2",
}


class _Reader:
    """A table of the keys 1 to 3, and the marks that were written."""

    def __init__(self) -> None:
        self.marks: list[str] = []

    def schema(self, table: TableId) -> TableSchema | None:
        column = Column(name="id", field=FieldType(INT32_SCHEMA, int, 0), optional=False)
        return postgres_config(_CONFIG).common.schemas(source_schema("s", [])).build(table, [column], ["id"])

    def key(self, _table: TableId) -> Sequence[str]:
        return ["id"]

    def count(self, _request: Request) -> int:
        return 3

    def maximum(self, _request: Request) -> list[Any] | None:
        return ["3"]

    def chunk(self, request: Request, _schema: TableSchema, limit: int) -> list[Row]:
        after = int(request.after[0]) if request.after else 0
        rows: list[Row] = [(str(number),) for number in range(after + 1, 4)]
        return rows[:limit]

    def insert_mark(self, identifier: str, _kind: str, _data: str) -> None:
        self.marks.append(identifier)

    def delete_mark(self, _identifier: str) -> None: ...


def _snapshots(reader: _Reader) -> IncrementalSnapshots:
    config = postgres_config(_CONFIG).common
    return IncrementalSnapshots(config, reader, Notifications(config, Emitter(config, "postgresql")))


def _window(snapshots: IncrementalSnapshots, reader: _Reader, *changed: str) -> list[Row]:
    """Read a chunk, show its marks and changes in between, and return its rows."""
    snapshots.advance()
    opening, closing = reader.marks[-2:]
    snapshots.mark(opening)
    schema = reader.schema(_TABLE)
    assert schema is not None
    for value in changed:
        snapshots.changed(schema, (value,))
    snapshots.mark(closing)
    closed = snapshots.closed_window()
    assert closed is not None
    return closed[1]


def test_chunks_follow_each_other_until_one_is_empty() -> None:
    reader = _Reader()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    assert [_window(snapshots, reader) for _ in range(3)] == [[("1",), ("2",)], [("3",)], []]
    assert not snapshots.running


def test_changes_within_the_window_replace_its_rows() -> None:
    reader = _Reader()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    assert _window(snapshots, reader, "2") == [("1",)]


def test_a_restart_reads_a_chunk_again_whose_rows_were_not_returned() -> None:
    reader = _Reader()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    _window(snapshots, reader)
    snapshots.advance()  # reads the second chunk, whose window is never closed
    again = _snapshots(reader)
    again.load(snapshots.state())
    assert _window(again, reader) == [("3",)]


def test_a_paused_snapshot_reads_nothing() -> None:
    reader = _Reader()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    snapshots.pause("s2")
    snapshots.advance()
    assert reader.marks == []
