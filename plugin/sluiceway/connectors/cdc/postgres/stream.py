"""Turns the messages of the log into source records. No I/O but reads of the catalog when a table is new or changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from sluiceway.api import EncodedRecords, Offset, SourceRecord
from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.emitter import Count, Emitter
from sluiceway.connectors.cdc.envelope import MESSAGE, TRANSACTION_BLOCK
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres import pgoutput
from sluiceway.connectors.cdc.postgres.catalog import Catalog, stream_columns, stream_key
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.pgoutput import Begin, Commit, Delete, Insert, Message, Relation, Truncate, Update
from sluiceway.connectors.cdc.postgres.receiver import Received
from sluiceway.connectors.cdc.postgres.source import SOURCE, Position, Sources
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.connectors.cdc.transactions import TransactionCounter
from sluiceway.data import Schema, Struct
from sluiceway.data.schema import OPTIONAL_BYTES_SCHEMA, OPTIONAL_INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.postgres.column_stream import Changes


log = logging.getLogger(__name__)

_FEWEST_MESSAGES = 64  # fewer are read one by one, because each batch of columns has a fixed cost

_KINDS: dict[type, str] = {Insert: "INSERT", Update: "UPDATE", Delete: "DELETE", Truncate: "TRUNCATE", Message: "MESSAGE"}
_MESSAGE_NAME = "io.debezium.connector.postgresql.Message"
_MESSAGE_CONTENT = Schema.struct(
    [("prefix", OPTIONAL_STRING_SCHEMA), ("content", OPTIONAL_BYTES_SCHEMA)], name=_MESSAGE_NAME, version=1
)
_MESSAGE_KEY = Schema.struct([("prefix", OPTIONAL_STRING_SCHEMA)], name=f"{_MESSAGE_NAME}Key", version=1)
_MESSAGE_VALUE = Schema.struct(
    [
        ("op", STRING_SCHEMA),
        ("ts_ms", OPTIONAL_INT64_SCHEMA),
        ("source", SOURCE),
        ("transaction", TRANSACTION_BLOCK),
        ("message", _MESSAGE_CONTENT),
    ],
    name=f"{_MESSAGE_NAME}Value",
    version=1,
)


class Listener(Protocol):
    """Sees the rows of the log besides the records, for signals and incremental snapshots, whose state is in offsets."""

    def state(self) -> dict[str, Any]: ...

    def inserted(self, table: TableId, row: Sequence[Any]) -> None: ...

    def deleted(self, table: TableId, row: Sequence[Any]) -> None: ...

    def changed(self, table: TableSchema, row: Sequence[Any]) -> None: ...


class StreamReader:
    """Reads the log from a position on. Skips what stored offsets say was sent.

    ``position`` is that of the last event. Records of everything before ``safe_lsn`` were returned. ``urgent``: the server
    waits until that is stored.
    """

    def __init__(
        self,
        config: PostgresConfig,
        catalog: Catalog,
        types: TypeRegistry,
        emitter: Emitter,
        position: Position,
        listener: Listener,
    ) -> None:
        self.position = position
        self.safe_lsn = position.start_lsn
        self.urgent = False
        self.in_transaction = False
        self._config = config
        self._catalog = catalog
        self._types = types
        self._emitter = emitter
        self._listener = listener
        self._schemas = config.common.schemas(SOURCE)
        self._sources = Sources(config.common.prefix, config.address.database)
        self._relations: dict[int, tuple[Relation, TableSchema | None]] = {}
        self._signals: set[int] = set()  # the relations of the signal table
        self._enums: dict[int, list[tuple[int, int]]] = {}
        self._skip: Position | None = Position(**{name: getattr(position, name) for name in position.__slots__})
        self._skipped_at = 0
        self._begin: Begin | None = None
        self.transactions = TransactionCounter() if config.common.transaction_metadata else None
        common = config.common
        self._reads_many = self.transactions is None and not common.skip_unchanged and not common.skipped_operations - {"t"}
        self._announced = False
        self._handlers: dict[type, Callable[[int, Any], list[SourceRecord]]] = {
            Begin: self._on_begin,
            Commit: self._on_commit,
            Relation: self._on_relation,
            pgoutput.Origin: self._on_origin,
            Insert: self._on_change,
            Update: self._on_change,
            Delete: self._on_change,
            Truncate: self._on_truncate,
            Message: self._on_message,
        }

    def offset(self) -> dict[str, Any]:
        """Return the source offset of the last event."""
        counts = {} if self.transactions is None else self.transactions.offset()
        return self.position.offset({**counts, **self._listener.state()})

    def read(self, message: Received) -> list[SourceRecord]:
        """Return the records of a message; all but the last one have the offset of the event before."""
        if message.keepalive:
            self._on_keepalive(message)
            return []
        decoded = pgoutput.decode(message.data)
        handler = self._handlers.get(type(decoded))
        if handler is None:
            return []
        several = type(decoded) is not Insert or self.transactions is not None  # records, perhaps
        before = self.offset() if several else None
        records = handler(message.lsn, decoded)
        for record in records[:-1]:
            record.source_offset = before
        if records and self.transactions is not None:
            records[-1].source_offset = self.offset()  # with the records that were counted
        return records

    def read_many(self, messages: Sequence[Received]) -> tuple[EncodedRecords | None, int]:
        """Return the records of the first messages, changes of one table, encoded together, and how many messages these are.

        Returns None if so many messages must be read one by one; then nothing has moved.
        """
        from sluiceway.connectors.cdc.postgres.column_stream import Changes, end_of_run

        if not self._reads_many:
            return None, len(messages)
        if self._skip is not None:
            return None, min(len(messages), _FEWEST_MESSAGES)
        begin = end = 0
        while begin < len(messages) and (end := end_of_run(messages, begin)) - begin < _FEWEST_MESSAGES:
            begin = max(end, begin + 1)
        if begin or self.position.origin is not None:
            return None, begin or end
        before, in_transaction, safe_lsn = replace(self.position), self.in_transaction, self.safe_lsn
        changes = Changes()
        for message in messages[:end]:
            if message.data[0] in b"BC":
                self._move_behind(changes)
                decoded = pgoutput.decode(message.data)
                self._handlers[type(decoded)](message.lsn, decoded)
            else:
                changes.add(message, self.position)
        self._move_behind(changes)
        encoded = self._encoded(changes)
        if encoded is None:
            self.in_transaction, self.safe_lsn = in_transaction, safe_lsn
            for name in before.__slots__:
                setattr(self.position, name, getattr(before, name))
        return encoded, end

    def _move_behind(self, changes: Changes) -> None:
        """Move behind the last changes of a transaction."""
        lsns = changes.end_transaction()
        if lsns:
            same = next((count for count, lsn in enumerate(reversed(lsns)) if lsn != lsns[-1]), len(lsns))
            self.position.move(lsns[-1], _KINDS[type(pgoutput.decode(changes.messages[-1]))], same)

    def _encoded(self, changes: Changes) -> EncodedRecords | None:
        from sluiceway.connectors.cdc.postgres.column_stream import encode_changes

        oid = changes.relation
        relation, table = self._relations[oid] if oid is not None else (None, None)
        if relation is None or table is None or oid in self._signals or len(changes.messages) < _FEWEST_MESSAGES // 4:
            return None
        labels = {index: self._types.labels(oid) for index, oid in self._enums[relation.oid]}
        tombstones = self._config.common.tombstones
        width, offset = len(relation.columns), self.offset()
        return encode_changes(changes, width, table, self._emitter, self._sources, labels, tombstones=tombstones, offset=offset)

    def _on_keepalive(self, message: Received) -> None:
        if not self.in_transaction:
            self.safe_lsn = max(self.safe_lsn, message.lsn)
            self.urgent = self.urgent or message.urgent

    def _on_begin(self, lsn: int, begin: Begin) -> list[SourceRecord]:
        self._begin, self.in_transaction = begin, True
        skip = self._skip
        self._announced = False
        if skip is not None and skip.xid == begin.xid and skip.kind not in (None, "COMMIT"):
            self._announced = True  # a restart within this transaction
            return []
        self._skip = None
        self.position.xid, self.position.micros = begin.xid, begin.micros
        self.position.origin = self.position.origin_lsn = None
        if self.transactions is not None:
            self.transactions.begin(str(begin.xid))
        return []

    def _on_commit(self, lsn: int, commit: Commit) -> list[SourceRecord]:
        self.in_transaction, self._skip = False, None
        position = self.position
        position.lsn, position.processed, position.commit_lsn, position.kind = commit.end_lsn, 0, commit.end_lsn, "COMMIT"
        self.safe_lsn = commit.end_lsn
        if self.transactions is None or not self._announced:
            return []
        identifier = f"{position.xid}:{commit.end_lsn}"
        value = self.transactions.end_value(identifier, commit.micros // 1000)
        return [self._emitter.transaction(identifier, value, self.offset())]

    def _on_origin(self, _lsn: int, origin: pgoutput.Origin) -> list[SourceRecord]:
        self.position.origin, self.position.origin_lsn = origin.name, origin.lsn
        return []

    def _on_relation(self, _lsn: int, relation: Relation) -> list[SourceRecord]:
        self._relations[relation.oid] = (relation, self._build(relation))
        has_signals = [relation.schema, relation.table] == (self._config.common.signals.table or "").split(".")[-2:]
        (self._signals.add if has_signals else self._signals.discard)(relation.oid)
        self._enums[relation.oid] = [
            (index, column.type_oid) for index, column in enumerate(relation.columns) if self._types.labels(column.type_oid)
        ]
        return []

    def _build(self, relation: Relation) -> TableSchema | None:
        table = TableId(relation.schema, relation.table)
        if not self._config.captured(table) and str(table) != self._config.common.signals.table:
            return None
        found = self._catalog.table(table)
        known = (lambda _name: True) if self._config.settings.correct else self._config.common.columns
        return self._schemas.build(table, stream_columns(relation, found, self._types, known), stream_key(relation, found))

    def _advance(self, lsn: int, kind: str) -> bool:
        """Move to an event; return False if it was sent before a restart."""
        skip = self._skip
        if skip is not None:
            self._skipped_at = self._skipped_at + 1 if lsn == skip.lsn else 0
            if lsn < skip.lsn or (lsn == skip.lsn and self._skipped_at <= max(skip.processed, 1)):
                return False
            self._skip = None
        self.position.move(lsn, kind)
        return True

    def _on_change(self, lsn: int, change: Insert | Update | Delete) -> list[SourceRecord]:
        relation, table = self._relations[change.relation]
        if not self._advance(lsn, _KINDS[type(change)]) or table is None:
            return []
        if change.relation in self._signals:
            if isinstance(change, Insert):
                self._listener.inserted(table.id, change.new)
            elif isinstance(change, Delete):
                self._listener.deleted(table.id, change.old)
            if not self._config.captured(table.id):
                return []
        table = self._with_known_labels(relation, table, change)
        for row in _changed_rows(change):
            self._listener.changed(table, row)
        begin, count = self._announce(table, lsn)
        source = self._sources.stream(table.id.schema, table.id.table, self.position)
        offset = self.offset()
        if isinstance(change, Insert):
            return begin + self._emitter.create(table, change.new, source, count, offset)
        if isinstance(change, Delete):
            return begin + self._emitter.delete(table, change.old, source, count, offset)
        return begin + self._emitter.update(table, change.old, _completed(change), source, count, offset)

    def _announce(self, table: TableSchema, lsn: int) -> tuple[list[SourceRecord], Count | None]:
        """Return a list that gets the BEGIN record with the transaction's first event, and what counts the table's events."""
        return ([], None) if self.transactions is None else self._announced_for(str(table.id), lsn)

    def _announced_for(self, name: str, lsn: int) -> tuple[list[SourceRecord], Count | None]:
        transactions, begin = self.transactions, self._begin
        if transactions is None or begin is None or not self.in_transaction:
            return [], None
        identifier = f"{self.position.xid}:{lsn}"
        records: list[SourceRecord] = []

        def count() -> Struct:
            if not self._announced:
                value = transactions.begin_value(identifier, begin.micros // 1000)
                records.append(self._emitter.transaction(identifier, value, self.offset()))
                self._announced = True
            return transactions.event(name, identifier)

        return records, count

    def _with_known_labels(self, relation: Relation, table: TableSchema, change: Insert | Update | Delete) -> TableSchema:
        """Return the table's schema, built again if a row has a label that was added to its enum."""
        if isinstance(change, Delete):
            return table
        for index, oid in self._enums[relation.oid]:
            value = change.new[index]
            if isinstance(value, str) and value not in self._types.labels(oid):
                self._types.load()
                rebuilt = self._build(relation) or table
                self._relations[relation.oid] = (relation, rebuilt)
                return rebuilt
        return table

    def _on_truncate(self, lsn: int, truncate: Truncate) -> list[SourceRecord]:
        if not self._advance(lsn, "TRUNCATE"):
            return []
        records: list[SourceRecord] = []
        for oid in truncate.relations:
            table = self._relations[oid][1]
            if table is None or not self._config.captured(table.id) or "t" in self._config.common.skipped_operations:
                continue
            begin, count = self._announce(table, lsn)
            source = self._sources.stream(table.id.schema, table.id.table, self.position)
            records += begin + self._emitter.truncate(table, source, count, self.offset())
        return records

    def _on_message(self, lsn: int, message: Message) -> list[SourceRecord]:
        position = self.position
        if message.transactional:
            if not self._advance(lsn, "MESSAGE"):
                return []
        elif not self._standalone(lsn):
            return []
        if not self._config.message_prefixes(message.prefix):
            return []
        begin, count = self._announced_for("", lsn) if message.transactional else ([], None)
        source = self._sources.stream("", "", position)
        record = message_record(
            self._config.common.topics.messages,
            self._emitter.partition,
            message.prefix,
            message.content,
            source,
            None if count is None else count(),
            self.offset(),
        )
        return [*begin, record]

    def _standalone(self, lsn: int) -> bool:
        """Move to a message outside transactions; return False if it was sent before a restart."""
        position = self.position
        if self._skip is not None and lsn <= self._skip.start_lsn:
            return False
        position.lsn, position.processed, position.kind, position.xid = lsn, 1, "MESSAGE", None
        position.micros, position.commit_lsn = time.time_ns() // 1000, lsn
        return True


def _changed_rows(change: Insert | Update | Delete) -> list[Sequence[Any]]:
    """Return the rows before and after a change, as far as the log has them."""
    if isinstance(change, Delete):
        return [change.old]
    return [change.new] if isinstance(change, Insert) or change.old is None else [change.old, change.new]


def _completed(update: Update) -> Sequence[Any]:
    """Return the new row with the values that did not change taken from the old one, if that is complete."""
    if not update.full or update.old is None:
        return update.new
    return [old if new is UNAVAILABLE else new for old, new in zip(update.old, update.new, strict=True)]


def message_record(
    topic: str, partition: dict[str, str], prefix: str, content: bytes, source: Struct, transaction: Struct | None, offset: Offset
) -> SourceRecord:
    """Return the record of a logical message."""
    message = Struct.of(_MESSAGE_CONTENT, [prefix, content])
    value = Struct.of(_MESSAGE_VALUE, [MESSAGE, time.time_ns() // 1_000_000, source, transaction, message])
    return SourceRecord(partition, offset, topic, value, _MESSAGE_VALUE, Struct.of(_MESSAGE_KEY, [prefix]), _MESSAGE_KEY)
