"""A Delta table: commits data files and offsets in one transaction. Runs on executors.

Offsets are the versions of application transactions, one for each topic partition. Every commit is tried once on the version
whose offsets were compared: delta-rs would otherwise repeat it on a newer version without comparing them again.
"""

from __future__ import annotations

import json
import logging
import math
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable as DeltaRsTable
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.fs import DeltaStorageHandler
from deltalake.schema import Field, Schema
from deltalake.transaction import AddAction, CommitProperties, Transaction
from pyarrow import fs

from sluiceway.api import TopicPartition
from sluiceway.connectors.delta.errors import committing, reaching
from sluiceway.connectors.delta.partitions import check_value, partition_folder, partition_text, plain
from sluiceway.connectors.delta.types import column_type
from sluiceway.connectors.tables.evolution import ColumnChange, Kind
from sluiceway.connectors.tables.store import ConflictingCommitError, Expected, Merge, Offsets, Staged, check_offsets
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from sluiceway.connectors.replacement import IntervalReplacement

log = logging.getLogger(__name__)

_ATTEMPTS = 10
_SMALL = 0.75
_DELETE = "__sluiceway_delete"


class DeltaTable:
    """A loaded table."""

    def __init__(self, table: DeltaRsTable, name: str, location: str, storage: Mapping[str, str], connector: str) -> None:
        self._table = table
        self._name = name
        self._connector = connector
        self._stem = f"sluiceway-{plain(connector)}-"
        self._id = table.metadata().id
        self._arrow: tuple[int, pa.Schema] | None = None
        self._handler = DeltaStorageHandler(location, dict(storage))
        self._files = fs.PyFileSystem(self._handler)

    @property
    def schema(self) -> pa.Schema:
        version = self._table.version()
        if self._arrow is not None and self._arrow[0] == version:
            return self._arrow[1]
        arrow: pa.Schema = pa.schema(self._table.schema().to_arrow())  # type: ignore[arg-type] # it has Arrow's C interface
        found = pa.schema([pa.field(each.name, column_type(each.type), each.nullable) for each in arrow])
        self._arrow = version, found
        return found

    def offset(self, partition: TopicPartition) -> int | None:
        """Return the next offset of a partition that this connector has committed, as loaded last; None if there is none."""
        with reaching(f"Reading the offsets in table {self._name}"):
            value = self._table.transaction_version(_app_id(self._connector, partition))
        return None if value is None or value < 0 else value

    def reload(self) -> None:
        """Load the table as it is now. Raises ConnectError if it was dropped or replaced."""
        with reaching(f"Loading table {self._name}"):
            self._table.update_incremental()
            if self._table.metadata().id != self._id:
                raise ConnectError(f"Table {self._name} was replaced by another table. Restart the task to use it.")

    def evolve(self, changes: Sequence[ColumnChange]) -> None:
        """Add columns and make columns optional, each in a commit of its own, except those that another task has changed.

        Raises DataError, before the first commit, for a field that Delta cannot add.
        """
        for change in changes:
            if change.kind is Kind.ADD:
                _field(self.schema, change)
        for change in changes:
            for _ in range(_ATTEMPTS):
                self.reload()
                try:
                    with reaching(f"Changing the columns of table {self._name}"):
                        self._change(change)
                    break
                except ConnectError as error:
                    if not isinstance(error.__cause__, CommitFailedError):
                        raise
            else:
                raise ConflictingCommitError(f"The columns of table {self._name} cannot be changed: other commits come first.")
        self.reload()

    def _change(self, change: ColumnChange) -> None:
        if change.kind is Kind.ADD:
            if not _has(self.schema, change.path):
                self._table.alter.add_columns(_field(self.schema, change))
        elif change.kind is Kind.RELAX:
            self._table.alter.drop_column_not_null(".".join(change.path))

    def check_values(self, rows: pa.Table) -> None:
        """Raise DataError for values of partitions that delta-rs cannot write, or not read again."""
        for name in self._table.metadata().partition_columns:
            for value in pc.unique(rows.column(name)).to_pylist():
                check_value(name, value)

    def stage(self, rows: pa.Table) -> Staged:
        """Write rows to data files by partition."""
        columns = self._table.metadata().partition_columns
        with reaching(f"Writing data files of table {self._name}"):
            return Staged([self._written(part, values) for values, part in _partitions(rows, columns)], len(rows))

    def _written(self, rows: pa.Table, values: Mapping[str, str | None]) -> AddAction:
        folder = "".join(f"{partition_folder(name, value)}/" for name, value in values.items())
        path = f"{folder}{self._stem}{uuid.uuid4().hex}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(
            rows.drop_columns(list(values)) if values else rows, sink, compression="snappy", store_decimal_as_integer=True
        )
        data = sink.getvalue()
        stream: Any = self._handler._handler.open_output_stream(path, None)  # its PyArrow form cannot pass on Arrow's buffers
        stream.write(data.to_pybytes())
        stream.close()
        return AddAction(path, data.size, values, int(time.time() * 1000), True, json.dumps(_statistics(rows, values)))

    def discard(self, staged: Sequence[Staged]) -> None:
        """Delete data files that were never committed; a sweep deletes those that cannot be deleted now."""
        for file in (file for each in staged for file in each.files):
            try:
                self._files.delete_file(unquote(file.path))
            except Exception as error:  # noqa: BLE001 (any storage's error)
                log.warning("Cannot delete uncommitted data file %s of table %s: %s", file.path, self._name, error)

    def append(self, staged: Sequence[Staged], expected: Expected, offsets: Offsets) -> None:
        """Commit data files and offsets if the stored offsets are the ``expected`` ones."""
        self.reload()
        check_offsets(self, self._name, expected, offsets)
        self._append([file for each in staged for file in each.files], offsets)

    def merge(self, merge: Merge, expected: Expected, offsets: Offsets) -> None:
        """Commit changes by key and offsets with one MERGE, which rewrites the data files with rows of these keys."""
        self.reload()
        check_offsets(self, self._name, expected, offsets)
        flag = pa.field(_DELETE, pa.bool_())
        rows = merge.rows.append_column(flag, pa.repeat(pa.scalar(value=False), len(merge.rows)))
        deleted = merge.deleted.append_column(flag, pa.repeat(pa.scalar(value=True), len(merge.deleted)))
        source = pa.concat_tables([_optional(rows), _optional(deleted)], promote_options="permissive")
        match = " AND ".join(f"t.{_name(column)} = s.{_name(column)}" for column in merge.id_columns)
        values = {_name(column): f"s.{_name(column)}" for column in merge.rows.column_names}
        with committing(f"Committing to table {self._name}"):
            merger = self._table.merge(
                source, match, source_alias="s", target_alias="t", commit_properties=self._properties(offsets)
            ).when_matched_delete(f"s.{_DELETE}")
            merger = merger.when_matched_update(values)
            merger.when_not_matched_insert(values, predicate=f"not s.{_DELETE}").execute()

    def replace(self, replacement: IntervalReplacement, rows: Iterable[pa.Table], expected: Expected, offsets: Offsets) -> None:
        """Commit rows and offsets instead of the rows of the interval, with one overwrite."""
        self.reload()
        check_offsets(self, self._name, expected, offsets)
        batches = (batch for each in rows for batch in each.to_batches())
        value = replacement.value.replace("'", "''")
        with committing(f"Committing to table {self._name}"):
            write_deltalake(
                self._table,
                pa.RecordBatchReader.from_batches(self.schema, batches),
                mode="overwrite",
                predicate=f"{_name(replacement.column)} = '{value}'",
                commit_properties=self._properties(offsets),
            )

    def set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set offsets in a commit without files, so that commits that are under way fail. A removed offset is stored as -1."""
        for _ in range(_ATTEMPTS):
            self.reload()
            try:
                self._append([], {partition: -1 if offset is None else offset for partition, offset in offsets.items()})
                return
            except ConflictingCommitError:
                continue
        raise ConnectError(f"The offsets in table {self._name} cannot be set: other commits always come first. Try again.")

    def sweep(self, age: float) -> int:
        """Delete this connector's data files that are older than ``age`` seconds and not in the table's log."""
        with reaching(f"Looking for uncommitted data files of table {self._name}"):
            candidates = self._own_files(time.time() - age)
            if not candidates:
                return 0
            known = self._logged()
            orphans = [path for path in candidates if path not in known]
            for path in orphans:
                self._files.delete_file(path)
            if orphans:
                log.info("Deleted %d data files of table %s that were never committed", len(orphans), self._name)
            return len(orphans)

    def compact(self, target: int, least: int) -> int:
        """Merge small data files in one commit of delta-rs's optimize; return how many were replaced."""
        self.reload()
        actions = pa.table(self._table.get_add_actions())
        columns = actions.select(["partition", "size_bytes"] if "partition" in actions.column_names else ["size_bytes"])
        small = Counter(str(row.get("partition")) for row in columns.to_pylist() if row["size_bytes"] < target * _SMALL)
        if max(small.values(), default=0) < least:
            return 0
        with committing(f"Compacting table {self._name}"):
            return int(self._table.optimize.compact(target_size=target)["numFilesRemoved"])

    def expire(self, age: float) -> None:
        """Delete files, also uncommitted ones, that are older than ``age`` seconds and not in the newest version."""
        with reaching(f"Deleting old files of table {self._name}"):
            self._table.vacuum(math.ceil(age / 3600), dry_run=False, enforce_retention_duration=False, full=True)

    def _own_files(self, before: float) -> list[str]:
        found = self._files.get_file_info(fs.FileSelector("", recursive=True))
        return [
            info.path
            for info in found
            if info.is_file
            and info.base_name.startswith(self._stem)
            and info.mtime is not None
            and info.mtime.timestamp() < before
        ]

    def _logged(self) -> set[str]:
        """Return the paths of the files in the table; those of former versions are kept by a vacuum's rules, not by a sweep."""
        kept = self._table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False, full=False)
        current = map(str, pa.table(self._table.get_add_actions(flatten=True)).column("path").to_pylist())
        return {unquote(path) for path in (*current, *kept)}

    def _append(self, files: Sequence[AddAction], offsets: Offsets) -> None:
        with committing(f"Committing to table {self._name}"):
            self._table.create_write_transaction(
                list(files),
                "append",
                self._table.schema(),
                partition_by=self._table.metadata().partition_columns,
                commit_properties=self._properties(offsets),
            )

    def _properties(self, offsets: Offsets) -> CommitProperties:
        text = {f"{topic}-{partition}": offset for (topic, partition), offset in sorted(offsets.items())}
        return CommitProperties(
            custom_metadata={"sluiceway.connector": self._connector, "sluiceway.offsets": json.dumps(text)},
            max_commit_retries=0,
            app_transactions=[Transaction(_app_id(self._connector, partition), offset) for partition, offset in offsets.items()],
        )


