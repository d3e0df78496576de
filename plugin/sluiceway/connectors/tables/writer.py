"""Collects the rows for one table and commits them with their offsets. Runs on executors."""

from __future__ import annotations

import itertools
import logging
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import COLUMN
from sluiceway.connectors.tables.evolution import ColumnChange, Evolution, applied, column_schema
from sluiceway.connectors.tables.store import ConflictingCommitError, Merge, Offsets, Staged, Table, TableStore
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluiceway.connectors.replacement import IntervalReplacement
    from sluiceway.connectors.tables.config import TableOptions
    from sluiceway.connectors.tables.rows import Rows

    _Fit = Callable[[pa.Schema], pa.Table]


log = logging.getLogger(__name__)

BUFFER_BYTES = 64 * 1024 * 1024
"""Appended rows are written to a data file when they exceed this size in memory."""

_ATTEMPTS = 20
ORDER, DELETED = "__sluiceway_order", "__sluiceway_deleted"


class TableWriter:
    """Buffers rows until they are large enough for a data file, and keeps only the files' metadata until the commit.

    Changes by key stay in memory until the commit. ``prepare`` may fail and then has no effect on what is committed; ``add``
    cannot fail.
    """

    def __init__(self, name: str, store: TableStore, options: TableOptions, *, seeks: bool, sweeps: bool) -> None:
        """``seeks``: the task starts at this table's offsets, so that no records before them are delivered.

        ``sweeps``: delete the files of killed tasks when the table is loaded.
        """
        self._sweep_age = options.orphan_age if sweeps else None
        self.name = name
        self._seeks = seeks
        self._renewed: set[TopicPartition] = set()
        self._store = store
        self._options = options
        self._id_columns = options.id_columns(name)
        self._evolution = Evolution(store, case_insensitive=options.case_insensitive, id_columns=self._id_columns)
        self._table: Table | None = None
        self._expected: dict[TopicPartition, int | None] = {}
        self._unknown: set[TopicPartition] = set()
        self._checked: tuple[pa.Schema, pa.Schema] | None = None
        self._buffer: list[pa.Table] = []
        self._bytes = 0
        self._staged: list[Staged] = []
        self._spool = Spool()  # instead of data files, for what replaces an interval's rows

    @property
    def has_changes(self) -> bool:
        return bool(self._buffer or self._staged)

    @property
    def bytes(self) -> int:
        """The size of the rows in memory."""
        return self._bytes

    def opened(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that partitions were assigned: other tasks may have committed offsets of them."""
        self._unknown.update(partitions)

    def stored(self, partition: TopicPartition) -> int | None:
        """Return the offset in the table as this task knows it: only records from there on are taken."""
        self._load()
        if partition not in self._expected:
            self._expected[partition] = None if self._table is None else self._table.offset(partition)
        return self._expected[partition]

    def prepare(self, rows: Rows) -> pa.Table | None:
        """Return the rows as the table takes them, without those it has; None if none are left. Creates or changes the table.

        Raises DataError for rows that do not fit, RetriableError, or ConnectError if the table cannot be used.
        """
        self._load()
        rows = self._new_rows(self._store.adapted(self.name, rows))
        if not len(rows):
            return None
        written, fit = self._fitting(rows)
        if self._table is None and not len(written):
            return None  # deletions in a table that does not exist yet
        table = self._ready(written.schema, fit) if len(written) else self._table
        assert table is not None  # noqa: S101
        fitted = fit(table.schema)
        table.check_values(fitted)
        column = self._options.interval_column
        if column is not None and column not in fitted.column_names:
            raise ConnectError(
                f"Table {self.name} has no column {column} ({COLUMN}). Add it, as a text, or set "
                f"{self._options.prefix}tables.evolve-schema-enabled=true to have it added."
            )
        if self._bytes > BUFFER_BYTES and self._options.replacement is not None:
            self._spool.add(pa.concat_tables([self._evolution.fit(each, table.schema) for each in self._buffer]))
            self._buffer, self._bytes = [], 0
        elif self._bytes > BUFFER_BYTES and not self._options.upsert:
            self._stage(table)
        return fitted

    def check(self, rows: Rows) -> None:
        """Raise DataError for rows that ``prepare`` would refuse. The table stays as it is."""
        self._load()
        rows = self._new_rows(self._store.adapted(self.name, rows))
        if len(rows):
            written, fit = self._fitting(rows)
            if len(written):
                fitted = fit(self._columns_for(written.schema))
                if self._table is not None:
                    self._table.check_values(fitted)

    def add(self, prepared: pa.Table) -> None:
        """Take rows that ``prepare`` returned."""
        self._buffer.append(prepared)
        self._bytes += prepared.nbytes

    def commit(self, offsets: Offsets) -> None:
        """Commit what was added, with the next offsets of its partitions. Raises as ``Table.append`` does.

        Offsets of partitions without records for this table are left out: there is nothing to compare them with.
        """
        table, offsets = self._table, {partition: offset for partition, offset in offsets.items() if partition in self._expected}
        assert table is not None  # noqa: S101 (rows were prepared for it)
        if self._options.upsert:
            self._attempt(lambda: self._merge(table, offsets), table)
        else:
            self._stage(table)
            self._attempt(lambda: table.append(self._staged, self._expected, offsets), table)
        log.info("Committed %d records' rows to table %s with offsets %s", self._count(), self.name, _text(offsets))
        self._expected.update(offsets)
        self._renewed.difference_update(offsets)
        self._clear()

    def replace(self, replacement: IntervalReplacement) -> None:
        """Commit what was added, and delete the rows of the interval that were there. Raises as ``Table.replace`` does."""
        stored = {partition: self.stored(partition) for partition in replacement.ends}
        table = self._table
        if table is None or replacement.is_done(stored):
            self._clear()
            return

        def replace() -> None:
            rows = itertools.chain(self._spool.tables(), self._buffer)
            fitting = (self._evolution.fit(each, table.schema) for each in rows)
            table.replace(replacement, fitting, self._expected, replacement.ends)

        self._attempt(replace, table)
        log.info("Replaced the rows of interval %s in table %s", replacement.value, self.name)
        self._expected.update(replacement.ends)
        self._clear()

    def discard(self, *, delete: bool) -> None:
        """Forget what was added and what is known of the table; delete its files, unless a commit may have taken effect."""
        if delete and self._table is not None and self._staged:
            self._table.discard(self._staged)
        self._clear()
        self._table = self._checked = None

    def _clear(self) -> None:
        self._buffer, self._staged, self._bytes = [], [], 0
        self._spool.clear()

    def _count(self) -> int:
        return sum(each.rows for each in self._staged) + sum(map(len, self._buffer))

    def _load(self) -> None:
        if self._table is None:
            self._table = self._store.table(self.name)
            self._expected.clear()
            self._unknown.clear()
            if self._table is not None and self._sweep_age is not None:
                self._swept(self._table, self._sweep_age)
        elif self._unknown:
            self._table.reload()
            for partition in self._unknown:
                self._expected.pop(partition, None)
            self._unknown.clear()

    def _swept(self, table: Table, age: float) -> None:
        """Delete old files that were never committed. A failure, such as no right to list the folder, is only logged."""
        self._sweep_age = None
        try:
            table.sweep(age)
        except ConnectError as error:
            log.warning("Table %s keeps data files that were never committed, if there are any: %s", self.name, error)

    def _new_rows(self, rows: Rows) -> Rows:
        """Return the rows that the table does not have: after a crash between the commits of two tables, one is ahead.

        A single table has no such rows: the topic was created again, and its records are new.
        """
        known, first = self.stored(rows.partition), rows.offsets[0].as_py()
        if known is None or first >= known:
            return rows
        if self._seeks:
            if rows.partition not in self._renewed:
                self._renewed.add(rows.partition)
                log.warning(
                    "Records of %s-%d continue at offset %d, but table %s has those before %d: the topic was created again, or "
                    "its records were deleted. They are written as new records.",
                    *rows.partition,
                    first,
                    self.name,
                    known,
                )
            return rows
        return rows.filter(pc.greater_equal(rows.offsets, pa.scalar(known, pa.int64())))

    def _fitting(self, rows: Rows) -> tuple[pa.Table, _Fit]:
        """Return the rows that are not deletions, and the function that fits all of them to columns. It raises DataError."""
        if not self._options.upsert:
            return rows.values, lambda columns: self._evolution.fit(rows.values, columns)
        keys, values = keys_of(rows, self._id_columns), rows.values
        for name in keys.column_names:
            if name not in values.column_names:
                values = values.append_column(keys.schema.field(name), keys.column(name))
        deleted = rows.deleted if rows.deleted is not None else pa.repeat(pa.scalar(value=False), len(rows))
        written = values.filter(pc.invert(deleted))

        def fit(columns: pa.Schema) -> pa.Table:
            self._evolution.fit(written, columns)
            optional = pa.schema([field.with_nullable(True) for field in columns])
            return self._evolution.fit(values, optional).append_column(DELETED, deleted)

        return written, fit

    def _ready(self, needed: pa.Schema, fit: _Fit) -> Table:
        """Return the table with the columns that values need.

        ``fit`` is called before the table is created or changed, since that would stay, and concern all writers, even if the
        rows are refused.
        """
        if self._table is None:
            self._table = self._created(needed, fit)
        table = self._table
        if self._options.evolve and self._checked != (table.schema, needed):
            if changes := self._evolution.changes(table.schema, needed):
                fit(self._changed(table, changes))
                table.evolve(changes)
                log.info("Changed table %s: %s", self.name, ", ".join(map(str, changes)))
            self._checked = (table.schema, needed)
        return table

    def _columns_for(self, needed: pa.Schema) -> pa.Schema:
        """Return the columns that ``_ready`` would give the table."""
        if self._table is None:
            return self._new_columns(needed)
        changes = self._evolution.changes(self._table.schema, needed) if self._options.evolve else ()
        return self._changed(self._table, changes)

    def _changed(self, table: Table, changes: Sequence[ColumnChange]) -> pa.Schema:
        columns = applied(table.schema, changes)
        self._store.check_names(columns)
        return columns

    def _new_columns(self, needed: pa.Schema) -> pa.Schema:
        columns = column_schema(self._store, needed, force_optional=self._options.force_optional, required=self._id_columns)
        if not len(columns):
            raise DataError(f"Table {self.name} cannot be created for records without fields that have values.")
        self._store.check_names(columns)
        return columns

    def _created(self, needed: pa.Schema, fit: _Fit) -> Table:
        prefix, options = self._options.prefix, self._options
        if not options.auto_create:
            raise ConnectError(
                f"Table {self.name} does not exist. Create it, or set {prefix}tables.auto-create-enabled=true to have it created."
            )
        columns = self._new_columns(needed)
        fit(columns)
        table = self._store.create(self.name, columns, options.partition_by(self.name), self._id_columns)
        log.info("Created table %s: %s", self.name, ", ".join(f"{field.name} {field.type}" for field in columns))
        return table

    def _merge(self, table: Table, offsets: Offsets) -> None:
        optional = pa.schema([*(field.with_nullable(True) for field in table.schema), pa.field(DELETED, pa.bool_())])
        merge = last_changes([self._evolution.fit(each, optional) for each in self._buffer], self._id_columns)
        rows = self._evolution.fit(merge.rows, table.schema)
        table.merge(type(merge)(rows, merge.deleted, merge.id_columns), self._expected, offsets)

    def _stage(self, table: Table) -> None:
        """Write the rows in memory to data files."""
        if self._buffer:
            rows = pa.concat_tables([self._evolution.fit(each, table.schema) for each in self._buffer])
            self._staged.append(table.stage(rows))
            self._buffer, self._bytes = [], 0

    def _attempt(self, commit: Callable[[], None], table: Table) -> None:
        """Call ``commit`` until no other writer commits at the same time."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return commit()
            except ConflictingCommitError as error:
                log.info("Commit to table %s: %s; trying again on the newer table", self.name, error)
                table.reload()
        return commit()


def _text(offsets: Offsets) -> str:
    return ", ".join(f"{topic}-{partition}: {offset}" for (topic, partition), offset in sorted(offsets.items()))


def keys_of(rows: Rows, id_columns: Sequence[str]) -> pa.Table:
    """Return the id columns of rows, from the values or else from the keys. Raises DataError if one is missing or null."""
    for table in (rows.values, rows.keys):
        if table is not None and set(id_columns) <= set(table.column_names):
            return _without_nulls(table.select(list(id_columns)))
    if rows.key is not None and len(id_columns) == 1:
        return _without_nulls(pa.table({id_columns[0]: rows.key}))
    raise DataError(
        f"Records of {rows.partition.topic} have no id columns {', '.join(id_columns)}, neither in the value nor in the key."
    )


def _without_nulls(keys: pa.Table) -> pa.Table:
    for name in keys.column_names:
        if keys.column(name).null_count:
            raise DataError(f"Id column {name} has no value in {keys.column(name).null_count} records.")
    return keys


def last_changes(batches: Sequence[pa.Table], id_columns: tuple[str, ...]) -> Merge:
    """Return the last change of each key of batches in the order they were read; of their columns the last is ``DELETED``."""
    changes = pa.concat_tables(batches)
    numbered = changes.append_column(ORDER, pa.array(range(len(changes)), pa.int64()))
    last = numbered.group_by(list(id_columns)).aggregate([(ORDER, "max")])
    kept = changes.take(last.column(f"{ORDER}_max").combine_chunks().sort())
    deleted = kept.column(DELETED)
    rows = kept.filter(pc.invert(deleted)).drop_columns([DELETED])
    return Merge(rows, kept.filter(deleted).select(list(id_columns)), id_columns)


class Spool:
    """Tables in a temporary folder, which ends with it."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[Path] = []

    def add(self, rows: pa.Table) -> None:
        """Write rows to a file."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="sluiceway-spool-")
        file = Path(self._folder.name) / str(len(self._files))
        with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_file(stream, rows.schema) as writer:
            writer.write_table(rows)
        self._files.append(file)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows that were added, in their order."""
        for file in self._files:
            with pa.memory_map(str(file)) as stream:
                yield pa.ipc.open_file(stream).read_all()

    def clear(self) -> None:
        """Delete the files."""
        self._files = []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
