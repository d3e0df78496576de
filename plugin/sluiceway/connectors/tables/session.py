"""A running task of a table sink: collects rows by table and commits them with their offsets. Runs on the executors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api import SinkRecord, SinkTaskContext, TopicPartition
from sluiceway.api.columns import ColumnBatch, NotColumnar, RowFormReason
from sluiceway.api.outage import Outage
from sluiceway.connectors.path_elements import check_table
from sluiceway.connectors.replacement import IntervalReplacement
from sluiceway.connectors.tables.config import TableOptions
from sluiceway.connectors.tables.positions import Positions
from sluiceway.connectors.tables.rows import batch_of, kind, rows_of, source_of
from sluiceway.connectors.tables.store import FencedOffsetsError, TableStore, UnknownOutcomeError
from sluiceway.connectors.tables.writer import TableWriter
from sluiceway.errors import DataError, FencedError, RetriableError

if TYPE_CHECKING:
    from sluiceway.connectors.tables.config import TableOptions
    from sluiceway.connectors.tables.rows import Rows


log = logging.getLogger(__name__)

_REPORT_SECONDS = 60.0
_UPSERT_BYTES = 256 * 1024 * 1024
_FENCED_LIMIT = 5


class TableSession:
    """Implements ``TableSinkTask`` for one store. Its methods are those of a sink task.

    Rows are committed with the next offsets in one transaction of each table, and only if the table's offsets are still those
    that this task knows. So a task that lost its partitions cannot commit, and records below a table's offsets are skipped.
    """

    def __init__(self, context: SinkTaskContext, options: TableOptions, store: TableStore) -> None:
        self.context = context
        self._options = options
        self._store = store
        self._router = Router(options)
        self._seeks = store.shares_offsets or self._router.single is not None
        self._writers: dict[str, TableWriter] = {}
        self._positions = Positions()
        self._unclaimed: set[TopicPartition] = set()
        self._swept: set[str] = set()
        self._count = self._fenced = 0
        self._failure: Exception | None = None
        self._outage = Outage(options.unreachable)
        self._unknown = Outage(options.unreachable)
        self._due = time.monotonic() + options.interval

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Continue at the offsets in the table; if it cannot be reached, the next ``put`` tries again."""
        opened = set(map(TopicPartition._make, partitions))
        for writer in self._writers.values():
            writer.opened(opened)
        self._unclaimed |= opened
        try:
            self._claim(fetched=False)
        except RetriableError as error:
            log.warning("Cannot read the table's offsets yet, the next put tries again: %s", error)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions; records that are not committed are read again by the next owner."""
        closed = set(map(TopicPartition._make, partitions))
        uncommitted = closed & self._positions.pending().keys()
        self._positions.close(closed)
        self._unclaimed -= closed
        if uncommitted:
            self._rewind(delete=True)

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._before()
        for _, group in groupby(records, kind):
            run = list(group)
            try:
                self._take(batch_of(run, self._store.schemaless))
            except DataError:
                for record in run:  # to find the bad ones
                    self._take_one(record)
        self._after()

    def put_columns(self, batch: ColumnBatch) -> None:
        self._before()
        try:
            self._take(batch)
        except DataError as error:
            raise NotColumnar(str(error), RowFormReason.ERROR) from error  # put() reports the bad records
        self._after()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Commit to the tables, and return the offsets that the tables have. A failure is raised by the next ``put``."""
        replacement = self._options.replacement
        if replacement is not None and not replacement.is_complete(offsets):
            return {}
        try:
            if replacement is None:
                self._commit()
            else:
                self._replace(replacement)
        except Exception as error:  # noqa: BLE001 (raised by the next put; raised here, it would only be logged)
            log.warning("Offsets cannot be committed, because the commit to the table failed: %s", error)
            self._failure = error
        safe = {}
        for partition, consumed in offsets.items():
            key = TopicPartition._make(partition)
            durable = None if key in self._unclaimed else self._positions.durable(key, consumed)
            if durable is not None:
                safe[key] = durable
        return safe

    def stop(self) -> None:
        for writer in self._writers.values():
            writer.discard(delete=True)
        self._store.close()

    def _before(self) -> None:
        """Claim partitions and repeat a failed commit before more records are taken."""
        failure, self._failure = self._failure, None
        if failure is not None and not isinstance(failure, RetriableError):
            raise failure
        try:
            if self._unclaimed:
                self._claim(fetched=True)
            if failure is not None and self._options.replacement is None:
                self._commit()
        except RetriableError as error:
            self._failure = error
            self._outage.lasts(error)
            raise
        self._outage.ended()
        for partition, offset in self._positions.rewinds().items():
            self.context.offset({partition: offset})

    def _after(self) -> None:
        self._positions.rewound()
        if self._options.replacement is not None:
            return  # all in one commit
        full = self._count >= self._options.flush_size or sum(each.bytes for each in self._writers.values()) > _UPSERT_BYTES
        if self._positions.pending() and (full or time.monotonic() >= self._due):
            self.context.request_commit()

    def _claim(self, *, fetched: bool) -> None:
        """Continue at the table's offsets. With several tables the group's offsets are where to continue: see ``_new_rows``.

        With ``fetched``, records have been fetched from other offsets; they are dropped.
        """
        stored = {partition: self._stored(partition) for partition in self._unclaimed}
        for partition, offset in stored.items():
            self._positions.open(partition, offset)
            if offset is not None:
                if fetched:
                    self._positions.rewind(partition, offset)
                self.context.offset({partition: offset})
        self._unclaimed.clear()

    def _stored(self, partition: TopicPartition) -> int | None:
        """Return the offset from which to read, if the tables decide it."""
        if self._store.shares_offsets:
            return self._store.offset(partition)
        return None if self._router.single is None else self._writer(self._router.single).stored(partition)

    def _take_one(self, record: SinkRecord) -> None:
        try:
            self._take(batch_of([record], self._store.schemaless))
        except DataError as error:
            reporter = self.context.errant_record_reporter
            if reporter is None:
                raise
            reporter.report(record, error).result(_REPORT_SECONDS)  # durable before a table's offsets skip the record
            self._took(record.original_topic_partition, record.original_kafka_offset, 1)

    def _take(self, batch: ColumnBatch) -> None:
        partition, offsets = source_of(batch)
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        if not self._positions.accepts(partition, first):
            return
        rows = rows_of(batch, self._options)
        if self._options.replacement is not None and (taken := self._positions.taken(partition)) is not None and first < taken:
            if last < taken:
                return  # put again, as after a rebalance, and not committed yet
            rows = None if rows is None else rows.filter(pc.greater_equal(rows.offsets, pa.scalar(taken, pa.int64())))
        prepared = []
        try:
            routes = (
                [] if rows is None else [(self._writer(name), routed) for name, routed in self._router.routed(rows, batch.topic)]
            )
            if len(routes) > 1:  # no table changes for a batch that another table refuses
                for writer, routed in routes:
                    writer.check(routed)
            for writer, routed in routes:
                if (ready := writer.prepare(routed)) is not None:
                    prepared.append((writer, ready))
        except RetriableError as error:
            self._outage.lasts(error)
            raise
        for writer, ready in prepared:
            writer.add(ready)
        self._took(partition, last, batch.count)

    def _took(self, partition: TopicPartition, last: int, count: int) -> None:
        self._positions.took(partition, last)
        self._count += count

    def _commit(self) -> None:
        """Commit to each table with new rows. Rewinds if the outcome is unknown or another task has committed."""
        self._due = time.monotonic() + self._options.interval
        offsets = self._positions.pending()

        def commit() -> None:
            for writer in self._writers.values():
                if writer.has_changes:
                    writer.commit(offsets)

        self._committed(commit)

    def _replace(self, replacement: IntervalReplacement) -> None:
        """Replace the rows of the interval in each table, unless a killed task has."""

        def replace() -> None:
            for name in self._options.tables or list(self._writers):
                self._writer(name).replace(replacement)

        self._committed(replace)

    def _committed(self, commit: Callable[[], None]) -> None:
        try:
            with self._store.commits():
                commit()
        except UnknownOutcomeError as error:
            log.warning("A commit may or may not have taken effect; reading the table and the records again: %s", error)
            self._rewind(delete=False)
            self._unknown.lasts(error)  # a catalog that is read but fails each commit must not be tried without end
            return
        except FencedOffsetsError as error:
            log.warning("%s Reading the records after those offsets again.", error)
            self._rewind(delete=True)
            self._fenced += 1
            if self._fenced >= _FENCED_LIMIT:
                raise FencedError(f"{error} This happened {self._fenced} times in a row: stop the other writer.") from error
            return
        self._positions.committed()
        self._unknown.ended()
        self._count = self._fenced = 0

    def _rewind(self, *, delete: bool) -> None:
        """Drop what is not committed and read it again, from a single table's offsets."""
        for writer in self._writers.values():
            writer.discard(delete=delete)
        self._writers.clear()
        self._count = 0
        back = self._positions.rewind_pending()
        for partition, offset in back.items():
            self.context.offset({partition: offset})
        if self._seeks:
            self._unclaimed.update(back)

    def _writer(self, name: str) -> TableWriter:
        if name not in self._writers:
            sweeps = name not in self._swept
            self._writers[name] = TableWriter(name, self._store, self._options, seeks=self._seeks, sweeps=sweeps)
            self._swept.add(name)
        return self._writers[name]