def _app_id(connector: str, partition: TopicPartition) -> str:
    """Return the application id of a partition's offsets; a slash is in no topic's name, and quoted in a connector's."""
    return f"sluiceway/{quote(connector, safe='')}/{partition.topic}-{partition.partition}"


def _partitions(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """Yield the partition values of rows, as texts, and the rows of each."""
    if not columns:
        yield {}, rows
        return
    for found in rows.group_by(list(columns)).aggregate([]).to_pylist():
        mask = pa.repeat(pa.scalar(value=True), len(rows))
        for name, value in found.items():
            column = rows.column(name)
            equal = column.is_null() if value is None else pc.is_in(column, value_set=pa.array([value], column.type))
            mask = pc.and_(mask, equal)
        yield {name: partition_text(value) for name, value in found.items()}, rows.filter(mask)


def _statistics(rows: pa.Table, values: Mapping[str, str | None]) -> dict[str, Any]:
    """Return a file's statistics as Delta's log has them; least and greatest values of whole numbers only."""
    found: dict[str, Any] = {"numRecords": len(rows), "minValues": {}, "maxValues": {}, "nullCount": {}}
    for field in rows.schema:
        if field.name not in values and pa.types.is_integer(field.type):
            column = rows.column(field.name)
            ends: Any = pc.min_max(column).as_py()
            found["nullCount"][field.name] = column.null_count
            if ends["min"] is not None:
                found["minValues"][field.name], found["maxValues"][field.name] = ends["min"], ends["max"]
    return found


def _optional(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))


def _name(column: str) -> str:
    """Return a column's name for an SQL expression."""
    return "`" + column.replace("`", "``") + "`"


def _has(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Return whether a schema has the field at a path, which may lead through structs only."""
    fields: Any = schema
    for name in path:
        is_record = isinstance(fields, (pa.Schema, pa.StructType))
        if not is_record or name not in [field.name for field in fields]:
            return False
        fields = fields.field(name).type
    return True


def _field(schema: pa.Schema, change: ColumnChange) -> list[Field]:
    """Return the field to add; of a field in a struct, the column with a struct of this field only, which Delta merges."""
    if any(
        name in ("element", "key", "value") and not _has(schema, change.path[: at + 1])
        for at, name in enumerate(change.path[:-1])
    ):
        raise DataError(
            f"Field {'.'.join(change.path)} cannot be added: Delta adds fields to structs, not to structs in lists or maps. "
            "Leave it out by a transform, or write to a new table."
        )
    type_ = change.type
    for name in reversed(change.path[1:]):
        type_ = pa.struct([pa.field(name, type_)])
    return list(Schema.from_arrow(pa.schema([pa.field(change.path[0], type_)])).fields)
