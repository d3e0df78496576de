"""Reads one table: first a snapshot as a whole, then what each commit adds or changes. Runs on executors."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sluiceway.api import OffsetStorageReader, SourceColumns, SourceRecord
from sluiceway.connectors.tables.config import ID_COLUMNS
from sluiceway.connectors.tables.source.config import CHANGES, FAIL, HEADER, SKIP, TOMBSTONE, SourceOptions
from sluiceway.connectors.tables.source.net_changes import INSERT, net_changes
from sluiceway.connectors.tables.source.position import TABLE, UUID, Position, position_of
from sluiceway.connectors.tables.source.records import Piece, RecordMaker, Schemas
from sluiceway.connectors.tables.source.store import Commit, Part
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.connectors.tables.source.store import SourceStore, SourceTable

log = logging.getLogger(__name__)

Batch = SourceColumns | list[SourceRecord]

_CHANGES = "changes"  # the name of the part with a commit's changes


@dataclass(frozen=True, slots=True)
class _Step:
    """Rows to read: a snapshot as a whole, or what a commit added or changed."""

    snapshot: int
    initial: bool
    schemas: Schemas
    parts: Sequence[Part]


class TableReader:
    """Reads a table from the stored offset on. After an error, ``next`` continues after the rows that it returned last."""

    def __init__(self, name: str, options: SourceOptions, store: SourceStore, offsets: OffsetStorageReader) -> None:
        self.name = name
        self.due = 0.0
        self._options = options
        self._store = store
        self._offsets = offsets
        self._maker = RecordMaker(name, options.topic(name), tombstones=options.changes == TOMBSTONE)
        self._header = INSERT if options.changes == HEADER else None
        self._table: SourceTable | None = None
        self._position = Position(None)
        self._commits: deque[int] = deque()
        self._pieces: Iterator[tuple[Piece, Schemas]] | None = None

    def next(self, *, columnar: bool) -> Batch | None:
        """Return the next rows; None if there are none for now. Raises UnreachableError, and ConnectError."""
        table = self._opened()
        try:
            while True:
                if self._pieces is None:
                    step = self._next_step(table)
                    if step is None:
                        self.due = time.monotonic() + self._options.poll_interval
                        return None
                    self._pieces = ((piece, step.schemas) for piece in self._pieces_of(step, self._position))
                    if not self._position.within:
                        self._position = replace(self._position, snapshot=step.snapshot, file="", row=0)
                found = next(self._pieces, None)
                if found is not None:
                    return self._take(*found, columnar=columnar)
                self._completed()
        except BaseException:
            self._pieces = None
            self._commits.clear()
            raise

    def _take(self, piece: Piece, schemas: Schemas, *, columnar: bool) -> Batch:
        made = self._maker.make(piece, schemas, header=self._header, columnar=columnar)
        self._position = piece.end
        if piece.completes:
            self._completed()
        return made

    def _completed(self) -> None:
        self._pieces = None
        self._position = replace(self._position, initial=False, file=None, row=0)

    def _opened(self) -> SourceTable:
        """Return the table, and set the position when it is loaded first."""
        if self._table is None:
            table = self._store.table(self.name, self._options.selection(self.name))
            if table is None:
                raise ConnectError(
                    f"Table {self.name} does not exist. Create it, or remove it from {self._options.prefix}tables, "
                    "then restart the task."
                )
            stored = self._offsets.offset({TABLE: self.name})
            position = self._start(table) if stored is None else position_of(stored)
            if position.uuid not in (None, table.uuid):
                raise ConnectError(
                    f"Table {self.name} was replaced by another table of the same name: the stored offset is of the table with "
                    f"id {position.uuid}, not {table.uuid}. DELETE the connector's offsets to read the new table from "
                    f'start.position, or PATCH them without "{UUID}".'
                )
            self._position = replace(position, uuid=table.uuid)
            self._table = table
        return self._table

    def _start(self, table: SourceTable) -> Position:
        start, current = self._options.start, table.current()
        if start.earliest:
            return Position(current, initial=current is not None)
        if start.moment is not None:
            return Position(table.at(start.moment))
        if start.snapshot is None:
            return Position(current)
        return Position(start.snapshot if start.snapshot >= 0 else None)

    def _next_step(self, table: SourceTable) -> _Step | None:
        """Return the rows to read next. Commits without rows advance the position."""
        position = self._position
        if position.within and position.snapshot is not None:
            if not position.initial:
                return self._commit_step(table, table.commit(position.snapshot))
            rows = table.rows(position.snapshot)
            return _Step(position.snapshot, True, self._schemas(table, rows.columns), _ordered(rows.parts))
        if not self._commits:
            table.reload()
            self._commits.extend(table.commits(position.snapshot))
        while self._commits:
            step = self._commit_step(table, table.commit(self._commits[0]))
            snapshot = self._commits.popleft()
            if step is not None:
                return step
            self._position = replace(self._position, snapshot=snapshot)
        return None

    def _commit_step(self, table: SourceTable, commit: Commit) -> _Step | None:
        parts = commit.appended
        if parts is None:
            parts = self._changed(table, commit)
        if not parts:
            return None
        return _Step(commit.snapshot, False, self._schemas(table, commit.columns), _ordered(parts))

    def _schemas(self, table: SourceTable, columns: pa.Schema) -> Schemas:
        return self._maker.schemas(columns, self._ids(table))

    def _ids(self, table: SourceTable) -> tuple[str, ...]:
        return self._options.id_columns(self.name) or table.id_columns

    def _changed(self, table: SourceTable, commit: Commit) -> Sequence[Part]:
        """Return the changes of a commit as a part. Raises ConnectError if the config does not allow them."""
        mode, ids = self._options.changes, self._ids(table)
        if mode == FAIL:
            raise ConnectError(
                f"Table {self.name}: snapshot {commit.snapshot} ({commit.operation}) changes or deletes rows. Set {CHANGES}=skip "
                "to leave such snapshots out, or tombstone or header to produce their changes."
            )
        if mode == SKIP:
            log.info("Table %s: skipped snapshot %d (%s), which changes rows", self.name, commit.snapshot, commit.operation)
            return ()
        if not ids:
            raise ConnectError(
                f"Table {self.name}: snapshot {commit.snapshot} ({commit.operation}) changes rows, and no columns are known that "
                f"identify them. Set {self._options.prefix}{ID_COLUMNS}."
            )
        columns = commit.columns

        def read() -> Iterator[pa.RecordBatch]:
            before, after = (_rows(parts, columns) for parts in commit.changed())
            found = net_changes(before, after, ids, images=mode == HEADER)
            yield from found.combine_chunks().to_batches()

        return (Part(_CHANGES, read),)

    def _pieces_of(self, step: _Step, start: Position) -> Iterator[Piece]:
        """Yield the rows of a step from a position on. The last piece is held back until it is known to be the last one."""
        pending: Piece | None = None
        for part in step.parts:
            if start.file is not None and part.name < start.file:
                continue
            first, seen = start.row if part.name == start.file else 0, 0
            for rows in part.read():
                begin, seen = seen, seen + len(rows)
                for piece in _sliced(rows, max(0, first - begin), self._options.batch_rows):
                    if pending is not None:
                        yield pending
                    end = begin + piece.offset_after
                    pending = Piece(
                        piece.rows, Position(step.snapshot, step.initial, part.name, end, self._position.uuid), completes=False
                    )
        if pending is not None:
            yield pending._replace(completes=True)


@dataclass(frozen=True, slots=True)
class _Slice:
    rows: pa.RecordBatch
    offset_after: int


def _sliced(rows: pa.RecordBatch, first: int, most: int) -> Iterator[_Slice]:
    for start in range(first, len(rows), most):
        piece = rows.slice(start, most)
        yield _Slice(piece, start + len(piece))


def _ordered(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: part.name)


def _rows(parts: Sequence[Part], columns: pa.Schema) -> pa.Table:
    batches = [batch for part in _ordered(parts) for batch in part.read()]
    found = [pa.Table.from_batches([batch]).select(columns.names).cast(columns) for batch in batches]
    return pa.concat_tables(found) if found else columns.empty_table()
