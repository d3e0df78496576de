"""The task of DltSource: starts a reader for each run, and makes records of its rows. Runs on executors."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import Column, ColumnBatch, Offset, Partition, Pump, SourceColumns, SourceRecord, SourceTask
from sluiceway.api.outage import Outage
from sluiceway.backoff import Backoff
from sluiceway.connectors.cdc.naming import topic_name
from sluiceway.connectors.dlt import frames
from sluiceway.connectors.dlt.config import DltConfig
from sluiceway.connectors.dlt.frames import Frame
from sluiceway.connectors.dlt.process import ReaderProcess, SourceUnreachableError
from sluiceway.data import Schema, Type
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

log = logging.getLogger(__name__)

SOURCE, RESOURCE = "source", "resource"
_POLL_SECONDS = 1.0
_COMMIT_SECONDS = 0.5  # between transactions, which take some milliseconds each
_FRAMES = 4  # that wait for poll
_FEWEST_ROWS_FOR_COLUMNS = 32
_PAUSES = (1.0, 60.0)

_Records = SourceColumns | Sequence[SourceRecord]


class _Made(NamedTuple):
    """A table, as records have it."""

    topic: str
    schema: Schema
    key: Schema | None


class DltSourceTask(SourceTask):
    """Reads the resources of dlt sources, in runs. A run that is broken off begins again after the stored offsets."""

    _pump: Pump[Frame] | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Begin the first run. Raises ConfigError."""
        self._options = DltConfig.of(config)
        self._config = dict(config)
        self._reader: ReaderProcess | None = None
        self._due = time.monotonic()
        self._tables: dict[str, _Made] = {}
        self._partitions: dict[tuple[str, str], dict[str, str]] = {}
        self._offsets: dict[tuple[str, str], Offset | None] = {}  # of what was handed over
        self._idle: list[tuple[Partition, Offset | None]] = []
        self._outage = Outage(self._options.unreachable)
        self._backoff = Backoff(*_PAUSES)
        self._covered = True  # whether offsets cover all rows that were handed over
        self._uncommitted = False  # whether such rows wait for the end of a transaction
        self._moved = False  # whether the open transaction has offsets
        self._committed = time.monotonic()
        self._runs = self._rows = 0
        self._begin()

    # Runs.

    def _begin(self) -> None:
        reader = self._reader = ReaderProcess({"config": self._config})
        self._pump = Pump(self.context, reader.frames, _FRAMES, reader.end)

    def _end(self, pause: float) -> None:
        """End the reader's process; the next run begins after ``pause`` seconds."""
        if self._pump is not None:
            self._pump.close()
        self._pump = self._reader = None
        self._due = time.monotonic() + pause

    @property
    def ended(self) -> bool:
        """Whether a bounded run has read the source once."""
        return self._runs > 0

    def stop(self) -> None:
        if self._pump is not None:
            self._pump.close()

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of runs that have ended, and of rows."""
        return {"runs-completed": self._runs, "rows-read": self._rows}

    # Records.

    def poll(self) -> Sequence[SourceRecord] | None:
        found = self._next(columns=False)
        return found.records() if isinstance(found, SourceColumns) else found

    def poll_columns(self) -> _Records | None:
        return self._next(columns=True)

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        idle, self._idle = self._idle, []
        return idle

    def _next(self, *, columns: bool) -> _Records | None:
        """Return the rows of the next frame. An empty list lets the runtime store offsets, and end a transaction."""
        if self._pump is None:
            wait = self._due - time.monotonic()
            if wait > 0:
                self.context.wait(min(wait, _POLL_SECONDS))
                return None
            self._begin()
            return None
        try:
            taken = self._pump.take(1, _POLL_SECONDS)
            while taken and taken[0].kind == frames.TABLE:
                self._add_table(**taken[0].head)
                taken = self._pump.take(1, _POLL_SECONDS)  # its rows follow at once
        except SourceUnreachableError as error:
            return self._wait_for_source(error)
        if not taken:
            return [] if self._commit(idle=True) else None
        return self._handle(taken[0], columns=columns)

    def _handle(self, frame: Frame, *, columns: bool) -> _Records | None:
        head = frame.head
        if frame.kind == frames.ROWS:
            self._answered()
            return self._rows_of(frame, columns=columns)
        if frame.kind == frames.STREAMS:
            self._answer(head["partitions"])
        elif frame.kind == frames.OFFSETS:
            for source, resource, offset in head["offsets"]:
                self._moves(source, resource, offset)
                self._idle.append((self._partition(source, resource), offset))
            self._covered = self._covered or bool(head["covered"])
            self._commit(idle=True)
            return []
        elif frame.kind == frames.END:
            self._answered()
            self._runs += 1
            self._covered = True
            self._end(self._options.interval)
            self._commit(idle=True)
            return []
        return None

    def _answer(self, partitions: Sequence[Sequence[str]]) -> None:
        """Send the offsets after which the run begins: what this task has handed over, or else what is stored."""
        named = [(source, resource) for source, resource in partitions]
        unknown = [each for each in named if each not in self._offsets]
        stored = self.context.offset_storage_reader.offsets([self._partition(*each) for each in unknown])
        self._offsets.update(zip(unknown, stored, strict=True))
        if self._reader is not None:
            self._reader.answer([self._offsets[each] for each in named])

    def _wait_for_source(self, error: SourceUnreachableError) -> Sequence[SourceRecord]:
        """Begin another run after a while. Rows of this one that no offset covers come again."""
        self._outage.lasts(error)
        if self.context.transaction_context is not None and not self._covered:
            if self._moved:  # an aborted transaction would store them, and lose the rows
                raise ConnectError(f"A run was broken off within a transaction, which is not committed: {error}") from error
            self.context.transaction_context.abort_transaction()
            self._uncommitted = False
        self._covered = True
        self._commit(idle=True)
        pause = self._backoff.next()
        log.warning("The run is broken off; the next one begins in %.0f s: %s", pause, error)
        self.context.waiting(error, pause)
        self._end(pause)
        return []

    def _answered(self) -> None:
        if self._backoff.failures:
            self._outage.ended()
            self._backoff.reset()
            self.context.waiting()

    # Offsets.

    def _partition(self, source: str, resource: str) -> dict[str, str]:
        return self._partitions.setdefault((source, resource), {SOURCE: source, RESOURCE: resource})

    def _moves(self, source: str, resource: str, offset: Offset | None) -> None:
        self._offsets[source, resource] = offset
        self._uncommitted = self._moved = True

    def _commit(self, *, idle: bool) -> bool:
        """Ask for the end of the transaction if offsets cover what is in it. Return whether that was asked for."""
        transactions = self.context.transaction_context
        if transactions is None or not (self._uncommitted and self._covered):
            return False
        if not idle and time.monotonic() - self._committed < _COMMIT_SECONDS:
            return False
        transactions.commit_transaction()
        self._uncommitted = self._moved = False
        self._committed = time.monotonic()
        return True

    # Rows.

    def _add_table(self, table: str, schema: Any, keys: Sequence[str]) -> None:
        from sluiceway.data.schema_json import schema_from_json

        value = schema_from_json(schema, lambda _schema, default: default)
        assert value is not None  # noqa: S101 (the reader sends one)
        fields = {field.name: field.schema for field in value.fields}
        key = Schema(Type.STRUCT, fields=[(name, fields[name]) for name in keys]) if keys else None
        self._tables[table] = _Made(topic_name(self._options.prefix + table), value, key)

    def _rows_of(self, frame: Frame, *, columns: bool) -> _Records:
        from sluiceway.columns.arrays import struct_array, to_values

        head, table, batch = frame.head, self._tables[frame.head["table"]], frame.rows()
        values: AnyArray = batch.to_struct_array()
        key = None if table.key is None else struct_array(table.key, [batch.column(each.name) for each in table.key.fields])
        offset: Offset | None = head["offset"]
        partition = None if offset is None else self._partition(head["source"], head["resource"])
        if offset is not None:
            self._moves(head["source"], head["resource"], offset)
        self._covered, self._uncommitted = bool(head["covered"]), True
        self._rows += len(values)
        self._commit(idle=False)

        def records() -> list[SourceRecord]:
            keys = [None] * len(values) if table.key is None or key is None else to_values(table.key, key)
            made = [
                SourceRecord(None, None, table.topic, value, table.schema, each, table.key)
                for value, each in zip(to_values(table.schema, values), keys, strict=True)
            ]
            if partition is not None:
                made[-1].source_partition, made[-1].source_offset = partition, offset
            return made

        if not columns or len(values) < _FEWEST_ROWS_FOR_COLUMNS:
            return records()
        made = ColumnBatch(
            topic=table.topic, partition=None, key=Column(table.key, key), value=Column(table.schema, values), count=len(values)
        )
        return SourceColumns(batch=made, source_partition=partition, source_offset=offset, records=records)
