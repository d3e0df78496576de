"""An Iceberg table: commits data files and offsets in one transaction. Runs on executors.

Offsets are table properties, one for each topic partition. A commit names the snapshot that it follows, so of two commits one
fails. PyIceberg would rebuild and repeat it with the same properties; here the offsets are compared with the newer table first.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Transaction

from sluiceway.api import TopicPartition
from sluiceway.connectors.iceberg import compaction, data_files
from sluiceway.connectors.iceberg.data_files import read
from sluiceway.connectors.iceberg.errors import committing, reaching
from sluiceway.connectors.iceberg.types import column_type
from sluiceway.connectors.tables.evolution import ColumnChange, Kind
from sluiceway.connectors.tables.store import (
    ConflictingCommitError,
    Expected,
    FencedOffsetsError,
    Merge,
    Offsets,
    Staged,
    check_offsets,
)
from sluiceway.errors import ConnectError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table import Table as PyIcebergTable
    from pyiceberg.table.metadata import TableMetadata

    from sluiceway.connectors.replacement import IntervalReplacement
    from sluiceway.connectors.tables.store import Merge


log = logging.getLogger(__name__)

_ATTEMPTS = 10


if not hasattr(Transaction, "_rebuild_snapshot_updates"):  # pragma: no cover (a version that setup.cfg excludes)
    # A method of ours that nothing calls would let two tasks write the same records.
    raise ImportError(f"This version of pyiceberg repeats commits in an unknown way. Run: {install_command('iceberg')}")
_IN_LIMIT = 200  # the number of values up to which Iceberg compares each with a file's statistics
_ROW = "__sluiceway_row"
_new: Any = expressions  # its type hints are those of the generated constructors


class _OneAttempt(Transaction):
    """A transaction that fails if another commit came first, instead of repeating itself on the newer table.

    It keeps its metadata until they change. PyIceberg's own copies them, and all snapshots in them, whenever it looks at them: 15
    times in a commit.
    """

    _known: tuple[TableMetadata, tuple[Any, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        base, updates = self._table.metadata, self._updates
        if self._known is None or self._known[0] is not base or self._known[1] is not updates:
            self._known = base, updates, super().table_metadata
        return self._known[2]

    def _rebuild_snapshot_updates(self) -> None:
        raise CommitFailedException("the table has a newer snapshot")


class IcebergTable:
    """A loaded table."""

    def __init__(self, table: PyIcebergTable, name: str, connector: str, branch: str, write_props: Mapping[str, str]) -> None:
        self._table = table
        self._name = name
        self._branch = branch
        self._connector = connector
        self._prefix = f"sluiceway.offset.{_quoted(connector)}."
        self._stem = f"sluiceway-{_quoted(connector)}"
        self._write_props = dict(write_props)
        self._arrow: tuple[Schema, pa.Schema] | None = None

    @property
    def schema(self) -> pa.Schema:
        schema = self._table.schema()
        if self._arrow is None or self._arrow[0] is not schema:
            columns = [pa.field(each.name, column_type(each.type), each.nullable) for each in schema.as_arrow()]
            self._arrow = schema, pa.schema(columns)
        return self._arrow[1]

    def offset(self, partition: TopicPartition) -> int | None:
        """Return the next offset of a partition that this connector has committed, as loaded last; None if there is none."""
        value = self._table.properties.get(self._key(partition))
        return None if value is None else int(value)

    @property
    def has_offsets(self) -> bool:
        """Whether this connector has ever committed to the table."""
        return any(name.startswith(self._prefix) for name in self._table.properties)

    def reload(self) -> None:
        """Load the table as it is now. Raises ConnectError if it was dropped or replaced."""
        known = self._table.metadata.table_uuid
        with reaching(f"Loading table {self._name}"):
            fresh = self._table.catalog.load_table(self._table.name())
        if fresh.metadata.table_uuid != known:
            raise ConnectError(f"Table {self._name} was replaced by another table of the same name. Restart the task to use it.")
        self._table = fresh

    def evolve(self, changes: Sequence[ColumnChange]) -> None:
        """Apply changes in a commit of their own, except those that another task has applied."""
        with reaching(f"Changing the columns of table {self._name}"):
            for _ in range(_ATTEMPTS):
                try:
                    with self._table.transaction() as transaction, transaction.update_schema() as update:
                        for change in changes:
                            _apply(update, change, self._table.schema())
                    return
                except CommitFailedException:
                    self.reload()
        raise ConflictingCommitError(f"The columns of table {self._name} cannot be changed: other commits always come first.")

    def check_values(self, rows: pa.Table) -> None:
        """Raise DataError for NaN as the value of a partition, which PyIceberg cannot write."""
        data_files.check_partitions(self._table, rows)

    def stage(self, rows: pa.Table) -> Staged:
        """Write rows to data files by partition."""
        with reaching(f"Writing data files of table {self._name}"):
            return Staged(list(self._written(rows)), len(rows), self._table.spec().spec_id)

    def _written(self, rows: pa.Table) -> Iterable[DataFile]:
        return data_files.write(self._table, rows, self._stem, self._write_props) if len(rows) else ()

    def discard(self, staged: Sequence[Staged]) -> None:
        """Delete data files that were never committed; a sweep deletes those that cannot be deleted now."""
        for file in (file for each in staged for file in each.files):
            try:
                self._table.io.delete(file.file_path)
            except Exception as error:  # noqa: BLE001 (any storage's error)
                log.warning("Cannot delete uncommitted data file %s: %s", file.file_path, error)

    def append(self, staged: Sequence[Staged], expected: Expected, offsets: Offsets) -> None:
        """Commit data files and offsets if the stored offsets are the ``expected`` ones."""
        self.reload()
        check_offsets(self, self._name, expected, offsets)
        files = [file for each in staged for file in each.files]
        if any(each.layout != self._table.spec().spec_id for each in staged):
            raise FencedOffsetsError(
                f"Someone changed the partitioning of table {self._name}: its new data files do not fit any more."
            )
        with committing(f"Committing to table {self._name}"):
            self._append(files, offsets)

    def merge(self, merge: Merge, expected: Expected, offsets: Offsets) -> None:
        """Commit changes by key and offsets: data files with rows of these keys are rewritten without them."""
        self._rewritten(merge, (merge.rows,), expected, offsets)

    def replace(self, replacement: IntervalReplacement, rows: Iterable[pa.Table], expected: Expected, offsets: Offsets) -> None:
        """Commit rows and offsets: data files with rows of the interval are rewritten without them."""
        old = pa.table({replacement.column: [replacement.value]})
        self._rewritten(Merge(old.slice(0, 0), old, (replacement.column,)), rows, expected, offsets)

    def _rewritten(self, merge: Merge, rows: Iterable[pa.Table], expected: Expected, offsets: Offsets) -> None:
        """Commit rows and offsets: data files with rows of the merge's keys are rewritten without them."""
        self.reload()
        check_offsets(self, self._name, expected, offsets)
        written: list[DataFile] = []
        try:
            with reaching(f"Rewriting data files of table {self._name}"):
                replaced = []
                for original, remaining in rewritten(self._table, self._branch, merge):
                    files = list(self._written(remaining))
                    written += files
                    replaced.append(original)
                for each in rows:
                    written += self._written(each)
            with committing(f"Committing to table {self._name}"):
                self._replace(replaced, written, offsets)
        except (ConflictingCommitError, ConnectError) as error:
            if not _may_be_committed(error):
                self.discard([Staged(written, 0)])
            raise

    def set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set or remove offsets, with a snapshot without files so that commits that are under way fail."""
        for _ in range(_ATTEMPTS):
            self.reload()
            removed = [self._key(partition) for partition, offset in offsets.items() if offset is None]
            try:
                with committing(f"Setting offsets in table {self._name}"):
                    kept = {partition: offset for partition, offset in offsets.items() if offset is not None}
                    self._append([], kept, [name for name in removed if name in self._table.properties])
                return
            except ConflictingCommitError:
                continue
        raise ConnectError(f"The offsets in table {self._name} cannot be set: other commits always come first. Try again.")

    def sweep(self, age: float) -> int:
        """Delete this connector's data files that are older than ``age`` seconds and not in any snapshot."""
        with reaching(f"Looking for uncommitted data files of table {self._name}"):
            candidates = self._own_files(time.time() - age)
            if candidates:
                files = self._table.inspect.all_data_files().column("file_path").to_pylist()
                referenced = {_path(str(file)) for file in files}
                orphans = [location for path, location in candidates.items() if path not in referenced]
                for location in orphans:
                    self._table.io.delete(location)
                if orphans:
                    log.info("Deleted %d data files of table %s that were never committed", len(orphans), self._name)
                return len(orphans)
        return 0

    def compact(self, target: int, least: int) -> int:
        """Merge small data files of each partition, a commit for each file that is written; return how many were replaced."""
        self.reload()
        with reaching(f"Looking for small data files of table {self._name}"):
            groups = list(compaction.groups(self._table, self._branch, target, least))
        return sum(self._rewrite(group) for group in groups)

    def _rewrite(self, group: Sequence[FileScanTask]) -> int:
        with reaching(f"Rewriting small data files of table {self._name}"):
            rows = pa.concat_tables([data_files.read(self._table, task) for task in group])
            written = Staged(list(self._written(rows)), len(rows))
        try:
            for _ in range(_ATTEMPTS):
                with reaching(f"Loading table {self._name}"):
                    if not compaction.unchanged(self._table, self._branch, group):
                        break
                try:
                    with committing(f"Committing to table {self._name}"):
                        self._replace([task.file for task in group], written.files, {})
                    return len(group)
                except ConflictingCommitError:
                    self.reload()
            log.info("Small data files of table %s were changed by others meanwhile and are left as they are", self._name)
        except ConnectError as error:
            if not _may_be_committed(error):
                self.discard([written])
            raise
        self.discard([written])
        return 0

    def expire(self, age: float) -> None:
        """Expire snapshots that are older than ``age`` seconds, except the newest of each branch and tag."""
        limit = datetime.fromtimestamp(time.time() - age, timezone.utc)
        old = [each for each in self._table.metadata.snapshots if each.timestamp_ms < limit.timestamp() * 1000]
        if len(old) > 1 or (old and len(self._table.metadata.snapshots) > 1):
            with committing(f"Expiring snapshots of table {self._name}"):
                self._table.maintenance.expire_snapshots().older_than(limit).commit()
            self.reload()

    def _own_files(self, before: float) -> dict[str, str]:
        """Return the locations of this connector's data files that were written before a time, by path."""
        from pyarrow import fs

        root = self._table.location() + "/data"
        scheme, host, path = PyArrowFileIO.parse_location(root)
        io = self._table.io
        files = (io if isinstance(io, PyArrowFileIO) else PyArrowFileIO(io.properties)).fs_by_scheme(scheme, host)
        found = files.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        start = root[: len(root) - len(path)] if root.endswith(path) else ""
        return {
            _path(start + info.path): start + info.path
            for info in found
            if info.base_name.startswith(self._stem + "-")
            and info.is_file
            and info.mtime is not None
            and info.mtime.timestamp() < before
        }

    def _key(self, partition: TopicPartition) -> str:
        return f"{self._prefix}{partition.topic}-{partition.partition}"

    def _append(self, files: Sequence[DataFile], offsets: Offsets, removed: Sequence[str] = ()) -> None:
        transaction = _OneAttempt(self._table)
        update = transaction.update_snapshot(self._summary(offsets), branch=self._branch)
        merging = self._table.properties.get("commit.manifest-merge.enabled", "true") == "true"
        with update.merge_append() if merging else update.fast_append() as producer:
            for file in files:
                producer.append_data_file(file)
        self._finish(transaction, offsets, removed)

    def _replace(self, replaced: Sequence[DataFile], written: Sequence[DataFile], offsets: Offsets) -> None:
        if not replaced:
            return self._append(written, offsets)
        transaction = _OneAttempt(self._table)
        with transaction.update_snapshot(self._summary(offsets), branch=self._branch).overwrite() as producer:
            for file in replaced:
                producer.delete_data_file(file)
            for file in written:
                producer.append_data_file(file)
        return self._finish(transaction, offsets)

    def _finish(self, transaction: Transaction, offsets: Offsets, removed: Sequence[str] = ()) -> None:
        if removed:
            transaction.remove_properties(*removed)
        if offsets:
            transaction.set_properties({self._key(partition): str(offset) for partition, offset in offsets.items()})
        self._table = transaction.commit_transaction()

    def _summary(self, offsets: Offsets) -> dict[str, str]:
        text = {f"{topic}-{partition}": offset for (topic, partition), offset in sorted(offsets.items())}
        return {"sluiceway.connector": self._connector, "sluiceway.offsets": json.dumps(text)}


