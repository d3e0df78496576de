"""The tables that the Delta source reads, by versions. Runs on executors, and on the API server to validate."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable as DeltaRsTable
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from sluiceway.connectors.delta.config import PATH, STORAGE
from sluiceway.connectors.delta.errors import answered, reaching
from sluiceway.connectors.delta.log import LoggedFile, LoggedVersion, deletion_vectors, read_version
from sluiceway.connectors.delta.partitions import check_columns, partition_text
from sluiceway.connectors.delta.row_filter import constant, row_filter
from sluiceway.connectors.tables.source.config import SourceOptions
from sluiceway.connectors.tables.source.net_changes import AFTER, BEFORE, CHANGE, DELETE, INSERT
from sluiceway.connectors.tables.source.store import Commit, Part, Rows, Selection, check_same, dropped, expired, finding_files
from sluiceway.errors import ConnectError


class DeltaSourceStore:
    """A ``SourceStore`` for a folder."""

    def __init__(self, options: SourceOptions) -> None:
        self._root = options.config[PATH].rstrip("/")
        self._storage = options.properties(STORAGE)

    def table(self, name: str, selection: Selection) -> DeltaSourceTable | None:
        """Load a table; None if it does not exist."""
        location = f"{self._root}/{name.replace('.', '/')}"
        with reaching(f"Loading table {name} at {location}"):
            try:
                return DeltaSourceTable(name, location, self._storage, selection)
            except TableNotFoundError:
                return None

    def close(self) -> None: ...


class _Shape:
    """A table's columns in a version, and which of them are read."""

    def __init__(self, table: DeltaRsTable, name: str, selection: Selection) -> None:
        metadata = table.metadata()
        if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
            raise ConnectError(f"Table {name} has delta.columnMapping.mode, which the source cannot read.")
        every: pa.Schema = pa.schema(table.schema().to_arrow())  # type: ignore[arg-type] # it has Arrow's C interface
        missing = [column for column in selection.columns if column not in every.names]
        if missing:
            raise ConnectError(f"Table {name} lacks a column to read: {', '.join(missing)}. Correct the key columns.")
        self.every = every
        self.read = pa.schema([field for field in every if not selection.columns or field.name in selection.columns])
        self.partition = metadata.partition_columns
        check_columns(name, every, self.partition)
        self.condition = row_filter(selection.row_filter, every)


