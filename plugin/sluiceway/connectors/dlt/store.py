"""The tables of a destination of dlt, for the table sinks. Runs on executors, and on the API server to change offsets.

Rows are written to files, and a loader process loads those of all tables, with the next offsets, in one package.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from sluiceway.api import TopicPartition
from sluiceway.connectors.dlt.cells import column_type, is_json, json_texts, with_json
from sluiceway.connectors.dlt.loader_process import LoaderProcess
from sluiceway.connectors.dlt.sink_config import DELETED_COLUMN, POSITION_COLUMNS, DltSinkConfig
from sluiceway.connectors.replacement import IntervalReplacement
from sluiceway.connectors.tables.config import TableOptions
from sluiceway.connectors.tables.evolution import ColumnChange, applied
from sluiceway.connectors.tables.rows import Rows
from sluiceway.connectors.tables.store import (
    Expected,
    FencedOffsetsError,
    Merge,
    Offsets,
    Staged,
    TableStore,
    UnknownOutcomeError,
    UnreachableError,
)
from sluiceway.errors import ConnectError, DataError


class DltStore(TableStore):
    """A ``TableStore`` for a destination."""

    shares_offsets: ClassVar[bool] = True

    def __init__(self, options: TableOptions) -> None:
        self.options = options
        self._config = DltSinkConfig.of(options.config)
        self._process = LoaderProcess(options.config)
        self._offsets: dict[TopicPartition, int] | None = None
        self._schemas: dict[str, pa.Schema] = {}
        self._columns: dict[str, str] = {}
        self._json: set[tuple[str, str]] = set()
        self._tables: dict[str, str] = {}
        self._loads: list[dict[str, Any]] = []
        self._expected: dict[TopicPartition, int | None] = {}
        self._next: dict[TopicPartition, int] = {}
        self._numbers = itertools.count()

    def offset(self, partition: TopicPartition) -> int | None:
        return self._opened().get(partition)

    def set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        self._process.call("offsets", offsets=_by_topic(offsets))
        self._offsets = None

    @contextlib.contextmanager
    def commits(self) -> Iterator[None]:
        """Collect the commits of tables, and load them in one package."""
        self._drop()
        try:
            yield
            if self._loads:
                self._load()
        finally:
            self._drop()

    def adapted(self, name: str, rows: Rows) -> Rows:
        """Return rows without nested values, which become JSON, and with their positions if the config wants them."""
        values = rows.values
        for number, field in enumerate(values.schema):
            if pa.types.is_nested(field.type) or is_json(field):
                self._json.add((self.table_name(name), self.column_name(field.name)))
            if self._is_json(name, field.name) and not pa.types.is_null(field.type) and not is_json(field):
                values = values.set_column(number, pa.field(field.name, pa.string()), json_texts(values.column(number)))
        if self._config.positions:
            count, partition = len(rows), rows.partition
            positions: list[pa.Array[Any]] = [
                pa.repeat(pa.scalar(partition.topic), count),
                pa.repeat(pa.scalar(partition.partition, pa.int64()), count),
                rows.offsets,
            ]
            for column_name, array in zip(POSITION_COLUMNS, positions, strict=True):
                values = values.append_column(column_name, array)
        return Rows(rows.partition, rows.offsets, values, rows.keys, rows.key, rows.deleted)

    def schemaless(self, values: list[Any]) -> pa.Array[Any]:
        return with_json(values)

    def column_name(self, name: str) -> str:
        if name not in self._columns:
            [self._columns[name]] = self._process.call("names", names=[name], table=False)
        return self._columns[name]

    def table_name(self, name: str) -> str:
        """Return a table's name as the destination writes it. Raises ConnectError if another table has the same."""
        if name not in self._tables:
            [found] = self._process.call("names", names=[name], table=True)
            other = next((each for each, written in self._tables.items() if written == found), None)
            if other is not None:
                raise ConnectError(
                    f"Tables {other} and {name} would be one: both have the name {found} in the destination. Rename one of the "
                    "topics by a RegexRouter, or set dlt.config.schema.naming=direct, which keeps names as they are."
                )
            self._tables[name] = found
        return self._tables[name]

    def table(self, name: str) -> DltTable | None:
        self._opened()
        schema = self._schemas.get(self.table_name(name))
        return None if schema is None else DltTable(self, name, schema)

    def create(self, name: str, schema: pa.Schema, partition_by: Sequence[str], id_columns: Sequence[str]) -> DltTable:
        """Return a table that the first load creates."""
        have = {self.column_name(each) for each in schema.names}
        for column in {*partition_by, *id_columns}:
            if self.column_name(column) not in have:
                raise ConnectError(
                    f"Table {name} cannot be created: the records have no field {column} to partition by or to identify rows."
                )
        return DltTable(self, name, schema)

    def arrow_type(self, type_: pa.DataType, path: str = "") -> pa.DataType:
        found = column_type(type_)
        if found is None:
            raise DataError(f"Field {path or 'value'} has the type {type_}, for which dlt has no column.")
        return found

    def check_names(self, columns: pa.Schema) -> None:
        seen: dict[str, str] = {}
        for name in columns.names:
            written = self.column_name(name)
            if written in seen and seen[written] != name:
                raise DataError(
                    f"Fields {seen[written]} and {name} would be one column, {written}, in the destination. Rename one by a "
                    "transform, or set dlt.config.schema.naming=direct, which keeps names as they are."
                )
            seen[written] = name

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        return False

    def names(self) -> Collection[str]:
        """Return all tables of the connector. They share their offsets."""
        self._opened()
        return list(self._schemas)

    def close(self) -> None:
        self._process.close()

    # For its tables.

    def reload(self) -> None:
        """Ask the destination again for tables and offsets; a load that is not complete is completed before."""
        self._offsets = None
        self._opened()

    def write(self, rows: pa.Table) -> str:
        """Write rows to a file for a load; return its path."""
        path = self._process.files / str(next(self._numbers))
        with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_file(stream, rows.schema) as writer:
            writer.write_table(rows)
        return str(path)

    def add(
        self,
        table: DltTable,
        files: Sequence[str],
        expected: Expected,
        offsets: Offsets,
        *,
        keys: Sequence[str] = (),
        deletes: bool = False,
    ) -> None:
        """Add rows of a table to the load at the end of the commits. ``deletes``: they have ``DELETED_COLUMN``."""
        options = self.options
        self._loads.append(
            {
                "name": self.table_name(table.name),
                "files": list(files),
                "keys": list(keys),
                "json": [column for column in table.schema.names if self._is_json(table.name, column)],
                "partition": list(options.partition_by(table.name)),
                "deletes": deletes,
            }
        )
        self._expected.update({partition: expected.get(partition) for partition in offsets})
        self._next.update(offsets)

    def _is_json(self, table: str, column: str) -> bool:
        """Return whether a column is of dlt's type json, which Arrow has as text."""
        return (self.table_name(table), self.column_name(column)) in self._json

    def _load(self) -> None:
        try:
            answer = self._process.call(
                "load", tables=self._loads, expected=_by_topic(self._expected), offsets=_by_topic(self._next)
            )
        except FencedOffsetsError:
            self._offsets = None
            raise
        except (UnreachableError, UnknownOutcomeError) as error:
            self._offsets = None  # to complete the load when it is asked again
            raise UnknownOutcomeError(str(error)) from error
        self._take(answer)

    def _drop(self) -> None:
        """Forget the commits, whose rows the destination or a package of dlt has, or which are read again."""
        for path in (path for each in self._loads for path in each["files"]):
            Path(path).unlink(missing_ok=True)
        self._loads, self._expected, self._next = [], {}, {}

    def _opened(self) -> dict[TopicPartition, int]:
        if self._offsets is None:
            self._take(self._process.call("open"))
        assert self._offsets is not None  # noqa: S101 (just taken)
        return self._offsets

    def _take(self, described: Mapping[str, Any]) -> None:
        """Take the state of the destination."""
        self._offsets = {
            TopicPartition(topic, int(partition)): offset
            for topic, partitions in described["offsets"].items()
            for partition, offset in partitions.items()
        }
        self._schemas = {
            name: pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text))) for name, text in described["tables"].items()
        }
        self._json |= {(name, field.name) for name, schema in self._schemas.items() for field in schema if is_json(field)}


