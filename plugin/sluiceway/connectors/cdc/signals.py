"""Executes signals, and returns the rows of incremental snapshots between the records of the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sluiceway.api import Offset, SourceRecord
from sluiceway.config.signal_topic import Signal
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId, compile_anchored
from sluiceway.connectors.cdc.incremental import ChunkReader, IncrementalSnapshots
from sluiceway.connectors.cdc.incremental_offsets import COLLECTIONS, NEW_TABLES_SIGNAL, OWN_SIGNALS
from sluiceway.connectors.cdc.known_tables import KnownTables
from sluiceway.connectors.cdc.notifications import INCREMENTAL, Notifications
from sluiceway.connectors.cdc.signal_channels import (
    OWN_SIGNAL_OFFSET,
    SIGNAL_OFFSET,
    Channel,
    open_channels,
    parse_row,
)
from sluiceway.connectors.cdc.tables import Row, TableSchema
from sluiceway.data import Struct
from sluiceway.errors import DataError
from sluiceway.java.regex import RegexError

log = logging.getLogger(__name__)

BLOCKING = "sluiceway_blocking_snapshots"
"""The key of source offsets with the blocking snapshots that were requested and have not ended, beside Debezium's keys."""


_REQUESTS = (COLLECTIONS, BLOCKING, SIGNAL_OFFSET, OWN_SIGNAL_OFFSET)