class DeltaSourceTable:
    """A loaded table."""

    def __init__(self, name: str, location: str, storage: Mapping[str, str], selection: Selection) -> None:
        self._name = name
        self._location = location
        self._storage = dict(storage)
        self._selection = selection
        self._table = answered(lambda: DeltaRsTable(location, storage_options=self._storage))
        self._id = str(self._table.metadata().id)
        self._files = fs.PyFileSystem(DeltaStorageHandler(location, self._storage))
        self._shape: tuple[int, _Shape] | None = None

    @property
    def uuid(self) -> str:
        return self._id

    @property
    def columns(self) -> pa.Schema:
        return _Shape(self._table, self._name, self._selection).read

    @property
    def id_columns(self) -> tuple[str, ...]:
        return ()

    def reload(self) -> None:
        """Load the table as it is now. Raises ConnectError if it was dropped or replaced."""
        with reaching(f"Loading table {self._name} at {self._location}"):
            try:
                fresh = answered(lambda: DeltaRsTable(self._location, storage_options=self._storage))
            except TableNotFoundError as error:
                raise dropped(self._name, "delta.tables", f": {self._location} holds no Delta table") from error
        check_same(self._name, self._id, str(fresh.metadata().id))
        self._table = fresh

    def current(self) -> int | None:
        return self._table.version()

    def at(self, moment: dt.datetime) -> int | None:
        """Return the newest version that was committed before a moment, by the log."""
        with reaching(f"Reading the log of table {self._name}"):
            millis = moment.timestamp() * 1000
            found = [each for each in self._table.history() if each.get("timestamp", 0) <= millis]
        return max((int(each["version"]) for each in found), default=None)

    def rows(self, snapshot: int) -> Rows:
        """Return all rows of a version."""
        table = self._loaded(snapshot)
        shape = _Shape(table, self._name, self._selection)
        with self._reading(f"version {snapshot}"):
            if pa.table(table.deletion_vectors()).num_rows:
                raise deletion_vectors(f"Table {self._name}, version {snapshot}")
            actions: Any = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        files = [
            LoggedFile(unquote(each["path"]), {name: partition_text(each[f"partition.{name}"]) for name in shape.partition})
            for each in actions
        ]
        return Rows(shape.read, self._parts(files, shape))

    def commits(self, after: int | None) -> Sequence[int]:
        """Return the versions after one."""
        first, last = -1 if after is None else after, self._table.version()
        if first > last:
            raise expired(self._name, first, f"its newest version is {last}")
        return range(first + 1, last + 1)

    def commit(self, snapshot: int) -> Commit:
        """Return what a version did."""
        with self._reading(f"version {snapshot}"):
            logged = read_version(self._files, snapshot, self._name)
        if logged is None:
            raise expired(self._name, snapshot - 1, f"the log of version {snapshot} was cleaned up or does not exist")
        shape = self._shape_at(snapshot, logged)

        def changed() -> tuple[Sequence[Part], Sequence[Part]]:
            if logged.changes:
                return self._feed(logged, shape, (DELETE, BEFORE)), self._feed(logged, shape, (INSERT, AFTER))
            return self._parts(logged.removed, shape), self._parts(logged.added, shape)

        appended = None if logged.removed else self._parts(logged.added, shape)
        return Commit(snapshot, logged.operation, shape.read, appended, changed)

    def _shape_at(self, version: int, logged: LoggedVersion) -> _Shape:
        """Return the columns in a version. They are those of the version before it, unless the log says otherwise."""
        if self._shape is None or logged.changes_columns or version not in (self._shape[0], self._shape[0] + 1):
            self._shape = version, _Shape(self._loaded(version), self._name, self._selection)
        self._shape = version, self._shape[1]
        return self._shape[1]

    def _loaded(self, version: int) -> DeltaRsTable:
        """Load a version. Raises ConnectError if its log was cleaned up."""
        if version == self._table.version():
            return self._table
        try:
            with reaching(f"Loading version {version} of table {self._name}"):
                return answered(lambda: DeltaRsTable(self._location, version=version, storage_options=self._storage))
        except ConnectError as error:
            raise expired(self._name, version, f"the version cannot be loaded ({error})") from error

    def _feed(self, logged: LoggedVersion, shape: _Shape, kinds: Sequence[str]) -> Sequence[Part]:
        condition = pc.field(CHANGE).isin(list(kinds))
        return self._parts(logged.changes, shape, condition if shape.condition is None else condition & shape.condition)

    def _parts(self, files: Sequence[LoggedFile], shape: _Shape, condition: pc.Expression | None = None) -> Sequence[Part]:
        wanted = shape.condition if condition is None else condition
        return [Part(file.path, lambda file=file: self._read(file, shape, wanted)) for file in files]  # type: ignore[misc]

    def _read(self, file: LoggedFile, shape: _Shape, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        with self._reading(f"file {file.path}"):
            partition: Any = None
            for name in shape.partition:
                text = file.partition.get(name)
                equal = pc.field(name).is_null() if not text else pc.field(name) == constant(text, shape.every.field(name).type)
                partition = equal if partition is None else partition & equal
            fragment = ds.ParquetFileFormat(pre_buffer=True).make_fragment(file.path, self._files, partition_expression=partition)
            schema = shape.every.append(pa.field(CHANGE, pa.string()))
            scanner = ds.Scanner.from_fragment(fragment, schema=schema, columns=shape.read.names, filter=condition)
            for batch in scanner.to_batches():
                if len(batch):
                    yield batch.cast(shape.read)

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        with (
            reaching(f"Reading {what} of table {self._name}"),
            finding_files(what, self._name, "VACUUM deleted it", "files"),
        ):
            yield