def _quoted(connector: str) -> str:
    """Return a connector's name without dots and slashes, so that one name is never the start of another's keys."""
    return quote(connector, safe="").replace(".", "%2E")


def _path(location: str) -> str:
    return PyArrowFileIO.parse_location(location)[2]


def _may_be_committed(error: ConnectError) -> bool:
    from sluiceway.connectors.tables.store import UnknownOutcomeError

    return isinstance(error, UnknownOutcomeError)


def _apply(update: Any, change: ColumnChange, schema: Any) -> None:
    """Add a change to an update of the schema unless the table has it already."""
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids

    [field] = _pyarrow_to_schema_without_ids(pa.schema([pa.field("x", change.type)])).fields
    existing = schema._name_to_id.get(".".join(change.path))
    if change.kind is Kind.ADD:
        if existing is None:
            update.add_column(change.path, field.field_type)
    elif change.kind is Kind.WIDEN:
        if schema.find_type(existing) != field.field_type:
            update.update_column(change.path, field_type=field.field_type)
    else:
        update.make_column_optional(change.path)


def rewritten(table: Table, branch: str, merge: Merge) -> Iterator[tuple[DataFile, pa.Table]]:
    """Yield each data file that holds rows of the merge's keys, with its other rows."""
    keys = pa.concat_tables([merge.rows.select(list(merge.id_columns)), merge.deleted], promote_options="permissive")
    if not len(keys) or table.metadata.snapshot_by_name(branch) is None:
        return
    scan = table.scan(row_filter=_filter(keys)).use_ref(branch)
    for task in scan.plan_files():
        rows = read(table, task)
        remaining = without(rows, keys)
        if len(remaining) < len(rows):
            yield task.file, remaining


def without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Return the rows whose columns named as those of ``keys`` do not equal one of its rows."""
    names = keys.column_names
    wanted = pa.schema([rows.schema.field(name).remove_metadata().with_nullable(True) for name in names])
    numbered = rows.select(names).cast(wanted).append_column(_ROW, pa.array(range(len(rows)), pa.int64()))
    kept = numbered.join(keys.cast(wanted), keys=names, join_type="left anti")  # of the keys only: joins take no nested columns
    return rows.take(kept.column(_ROW).combine_chunks().sort())


def _filter(keys: pa.Table) -> BooleanExpression:
    """Return a condition that all rows of the keys meet, by which data files are skipped."""
    found: BooleanExpression = AlwaysTrue()
    for name in keys.column_names:
        column = keys.column(name)
        if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_date(column.type)):
            continue
        if len(keys) <= _IN_LIMIT:
            found = And(found, _new.In(name, set(column.to_pylist())))
        else:
            ends: Any = pc.min_max(column).as_py()
            found = And(found, And(_new.GreaterThanOrEqual(name, ends["min"]), _new.LessThanOrEqual(name, ends["max"])))
    return found
