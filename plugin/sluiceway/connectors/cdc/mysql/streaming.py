"""Reads the binary log: makes records of the row events and statements of captured tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog import rows as row_events
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
from sluiceway.connectors.cdc.mysql.binlog.events import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    EventType,
    FormatDescription,
    Gtid,
    Header,
    Query,
    Rotation,
    read_header,
)
from sluiceway.connectors.cdc.mysql.binlog.payload import payload_events
from sluiceway.connectors.cdc.mysql.binlog.rows import OPERATIONS, Row, RowReaders, RowsEvent, read_rows_event
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.column_events import CollectedEvent, CollectedRows
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.log_tables import LogTable
from sluiceway.connectors.cdc.mysql.log_transactions import LogTransactions
from sluiceway.connectors.cdc.mysql.logged_statements import LoggedStatements
from sluiceway.connectors.cdc.mysql.mapped_tables import MappedTables
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.mysql.schema_changes import SchemaChanges
from sluiceway.connectors.cdc.mysql.table_reader import TableReader
from sluiceway.connectors.cdc.sizes import fits_columns
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.connectors.cdc.transactions import TransactionCounter
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

RowListener = Callable[[TableId, str, TableDefinition, "Row | None", "Row | None"], None]
"""Called for each row of a captured table and of the signal table, after its records are made."""


@dataclass
class StreamingParts:
    """The objects that streaming works with."""

    config: SourceConfig
    tables: Tables
    catalog: Catalog
    changes: SchemaChanges
    statements: LoggedStatements
    emitter: Emitter
    position: LogPosition
    counter: TransactionCounter
    buffer: RecordBuffer
    charsets: Charsets
    calendar: Calendar
    mariadb: bool
    read_table: TableReader


class Streaming:
    """Handles the events of one dump, on the reading thread."""

    def __init__(
        self,
        parts: StreamingParts,
        on_row: RowListener | None = None,
        after_event: Callable[[], list[SourceRecord]] | None = None,
    ) -> None:
        self._parts = parts
        self._after_event = after_event
        self._common: CommonConfig = parts.config.common
        self._position = parts.position
        self._on_row = on_row
        self._format: FormatDescription | None = None
        self._tables = MappedTables(parts.config, parts.tables, parts.catalog, parts.charsets, parts.calendar, parts.read_table)
        self._skip_events, self._skip_rows = parts.position.skips
        self._transaction_size = 0
        self._transactions = LogTransactions(
            parts.counter, parts.emitter, parts.position, enabled=self._common.transaction_metadata
        )
        self._query = parts.config.flag("include.query")
        skipped = self._common.skipped_operations - {"t"}
        self._collects = not (on_row or self._transactions.enabled or self._query or self._common.skip_unchanged or skipped)
        self._collected: CollectedRows | None = None
        self._handlers: dict[int, Callable[[Header, memoryview], None]] = {
            EventType.QUERY: self._on_query,
            EventType.QUERY_COMPRESSED: self._on_compressed_query,
            EventType.XID: self._on_commit,
            EventType.XA_PREPARE: self._on_commit,
            EventType.TABLE_MAP: self._on_table_map,
            EventType.MARIADB_GTID: self._on_mariadb_gtid,
            EventType.GTID: self._on_mysql_gtid,
            EventType.GTID_TAGGED: self._on_tagged_gtid,
            EventType.ANONYMOUS_GTID: self._on_anonymous_gtid,
            EventType.ANNOTATE_ROWS: self._on_annotation,
            EventType.ROWS_QUERY: self._on_rows_query,
            EventType.EXECUTE_LOAD_QUERY: self._on_load,
            EventType.TRANSACTION_PAYLOAD: self._on_payload,
            **dict.fromkeys(OPERATIONS, self._on_rows),
        }

    def run(self, packets: Iterable[memoryview], is_idle: Callable[[], bool] = lambda: True) -> None:
        """Handle events until the stream is closed. ``is_idle`` tells whether no other packet has arrived."""
        try:
            for packet in packets:
                self.handle(packet)
                if self._after_event is not None:
                    self._put(self._after_event(), 0)
                if self._collected is not None and (self._collected.is_full(self._common.batch_size) or is_idle()):
                    self._pass_on()
        finally:
            self._pass_on()  # the position is behind the collected rows

    def handle(self, packet: memoryview) -> None:
        """Handle one event with its header and checksum."""
        header = read_header(packet)
        if header.type == EventType.FORMAT_DESCRIPTION:
            self._format = FormatDescription.read(packet)
            return
        end = len(packet) - (CHECKSUM_BYTES if self._format is None or self._format.has_checksums else 0)
        body = packet[HEADER_BYTES:end]
        if header.type == EventType.ROTATE:
            rotation = Rotation.read(body)
            if rotation.file != self._position.file:
                self._tables.clear()
            self._position.rotate(rotation.file, rotation.position)
            return
        self._dispatch(header, body)
        if header.next_position:
            self._position.end = header.next_position

    def _dispatch(self, header: Header, body: memoryview) -> None:
        handler = self._handlers.get(header.type)
        if handler is None:
            if not header.has_no_changes:
                self._unread(header)
            return
        if header.next_position:
            self._position.position, self._position.next = header.position, header.next_position
        self._position.seconds = header.timestamp
        self._position.server_id = header.server_id
        handler(header, body)
        self._position.complete_event()

    def _unread(self, header: Header) -> None:
        """Handle an event that may hold changes, and that this connector cannot read."""
        message = (
            f"The binary log has an event of type {header.kind} at {self._position.file}:{header.position}, which may hold "
            "changes and which this connector does not read."
        )
        mode = self._parts.config.choice("event.deserialization.failure.handling.mode")
        if mode == "fail":
            raise ConnectError(
                f"{message} To go on without them, set event.deserialization.failure.handling.mode=warn; "
                "read the tables again afterwards."
            )
        log.log(logging.WARNING if mode == "warn" else logging.DEBUG, "%s It is skipped.", message)

    # -- transactions

    def _on_mariadb_gtid(self, header: Header, body: memoryview) -> None:
        gtid = Gtid.read_mariadb(header, body)
        self._begin(gtid.text)
        if not gtid.standalone:
            self._report_begin(header, announced=not gtid.prepared)

    def _on_mysql_gtid(self, _header: Header, body: memoryview) -> None:
        self._begin(Gtid.read_mysql(body).text)

    def _on_tagged_gtid(self, _header: Header, body: memoryview) -> None:
        self._begin(Gtid.read_tagged(body).text)

    def _on_anonymous_gtid(self, _header: Header, _body: memoryview) -> None:
        self._begin(None)

    def _begin(self, gtid: str | None) -> None:
        self._position.begin(gtid, self._position.position)
        self._transaction_size = 0

    def _report_begin(self, header: Header, *, announced: bool = True) -> None:
        self._put(self._transactions.begin(header.timestamp, announced=announced, continued=self._skipped), header.size)

    def _on_commit(self, header: Header, _body: memoryview) -> None:
        position = self._position
        position.commit(header.next_position or position.position)
        self._skip_events = self._skip_rows = 0
        records = self._transactions.end(header.timestamp)
        if self._collected is not None and not records:
            self._collected.offset = self._transactions.offset()
            return
        self._pass_on()
        self._parts.buffer.put(records, offset=self._transactions.offset())

    def _put(self, records: list[SourceRecord], size: int) -> None:
        if records:
            self._pass_on()
            self._parts.buffer.put(records, size)

    def _pass_on(self) -> None:
        """Pass the collected rows on."""
        collected = self._collected
        if collected is not None:
            try:
                records = collected.records(self._parts.emitter, tombstones=self._common.tombstones)
                self._parts.buffer.put(records, collected.size, collected.offset)
            finally:
                self._collected = None

    @property
    def has_collected(self) -> bool:
        """Whether rows wait that are not in the buffer. Any thread may ask."""
        return self._collected is not None

    def _collect(self, table: LogTable, schema: TableSchema, readers: RowReaders, event: RowsEvent, size: int) -> bool:
        """Collect the rows of an event; return False if they must become records at once."""
        if event.partial or not (
            self._collects and table.captured and table.row_end is None and self._parts.emitter.encodes_columns
        ):
            return False
        starts = readers.image_starts(event)
        count = len(starts) // 2 if event.operation == row_events.UPDATE else len(starts)
        if not count or not fits_columns(size, count):
            return False
        if self._collected is not None and (self._collected.schema is not schema or self._collected.readers is not readers):
            self._pass_on()
        if self._collected is None:
            self._collected = CollectedRows(schema, readers)
        self._position.row(count - 1, count)
        block = self._position.block(table.id.schema, table.id.table)
        self._collected.add(CollectedEvent(event, starts, count, block, self._transactions.offset()), size)
        return True

    @property
    def _skipped(self) -> bool:
        """Whether the current event was handled before a restart."""
        return self._position.skips[0] < self._skip_events

    # -- statements

    def _on_annotation(self, _header: Header, body: memoryview) -> None:
        if self._query:
            self._position.query = bytes(body).decode("utf_8", "replace")

    def _on_rows_query(self, _header: Header, body: memoryview) -> None:
        if self._query:
            self._position.query = bytes(body[1:]).decode("utf_8", "replace")

    def _on_compressed_query(self, header: Header, body: memoryview) -> None:
        self._on_statement(header, Query.read(body, compressed=True))

    def _on_query(self, header: Header, body: memoryview) -> None:
        self._on_statement(header, Query.read(body))

    def _on_statement(self, header: Header, query: Query) -> None:
        sql = query.sql.strip()
        start = sql[:10].upper()
        if start == "BEGIN":
            if not self._position.in_transaction:
                self._begin(None)
            if not self._parts.mariadb:
                self._position.thread = query.thread
                self._report_begin(header)
        elif start.startswith(("COMMIT", "ROLLBACK")) and not start.startswith("ROLLBACK T"):
            self._on_commit(header, memoryview(b""))
        elif start.startswith("XA "):
            if start.startswith(("XA COMMIT", "XA ROLLBAC")):
                self._on_commit(header, memoryview(b""))
        elif not self._changes_rows(query):
            self._on_ddl(header, query)

    def _on_load(self, _header: Header, body: memoryview) -> None:
        self._changes_rows(Query.read(body, is_load=True))

    def _changes_rows(self, query: Query) -> bool:
        """Handle a statement that is in the log instead of the rows that it changes."""
        place = f"{self._position.file}:{self._position.position}"
        return not self._skipped and self._parts.statements.handle(query.sql, query.database, place)

    def _on_ddl(self, header: Header, query: Query) -> None:
        parts = self._parts
        truncates = query.sql.lstrip()[:8].upper() == "TRUNCATE"
        if not self._skipped and (truncates or not parts.changes.left_out(query.sql)):
            records, truncated = parts.changes.handle(query.sql, query.database)
            for table in truncated:
                records = [*self._truncate(table, header), *records]
            self._put(records, header.size)
        if not query.sql.upper().startswith("SAVEPOINT"):
            self._on_commit(header, memoryview(b""))

    def _truncate(self, table: TableId, header: Header) -> list[SourceRecord]:
        definition = self._parts.tables.get(table)
        if definition is None:
            return []
        source = self._position.block(table.schema, table.table)
        begin = self._transactions.begin(header.timestamp, announced=self._common.correct)
        schema, count = self._parts.catalog.schema(definition), self._transactions.count(table)
        records = self._parts.emitter.truncate(schema, source, count, self._transactions.offset())
        return [*begin, *records]

    def _on_payload(self, header: Header, body: memoryview) -> None:
        for packet in payload_events(body):
            inner = read_header(packet)
            outer = Header(inner.timestamp, inner.type, header.server_id, header.size, header.next_position, inner.flags)
            self._dispatch(outer, packet[HEADER_BYTES:])

    # -- rows

    def _on_table_map(self, _header: Header, body: memoryview) -> None:
        self._tables.add(body, self._id_bytes(EventType.TABLE_MAP))

    def _id_bytes(self, event_type: int) -> int:
        return 6 if self._format is None else self._format.table_id_bytes(event_type)

    def _on_rows(self, header: Header, body: memoryview) -> None:
        if self._skipped:
            return
        event = read_rows_event(header.type, body, self._id_bytes(header.type))
        table = self._tables.get(event.table_id)
        if table is None or table.schema is None or table.readers is None or table.definition is None:
            return
        if not self._skip_events and self._collect(table, table.schema, table.readers, event, header.size):
            return
        pairs = table.readers.read(event)
        first = 0
        if self._skip_events and self._position.skips[0] == self._skip_events:
            first = self._skip_rows
            self._skip_events = self._skip_rows = 0
        records: list[SourceRecord] = []
        count, passed = len(pairs), first
        try:
            for number in range(first, count):
                self._position.row(number, count)
                if (change := table.current(event.operation, *pairs[number])) is not None:
                    records += self._row_records(table, table.schema, *change, number)
                if len(records) >= self._common.batch_size:
                    self._put(records, header.size * (number + 1 - passed) // count)
                    records, passed = [], number + 1
            self._put(records, header.size * (count - passed) // count)
        except BaseException:
            self._position.resume_at(self._position.skips[0], passed)  # a new dump reads the rest of the rows again
            raise

    def _row_records(
        self, table: LogTable, schema: TableSchema, operation: str, before: Row | None, after: Row | None, number: int
    ) -> list[SourceRecord]:
        emitter = self._parts.emitter
        records: list[SourceRecord] = []
        if table.captured:
            source = self._position.block(table.id.schema, table.id.table, row=number)
            self._position.row(number - 1, number)
            row_before = self._transactions.offset()
            self._position.row(number, number + 1)
            count, offset = self._transactions.count(table.id), self._transactions.offset()
            if operation == row_events.INSERT and after is not None:
                records = emitter.create(schema, after, source, count, offset)
            elif operation == row_events.DELETE and before is not None:
                records = emitter.delete(schema, before, source, count, offset)
            elif after is not None:
                records = emitter.update(schema, before, after, source, count, offset)
            for record in records[:-1]:
                record.source_offset = row_before  # a restart must not lose the tombstone, or the row with its new key
            if records and self._transactions.enabled:
                records[-1].source_offset = self._transactions.offset()  # with the records that were counted
        if self._on_row is not None and table.definition is not None:
            self._on_row(table.id, operation, table.definition, before, after)
        return records
