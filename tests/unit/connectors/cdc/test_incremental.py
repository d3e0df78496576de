"""Windows of incremental snapshots."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from sluiceway.connectors.cdc.columns import Column, FieldType
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import source_schema
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental import Chunk, IncrementalSnapshots, Mark, ReadOnlyChunk
from sluiceway.connectors.cdc.incremental_offsets import Request
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.tables import Row, TableSchema
from sluiceway.data.schema import INT32_SCHEMA

_TABLE = TableId("public", "t")
CONFIG = {
    "topic.prefix": "p",
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "x",
    "database.dbname": "d",
    "incremental.snapshot.chunk.size": "2",
    "signal.data.collection": "public.signals",
}


class TableOfThree:
    """A table of the keys 1 to 3, the marks that were written, and how far the log has been read and is visible."""

    def __init__(self) -> None:
        self.marks: list[str] = []
        self.read = self.visible = 0
        self.wrong_row = False

    def schema(self, table: TableId) -> TableSchema | None:
        column = Column(name="id", field=FieldType(INT32_SCHEMA, int, 0), optional=False)
        return postgres_config(CONFIG).common.schemas(source_schema("s", [])).build(table, [column], ["id"])

    def key(self, _table: TableId) -> Sequence[str]:
        return ["id"]

    def has_unique_key(self, _table: TableId, names: Sequence[str]) -> bool:
        return "id" in names

    def identity(self, _schema: TableSchema, row: Row, *, logged: bool) -> Hashable:
        return tuple(row)

    def count(self, _request: Request) -> int:
        return 3

    def maximum(self, _request: Request) -> list[Any] | None:
        return ["3"]

    def chunk(self, request: Request, _schema: TableSchema, limit: int) -> Chunk:
        after = int(request.after[0]) if request.after else 0
        rows = [("no number" if self.wrong_row else str(number), str(number)) for number in range(after + 1, 4)]
        return Chunk.split(rows[:limit], 1)

    def kinds(self, _request: Request) -> Sequence[str]:
        return ["Integer"]

    def read_only_chunk(self, request: Request, schema: TableSchema, limit: int) -> ReadOnlyChunk | None:
        if self.visible < self.read:
            return None
        return ReadOnlyChunk(self.chunk(request, schema, limit), (self.visible,))

    def is_transient(self, error: Exception) -> bool:
        return False

    def reached(self, mark: Mark) -> bool:
        return (self.read,) >= mark

    def insert_mark(self, identifier: str, _kind: str, _data: str) -> None:
        self.marks.append(identifier)

    def delete_mark(self, _identifier: str) -> None: ...


def _snapshots(reader: TableOfThree, **more: str) -> IncrementalSnapshots:
    config = postgres_config({**CONFIG, **more}).common
    return IncrementalSnapshots(config, reader, Notifications(config, Emitter(config, "postgresql")))


def _window(snapshots: IncrementalSnapshots, reader: TableOfThree, *changed: str, table: TableId = _TABLE) -> list[Row]:
    """Read a chunk, show its marks and changes of a table in between, and return its rows."""
    snapshots.advance()
    opening, closing = reader.marks[-2:]
    snapshots.mark(opening)
    schema = reader.schema(table)
    assert schema is not None
    for value in changed:
        snapshots.changed(schema, (value,))
    snapshots.mark(closing)
    closed = snapshots.closed_window()
    assert closed is not None
    return closed[1]


def test_chunks_follow_each_other_until_one_is_empty() -> None:
    reader = TableOfThree()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    assert [_window(snapshots, reader) for _ in range(3)] == [[("1",), ("2",)], [("3",)], []]
    assert not snapshots.running


def test_changes_within_the_window_replace_its_rows() -> None:
    reader = TableOfThree()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    assert _window(snapshots, reader, "2") == [("1",)]


def test_changes_of_another_table_leave_the_windows_rows() -> None:
    reader = TableOfThree()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    assert _window(snapshots, reader, "2", table=TableId("public", "other")) == [("1",), ("2",)]


def test_a_restart_reads_a_chunk_again_whose_rows_were_not_returned() -> None:
    reader = TableOfThree()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    _window(snapshots, reader)
    snapshots.advance()  # reads the second chunk, whose window is never closed
    again = _snapshots(reader)
    again.load(snapshots.state())
    assert _window(again, reader) == [("3",)]


def test_a_paused_snapshot_reads_nothing() -> None:
    reader = TableOfThree()
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    snapshots.pause("s2")
    snapshots.advance()
    assert reader.marks == []


def _read_only(reader: TableOfThree) -> IncrementalSnapshots:
    snapshots = _snapshots(reader, **{"read.only": "true"})
    snapshots.add("s1", [_TABLE], {}, None)
    return snapshots


def test_without_marks_a_window_lasts_until_the_log_has_reached_its_chunk() -> None:
    reader = TableOfThree()
    reader.visible = 5
    snapshots = _read_only(reader)
    snapshots.advance()
    schema = reader.schema(_TABLE)
    assert schema is not None
    assert snapshots.closed_window() is None
    snapshots.changed(schema, ("1",))
    reader.read = 5
    snapshots.check()
    closed = snapshots.closed_window()
    assert closed is not None
    assert closed[1] == [("2",)]
    assert reader.marks == []


def test_a_chunk_is_not_read_while_queries_see_less_than_the_log_has() -> None:
    reader = TableOfThree()
    reader.read = 5
    snapshots = _read_only(reader)
    snapshots.advance()
    reader.visible = 5
    assert snapshots.closed_window() is None
    snapshots.advance()
    closed = snapshots.closed_window()
    assert closed is not None
    assert closed[1] == [("1",), ("2",)]


def test_a_table_without_key_is_refused() -> None:
    reader = TableOfThree()
    snapshots = _snapshots(reader)
    reader.key = lambda _table: []  # type: ignore[method-assign]
    snapshots.add("s1", [_TABLE], {}, None)
    snapshots.advance()
    assert not snapshots.running


def test_a_surrogate_key_that_rows_may_share_is_followed_by_the_primary_key() -> None:
    snapshots = _snapshots(TableOfThree())
    snapshots.add("s1", [_TABLE], {}, "a, b")
    assert [(each.key, each.unique) for each in snapshots._requests] == [(("a", "b", "id"), True)]


def test_equal_rows_of_a_table_without_key_are_all_returned_but_for_those_that_changed() -> None:
    reader = TableOfThree()
    snapshots = _snapshots(reader)
    reader.identity = lambda *_arguments, **_more: "same"  # type: ignore[method-assign]
    snapshots.add("s1", [_TABLE], {}, None)
    assert len(_window(snapshots, reader, "any")) == 1


def test_stop_ends_the_window() -> None:
    reader = TableOfThree()
    snapshots = _read_only(reader)
    snapshots.advance()
    snapshots.stop("s2", [_TABLE])
    assert snapshots.closed_window() is None
    assert snapshots.state() == {}


def test_a_chunk_that_ends_where_it_began_ends_the_snapshot() -> None:
    reader = TableOfThree()
    reader.chunk = lambda *_: Chunk([("1",)], ["1"])  # type: ignore[method-assign]
    snapshots = _snapshots(reader)
    snapshots.add("s1", [_TABLE], {}, None)
    assert _window(snapshots, reader) == [("1",)]
    snapshots.advance()
    assert not snapshots.running