class DltTable:
    """A ``Table`` of a destination: what is committed to it is loaded at the end of the store's commits."""

    def __init__(self, store: DltStore, name: str, schema: pa.Schema) -> None:
        self.name = name
        self._store = store
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def offset(self, partition: TopicPartition) -> int | None:
        return self._store.offset(partition)

    def reload(self) -> None:
        self._store.reload()

    def evolve(self, changes: Sequence[ColumnChange]) -> None:
        """Note new columns, which the next load adds."""
        self._schema = applied(self._schema, changes)

    def check_values(self, rows: pa.Table) -> None:
        return

    def stage(self, rows: pa.Table) -> Staged:
        return Staged([self._store.write(rows)], len(rows))

    def discard(self, staged: Sequence[Staged]) -> None:
        for path in (path for each in staged for path in each.files):
            Path(path).unlink(missing_ok=True)

    def append(self, staged: Sequence[Staged], expected: Expected, offsets: Offsets) -> None:
        self._store.add(self, [path for each in staged for path in each.files], expected, offsets)

    def merge(self, merge: Merge, expected: Expected, offsets: Offsets) -> None:
        tables, deletes = [merge.rows], len(merge.deleted) > 0
        if deletes:
            deleted = merge.deleted
            for field in self._schema:
                if field.name not in deleted.column_names:
                    deleted = deleted.append_column(field, pa.nulls(len(deleted), field.type))
            tables = [_marked(merge.rows, deleted=False), _marked(deleted.select(self._schema.names), deleted=True)]
        files = [self._store.write(each) for each in tables if len(each)]
        self._store.add(self, files, expected, offsets, keys=merge.id_columns, deletes=deletes)

    def replace(self, replacement: IntervalReplacement, rows: Iterable[pa.Table], expected: Expected, offsets: Offsets) -> None:
        raise ConnectError("DltSink does not replace the rows of an interval. Use dlt.tables.upsert-mode-enabled=true.")

    def set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        self._store.set_offsets(offsets)

    def sweep(self, age: float) -> int:
        return 0

    def compact(self, target: int, least: int) -> int:
        raise ConnectError("dlt has no compaction of tables.")

    def expire(self, age: float) -> None:
        raise ConnectError("dlt has no versions of tables.")


def _marked(rows: pa.Table, *, deleted: bool) -> pa.Table:
    return rows.append_column(DELETED_COLUMN, pa.repeat(pa.scalar(deleted), len(rows)))


def _by_topic(offsets: Mapping[TopicPartition, int | None]) -> dict[str, dict[str, int | None]]:
    found: dict[str, dict[str, int | None]] = {}
    for (topic, partition), offset in offsets.items():
        found.setdefault(topic, {})[str(partition)] = offset
    return found