def requests_differ(offset: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether signals were taken, or their requests have ended, between two source offsets."""
    return any(offset.get(key) != other.get(key) for key in _REQUESTS)


class BlockingRequest(NamedTuple):
    """A blocking snapshot of tables, with the conditions of single ones.

    ``signal`` has requested it, or is None for the rest of an interrupted initial snapshot.
    """

    signal: str | None
    tables: Sequence[TableId]
    conditions: Mapping[str, str]


Blocking = Callable[[BlockingRequest], None]
Captured = Callable[[], Iterable[TableId]]


class Signals:
    """Executes signals. One that cannot be executed is refused, in the log and by a notification: it must not end the task.

    Args:
        captured: returns the tables that records are made for.
        blocking: begins a blocking snapshot.
        is_transient: tells whether an error is one of the connection, which the task must see.
    """

    def __init__(
        self,
        incremental: IncrementalSnapshots,
        captured: Captured,
        blocking: Blocking,
        notifications: Notifications,
        is_transient: Callable[[Exception], bool],
    ) -> None:
        self._incremental = incremental
        self._captured = captured
        self._blocking = blocking
        self._notifications = notifications
        self._is_transient = is_transient
        self._actions: dict[str, Callable[[Signal], None]] = {
            "execute-snapshot": self._execute,
            "stop-snapshot": self._stop,
            "pause-snapshot": lambda signal: incremental.pause(signal.id),
            "resume-snapshot": lambda signal: incremental.resume(signal.id),
            "log": _log,
        }

    def execute(self, signal: Signal) -> None:
        """Execute a signal. Raises errors of the connection only."""
        action = self._actions.get(signal.type)
        if action is None:
            self.refuse(signal.id, f"its type {signal.type} is unknown")
            return
        log.info("Signal %s: %s %s", signal.id, signal.type, dict(signal.data))
        try:
            action(signal)
        except Exception as error:
            if self._is_transient(error):
                raise
            self.refuse(signal.id, str(error))

    def refuse(self, signal: str, reason: str) -> None:
        """Report a signal that is not executed, or no longer."""
        log.error("Signal %s is refused: %s", signal, reason)
        self._notifications.add(signal, "SKIPPED", INCREMENTAL, reason=reason)

    def _execute(self, signal: Signal) -> None:
        tables = self._tables(_names(signal))
        conditions = self._conditions(signal)
        kind = str(signal.data.get("type") or "incremental").lower()
        surrogate = signal.data.get("surrogate-key") or None
        if not tables:
            self.refuse(signal.id, "its data-collections match no captured table")
        elif signal.id in OWN_SIGNALS:
            self.refuse(signal.id, "its id is that of a snapshot that no signal has requested. Choose another one")
        elif surrogate is not None and not isinstance(surrogate, str):
            self.refuse(signal.id, "its surrogate-key is no text with the names of columns")
        elif kind == "blocking":
            self._blocking(BlockingRequest(signal.id, tables, conditions))
        elif kind == "incremental":
            self._incremental.add(signal.id, tables, conditions, surrogate)
        else:
            self.refuse(signal.id, f"its type of snapshot, {kind}, is unknown")

    def _conditions(self, signal: Signal) -> dict[str, str]:
        """Return the conditions by table. Raises DataError for what is none: without it, more rows would be read."""
        entries = signal.data.get("additional-conditions") or []
        if "additional-condition" in signal.data or not isinstance(entries, list):
            raise DataError("its conditions must be additional-conditions: a list of objects with data-collection and filter")
        found: dict[str, str] = {}
        for entry in entries:
            condition = (entry.get("filter") or "") if isinstance(entry, dict) else None
            if not isinstance(condition, str):
                raise DataError(f"{entry!r:.200} of its additional-conditions is no object with data-collection and filter")
            tables = self._tables([str(entry.get("data-collection"))]) if condition else []
            if condition and not tables:
                raise DataError(f"{entry!r:.200} of its additional-conditions matches no captured table")
            found = {**dict.fromkeys(map(str, tables), condition), **found}
        return found

    def _stop(self, signal: Signal) -> None:
        names = _names(signal)
        self._incremental.stop(signal.id, self._tables(names) if names else None)

    def _tables(self, patterns: Iterable[str]) -> list[TableId]:
        """Return the captured tables that match, in the order of the patterns."""
        found: dict[TableId, None] = {}
        captured = sorted(self._captured())
        for pattern in patterns:
            try:
                regex = compile_anchored(str(pattern).replace('"', "").strip())
            except RegexError as error:
                log.warning("A signal's data-collections has a wrong regular expression: %s", error)
                continue
            found.update(dict.fromkeys(table for table in captured if regex.matches(str(table))))
        return list(found)


def _names(signal: Signal) -> list[str]:
    names = signal.data.get("data-collections") or []
    return [str(name) for name in names] if isinstance(names, list) else [str(names)]


class SignalProcessor:
    """Reads and executes the signals of one task, and runs its incremental snapshots. The thread that reads the log uses it.

    The log's reader reports each row (``inserted``, ``deleted``, ``changed``), and calls ``due`` after each of its messages and
    ``poll`` between transactions.
    """

    def __init__(
        self,
        config: CommonConfig,
        chunks: ChunkReader,
        emitter: Emitter,
        notifications: Notifications,
        captured: Captured,
    ) -> None:
        self._config = config
        self._emitter = emitter
        self._notifications = notifications
        self._is_transient = chunks.is_transient
        self._table = (config.signals.table or "").split(".")[-2:]
        self.incremental = IncrementalSnapshots(config, chunks, notifications)
        self.blocking: list[BlockingRequest] = []
        """The blocking snapshots that have not ended, in order: the log waits for them between transactions."""
        self._unfinished: dict[str, Any] = {}  # the state of an interrupted initial snapshot
        self._signals = Signals(self.incremental, captured, self.blocking.append, notifications, chunks.is_transient)
        self._captured = captured
        self._known: KnownTables | None = None
        self._channels: list[Channel] = []

    def load(self, offset: Mapping[str, Any]) -> None:
        """Continue the incremental snapshots of a stored offset, add those of new tables, and open the channels."""
        self.incremental.load(offset)
        if self._config.snapshots.new_tables:
            self._known = KnownTables(filter(self._config.has_snapshot, self._captured()))
            new = self._known.new(offset)
            if new:
                log.info("Reading tables that were not captured before: %s", ", ".join(map(str, new)))
                self.incremental.add(NEW_TABLES_SIGNAL, new, {}, None)
        for signal, names, conditions in json.loads(offset.get(BLOCKING) or "[]"):
            self.blocking.append(BlockingRequest(signal, [TableId(*name) for name in names], conditions))
        self._channels = open_channels(self._config, offset)

    def state(self) -> dict[str, Any]:
        """Return the part of source offsets that describes incremental snapshots and channels."""
        state = self.incremental.state()
        if self.blocking and (requests := [each for each in self.blocking if each.signal is not None]):
            state = {**state, BLOCKING: json.dumps(requests, separators=(",", ":"))}
        if self._known is not None:
            state = {**state, **self._known.state()}
        for channel in self._channels:
            state = {**state, **channel.state()}
        return {**state, **self._unfinished} if self._unfinished else state

    def finish_snapshot(self, tables: Sequence[TableId], unfinished: Mapping[str, Any]) -> None:
        """Read the tables without key that an interrupted snapshot has left, before reading of the log continues.

        Until they are read, offsets have ``unfinished``, which says that the snapshot is not complete.
        """
        self._unfinished = dict(unfinished)
        self.blocking.append(BlockingRequest(None, tables, {}))

    def blocking_ended(self, request: BlockingRequest, error: Exception | None = None) -> None:
        """Note that a blocking snapshot has ended, by an error or not.

        Raises the error if another try may heal it, or if no signal has requested the snapshot.
        """
        if error is not None:
            if request.signal is None or self._is_transient(error):
                raise error
            self._signals.refuse(request.signal, str(error))
        self.blocking[:] = [each for each in self.blocking if each is not request]
        if request.signal is None:
            self._unfinished = {}

    @property
    def idle(self) -> bool:
        """Whether ``due`` has nothing to do."""
        return not self.incremental.running and not self._notifications.waiting

    def is_signal_table(self, table: TableId) -> bool:
        return list(table) == self._table

    def inserted(self, table: TableId, values: Sequence[Any]) -> None:
        """Handle a new row of any table: a signal, or a mark of a window."""
        if not self.is_signal_table(table) or not values:
            return
        if self.incremental.mark(str(values[0])) or "source" not in self._config.signals.channels:
            return
        signal = parse_row(values)
        if signal is not None:
            self._signals.execute(signal)

    def deleted(self, table: TableId, values: Sequence[Any]) -> None:
        """Handle the end of a window, if marks are deleted."""
        if self._config.signals.delete_watermarks and self.is_signal_table(table) and values:
            self.incremental.mark(str(values[0]), deleted=True)

    def changed(self, table: TableSchema, row: Sequence[Any]) -> None:
        """Handle a row before or after a change of a captured table."""
        if self._known is not None:
            self._known.add(table.id)
        self.incremental.changed(table, row)

    def poll(self) -> None:
        """Execute the signals of the channels and read the next chunk. Call it between transactions."""
        for channel in self._channels:
            for signal in channel.read():
                self._signals.execute(signal)
        self.incremental.advance()

    def due(self, offset: Callable[[], Offset], source: Callable[[TableSchema], Struct]) -> list[SourceRecord]:
        """Return the rows of the window that the last message closed, and the notifications.

        All rows but the last have the offset before, because a restart after any of them must read the chunk again.
        """
        self.incremental.check()
        before = offset() if self.incremental.running else None
        closed = self.incremental.closed_window()
        records: list[SourceRecord] = []
        if closed is not None and before is not None:
            records = self._read(*closed, source, before)
            if records:
                records[-1].source_offset = offset()
        if self._notifications.waiting:
            records += self._notifications.take(offset())
        return records

    def _read(
        self, schema: TableSchema, rows: Sequence[Row], source: Callable[[TableSchema], Struct], offset: Offset
    ) -> list[SourceRecord]:
        """Return the records of rows; none if one of them cannot be a record, which ends the snapshot of the table."""
        try:
            records = [self._emitter.read(schema, row, source(schema), offset) for row in rows]
            for record in records:
                check_required(record.key)
                check_required(record.value["after"] if isinstance(record.value, Struct) else None)
        except Exception as error:  # noqa: BLE001 (it raises what the task must see)
            self.incremental.give_up(error)
            return []
        return records

    def commit(self, offset: Mapping[str, Any]) -> None:
        """Commit the positions of the channels up to a source offset that has been stored."""
        for channel in self._channels:
            channel.commit(offset)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        self._channels = []


def check_required(values: Any) -> None:
    """Raise DataError if a struct has null in a required field, such as for a numeric that is NaN."""
    if not isinstance(values, Struct):
        return
    for field, value in zip(values.schema.fields, values.values_, strict=True):
        if value is None and not field.schema.optional and field.schema.default is None:
            raise DataError(f"A row has a value of the column {field.name} that its type of field cannot hold.")


def _log(signal: Signal) -> None:
    log.info("%s", str(signal.data.get("message", "")))