class Router:
    """Selects tables by the config: all listed ones, those whose expression matches the route field, or the one it names.

    Where the config names none, the topic names it.
    """

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self._regexes = {table: options.route_regex(table) for table in options.tables}
        self.single = options.tables[0] if len(options.tables) == 1 and not options.dynamic and not options.route_field else None

    def routed(self, rows: Rows, topic: str) -> Iterator[tuple[str, Rows]]:
        """Yield the names of tables and the rows for each, which are of this topic, after transforms.

        Raises DataError for a record whose text is no name for a table.
        """
        if self._options.route_field is None:
            for table in self._options.tables or (topic,):
                yield table, rows
            return
        routes = self._routes(rows)
        for route in pc.unique(routes).to_pylist():
            if route is not None:
                mask = pc.is_in(routes, value_set=pa.array([route]))
                for table in self._tables(route):
                    yield table, rows.filter(mask)

    def _tables(self, route: str) -> list[str]:
        if self._options.dynamic:
            return [check_table(route.lower(), namespaced=self._options.namespaced)]
        return [table for table, regex in self._regexes.items() if regex is not None and regex.fullmatch(route)]

    def _routes(self, rows: Rows) -> pa.Array[Any]:
        """Return the text of the route field for each row; null without one."""
        names = self._options.route_field or ()
        for table in (rows.values, rows.keys):
            if table is not None and names[0] in table.column_names:
                column = table.column(names[0]).combine_chunks()
                for name in names[1:]:
                    column = pc.struct_field(column, name)
                return column.cast(pa.string())
        return pa.nulls(len(rows), pa.string())
