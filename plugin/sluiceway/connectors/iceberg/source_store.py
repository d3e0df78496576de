"""The tables that the Iceberg source reads, by snapshots. Runs on executors, and on the API server to validate."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import DataScan, IncrementalAppendScan
from pyiceberg.table.snapshots import Operation, Snapshot

from sluiceway.connectors.iceberg.errors import reaching
from sluiceway.connectors.iceberg.file_reader import FileReader
from sluiceway.connectors.iceberg.store import OpenedCatalog
from sluiceway.connectors.tables.source.store import Commit, Part, Rows, Selection, check_same, dropped, expired, finding_files
from sluiceway.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table

    from sluiceway.connectors.tables.source.config import SourceOptions


class IcebergSourceStore:
    """A ``SourceStore`` for a catalog."""

    def __init__(self, options: SourceOptions) -> None:
        self._opened = OpenedCatalog(options.config)

    def table(self, name: str, selection: Selection) -> IcebergSourceTable | None:
        """Load a table; None if it does not exist."""
        catalog = self._opened.existing
        if catalog is None:
            return None
        with reaching(f"Loading table {name}"):
            try:
                return IcebergSourceTable(catalog.load_table(name), name, selection)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def close(self) -> None:
        self._opened.close()


class IcebergSourceTable:
    """A loaded table."""

    def __init__(self, table: Table, name: str, selection: Selection) -> None:
        self._table = table
        self._name = name
        self._selection = selection
        self._filter = _filter_of(table, selection.row_filter)

    @property
    def uuid(self) -> str:
        return str(self._table.metadata.table_uuid)

    @property
    def columns(self) -> pa.Schema:
        return schema_to_pyarrow(self._projected(self._table.schema()), include_field_ids=False)

    @property
    def id_columns(self) -> tuple[str, ...]:
        names = self._table.schema().identifier_field_names()
        return tuple(each.name for each in self._table.schema().fields if each.name in names)

    def reload(self) -> None:
        """Load the table as it is now. Raises ConnectError if it was dropped or replaced."""
        with reaching(f"Loading table {self._name}"):
            try:
                fresh = self._table.catalog.load_table(self._table.name())
            except (NoSuchTableError, NoSuchNamespaceError) as error:
                raise dropped(self._name, "iceberg.tables") from error
        check_same(self._name, self.uuid, str(fresh.metadata.table_uuid))
        self._table = fresh

    def current(self) -> int | None:
        found = self._table.current_snapshot()
        return None if found is None else found.snapshot_id

    def at(self, moment: dt.datetime) -> int | None:
        found = self._table.snapshot_as_of_timestamp(int(moment.timestamp() * 1000))
        return None if found is None else found.snapshot_id

    def rows(self, snapshot: int) -> Rows:
        """Return all rows of a snapshot."""
        schema = self._schema(self._snapshot(snapshot))
        return Rows(_arrow(schema), self._parts(self._plan(snapshot), schema))

    def commits(self, after: int | None) -> Sequence[int]:
        """Return the ancestors of the current snapshot after one, oldest first."""
        metadata, chain = self._table.metadata, []
        snapshot = metadata.current_snapshot()
        while snapshot is not None and snapshot.snapshot_id != after:
            chain.append(snapshot.snapshot_id)
            parent = snapshot.parent_snapshot_id
            if parent == after:  # also an expired one, of which all has been read
                break
            snapshot = None if parent is None else metadata.snapshot_by_id(parent)
            if snapshot is None:
                raise self._missing(after, parent)
        return chain[::-1]

    def _missing(self, after: int | None, parent: int | None) -> ConnectError:
        if after is None:
            return ConnectError(
                f"Table {self._name} cannot be read from its first snapshot: snapshot {parent} was expired. Set "
                "start.position=earliest to start with all rows of the newest snapshot."
            )
        rolled_back = self._table.metadata.snapshot_by_id(after) is not None
        return expired(
            self._name, after, "the table was rolled back to before it" if rolled_back else "it or a later snapshot was expired"
        )

    def commit(self, snapshot: int) -> Commit:
        """Return what a snapshot did."""
        found = self._snapshot(snapshot)
        operation = found.summary.operation if found.summary is not None else Operation.OVERWRITE
        schema = self._schema(found)

        def changed() -> tuple[Sequence[Part], Sequence[Part]]:
            return self._changed(found, schema)

        appended: Sequence[Part] | None = None
        if operation is Operation.REPLACE:
            appended = ()  # the same rows in other files
        elif operation is Operation.APPEND:
            appended = self._parts(self._appended(found), schema)
        return Commit(snapshot, operation.value, _arrow(schema), appended, changed)

    def _snapshot(self, snapshot: int) -> Snapshot:
        found = self._table.metadata.snapshot_by_id(snapshot)
        if found is None:
            raise expired(self._name, snapshot, "it does not exist, or was expired")
        return found

    def _schema(self, snapshot: Snapshot) -> Schema:
        """Return the columns to read as they were in a snapshot."""
        schemas = {schema.schema_id: schema for schema in self._table.metadata.schemas}
        then = self._table.schema() if snapshot.schema_id is None else schemas.get(snapshot.schema_id, self._table.schema())
        return self._projected(then)

    def _projected(self, schema: Schema) -> Schema:
        if not self._selection.columns:
            return schema
        try:
            return schema.select(*self._selection.columns)
        except ValueError as error:
            raise ConnectError(f"Table {self._name} lacks a column to read: {error}. Correct the key columns.") from error

    def _plan(self, snapshot: int) -> Iterable[FileScanTask]:
        with self._reading(f"snapshot {snapshot}"):
            return list(
                DataScan(
                    table_metadata=self._table.metadata, io=self._table.io, row_filter=self._filter, snapshot_id=snapshot
                ).plan_files()
            )

    def _appended(self, snapshot: Snapshot) -> Iterable[FileScanTask]:
        with self._reading(f"snapshot {snapshot.snapshot_id}"):
            return list(
                IncrementalAppendScan(
                    table_metadata=self._table.metadata,
                    io=self._table.io,
                    row_filter=self._filter,
                    from_snapshot_id=snapshot.parent_snapshot_id,
                    to_snapshot_id=snapshot.snapshot_id,
                ).plan_files()
            )

    def _changed(self, snapshot: Snapshot, schema: Schema) -> tuple[Sequence[Part], Sequence[Part]]:
        """Return the rows of files that a snapshot removed or added row-level deletes to, and of those that it has instead."""
        before: dict[object, FileScanTask] = {}
        if snapshot.parent_snapshot_id is not None:
            parent = self._snapshot(snapshot.parent_snapshot_id)
            before = {_identity(task): task for task in self._plan(parent.snapshot_id)}
        after = {_identity(task): task for task in self._plan(snapshot.snapshot_id)}
        removed = [task for key, task in before.items() if key not in after]
        added = [task for key, task in after.items() if key not in before]
        return self._parts(removed, schema), self._parts(added, schema)

    def _parts(self, tasks: Iterable[FileScanTask], schema: Schema) -> Sequence[Part]:
        reader = FileReader(self._table, schema, self._filter)
        return [Part(task.file.file_path, lambda task=task: self._read(reader, task)) for task in tasks]  # type: ignore[misc]

    def _read(self, reader: FileReader, task: FileScanTask) -> Iterator[pa.RecordBatch]:
        with self._reading(f"file {task.file.file_path}"):
            yield from reader.read(task)

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        with (
            reaching(f"Reading {what} of table {self._name}"),
            finding_files(what, self._name, "Its snapshot was expired", "snapshots"),
        ):
            yield


def _identity(task: FileScanTask) -> object:
    return task.file.file_path, frozenset(file.file_path for file in task.delete_files)


def _arrow(schema: Schema) -> pa.Schema:
    return schema_to_pyarrow(schema, include_field_ids=False)


def _filter_of(table: Table, text: str) -> BooleanExpression:
    """Return a condition in PyIceberg's form. Raises ConfigError."""
    if not text:
        return AlwaysTrue()
    try:
        found = parse(text)
        bind(table.schema(), found, case_sensitive=True)
    except Exception as error:  # the parser's own errors, and those of columns and types
        raise ConfigError("row.filter", text, f"is no condition on the columns of the table: {error}") from error
    return found
