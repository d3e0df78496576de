"""Reads the binary log: makes records of the row events and statements of captured tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog import rows as row_events
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
from sluiceway.connectors.cdc.mysql.binlog.gtids import source_of
from sluiceway.connectors.cdc.mysql.binlog.payload import payload_events
from sluiceway.connectors.cdc.mysql.binlog.rows import OPERATIONS, RowReaders, RowsEvent, read_rows_event
from sluiceway.connectors.cdc.mysql.column_events import CollectedEvent, CollectedRows
from sluiceway.connectors.cdc.mysql.log_tables import LogTable
from sluiceway.connectors.cdc.mysql.log_transactions import LogTransactions
from sluiceway.connectors.cdc.mysql.mapped_tables import MappedTables
from sluiceway.connectors.cdc.mysql.prepared import (
    PreparedEvent,
    prepared_events,
    prepared_xid,
    statement_xid,
)
from sluiceway.connectors.cdc.mysql.row_records import RowListener, RowRecords
from sluiceway.connectors.cdc.mysql.savepoints import is_taken_back
from sluiceway.connectors.cdc.mysql.streaming_parts import StreamingParts
from sluiceway.connectors.cdc.mysql.whole_transactions import WholeTransactions
from sluiceway.connectors.cdc.sizes import fits_columns
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)


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
        self._format: FormatDescription | None = None
        self._tables = self._new_tables()
        self._withheld = False  # whether the current transaction's rows wait for its commit
        self._foreign = False  # whether the current transaction's source is left out
        self._is_open = False  # whether the current transaction goes on until a commit, which a lone statement does not have
        self._whole = WholeTransactions()
        self._row_events = 0  # of the current transaction
        self._skip_events, self._skip_rows = parts.position.skips
        self._has_rows = False  # whether the current transaction has rows of captured tables
        self._transactions = LogTransactions(
            parts.counter, parts.emitter, parts.position, enabled=self._common.transaction_metadata
        )
        self._rows = RowRecords(parts.emitter, parts.position, self._transactions, on_row)
        self._query = parts.config.flag("include.query")
        skipped = self._common.skipped_operations - {"t"}
        self._collects = not (on_row or self._transactions.enabled or self._query or self._common.skip_unchanged or skipped)
        self._collected: CollectedRows | None = None
        self._handlers: dict[int, Callable[[Header, memoryview], None]] = {
            EventType.QUERY: self._on_query,
            EventType.QUERY_COMPRESSED: self._on_compressed_query,
            EventType.XID: self._on_commit,
            EventType.XA_PREPARE: self._on_prepare,
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

    def _new_tables(self) -> MappedTables:
        parts = self._parts
        return MappedTables(parts.config, parts.tables, parts.catalog, parts.charsets, parts.calendar, parts.read_table)

    def run(
        self,
        packets: Iterable[memoryview],
        is_idle: Callable[[], bool] = lambda: True,
        ends_before: Callable[[Header], bool] | None = None,
    ) -> None:
        """Handle events until the stream is closed.

        Args:
            packets: the events.
            is_idle: tells whether no other packet has arrived.
            ends_before: tells whether to end before an event; None for never.
        """
        try:
            for packet in self._whole.packets(packets) if self._parts.config.looks_ahead else packets:
                if ends_before is not None and ends_before(read_header(packet)):
                    return
                self.handle(packet)
                if self._after_event is not None:
                    self._put(self._after_event(), 0)
                if self._collected is not None and (self._collected.is_full(self._common.batch_size) or self._waits(is_idle)):
                    self._pass_on()
        finally:
            self._pass_on()  # the position is behind the collected rows

    def _waits(self, is_idle: Callable[[], bool]) -> bool:
        return not self._whole.passes_on and is_idle()

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
            pass_over(header, self._position.file, self._parts.config.choice("event.deserialization.failure.handling.mode"))
            return
        if header.next_position:
            self._position.position, self._position.next = header.position, header.next_position
        self._position.seconds = header.timestamp
        self._position.server_id = header.server_id
        handler(header, body)
        self._position.complete_event()

    # -- transactions

    def _on_mariadb_gtid(self, header: Header, body: memoryview) -> None:
        gtid = Gtid.read_mariadb(header, body)
        self._begin(gtid.text)
        self._is_open = not gtid.standalone
        self._withheld = gtid.prepared and self._common.correct
        if not gtid.standalone and not self._withheld:
            self._report_begin(header, announced=not gtid.prepared)

    def _on_mysql_gtid(self, _header: Header, body: memoryview) -> None:
        self._begin(Gtid.read_mysql(body).text)

    def _on_tagged_gtid(self, _header: Header, body: memoryview) -> None:
        self._begin(Gtid.read_tagged(body).text)

    def _on_anonymous_gtid(self, _header: Header, _body: memoryview) -> None:
        self._begin(None)

    def _begin(self, gtid: str | None) -> None:
        self._position.begin(gtid, self._position.position)
        self._has_rows = False
        self._row_events = 0
        keep = self._parts.config.gtid_sources if self._parts.config.filters_rows else None
        self._foreign = keep is not None and gtid is not None and not keep(source_of(gtid))

    def _report_begin(self, header: Header, *, announced: bool = True) -> None:
        self._put(self._transactions.begin(header.timestamp, announced=announced, continued=self._skipped), header.size)

    def _on_commit(self, header: Header, _body: memoryview) -> None:
        position = self._position
        position.commit(header.next_position or position.position)
        self._skip_events = self._skip_rows = 0
        self._is_open = False
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
        self._position.last_row = count - 1
        self._collected.add(CollectedEvent(event, starts, count, block, self._transactions.offset()), size)
        return True

    @property
    def _skipped(self) -> bool:
        """Whether the current event was handled before a restart."""
        return self._position.skips[0] < self._skip_events

    # -- XA transactions

    def _on_xa(self, header: Header, sql: str) -> None:
        xid = statement_xid(sql)
        self._is_open = True
        if self._common.correct and xid is not None:
            self._withheld = sql[3:8].upper() == "START"
            if sql[3:9].upper() == "COMMIT":
                self._commit_prepared(header, xid)
            elif not self._withheld:
                self._parts.prepared.remove(xid)
        if sql[3:6].upper() in ("COM", "ROL"):
            self._on_commit(header, memoryview(b""))

    def _on_prepare(self, header: Header, body: memoryview) -> None:
        if self._withheld:
            self._withheld = False
            xid, commits = prepared_xid(body)
            self._parts.prepared.add(xid, self._position.start, self._whole.taken_back)
            if commits:
                self._commit_prepared(header, xid)
        self._on_commit(header, body)

    def _commit_prepared(self, header: Header, xid: str) -> None:
        """Send the rows of a prepared transaction, which the log has further back."""
        start = self._parts.prepared.start(xid)
        if start is None:
            log.warning("The rows of the XA transaction %s, which is committed, are before the position of this connector.", xid)
        elif not self._skipped and not self._foreign:
            if not self._skip_rows:
                self._report_begin(header)
            tables, self._tables = self._tables, self._new_tables()
            try:
                with self._parts.second_dump(start) as packets:
                    self._send_prepared(prepared_events(packets, xid, self._parts.prepared.taken_back(xid)))
            except BaseException:
                self._position.resume_at(self._position.skips[0], self._skip_rows)  # a new dump reads the rest of the rows again
                raise
            finally:
                self._tables = tables
        self._parts.prepared.remove(xid)

    def _send_prepared(self, events: Iterable[PreparedEvent]) -> None:
        """Send the rows that are left; the offset counts them as those of one event."""
        number = 0
        for header, body, id_bytes in events:
            if header.type == EventType.TABLE_MAP:
                self._tables.add(body, id_bytes)
                continue
            event = read_rows_event(header.type, body, id_bytes)
            table = self._tables.get(event.table_id)
            if table is None or table.schema is None or table.readers is None:
                continue
            records: list[SourceRecord] = []
            for number, (before, after) in enumerate(table.readers.read(event), number):  # noqa: B020 (goes on counting)
                if number >= self._skip_rows and (change := table.current(event.operation, before, after)) is not None:
                    self._position.row(number, number + 1)
                    records += self._rows.records(table, table.schema, *change, number)
            number += 1
            self._put(records, header.size)
            self._skip_rows = max(self._skip_rows, number)

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
            self._is_open = True
            if not self._parts.mariadb:
                self._position.thread = query.thread
                self._report_begin(header)
        elif start.startswith(("COMMIT", "ROLLBACK")):
            is_sent = not self._parts.config.looks_ahead or sql in self._whole.unknown
            if start[0] == "R" and is_sent and self._has_rows and not self._skipped:
                self._parts.statements.take_back(sql, self._place)
            if not start.startswith("ROLLBACK T"):
                self._on_commit(header, memoryview(b""))
        elif start.startswith("XA "):
            self._on_xa(header, sql)
        elif not self._changes_rows(query):
            self._on_ddl(header, query)

    def _on_load(self, _header: Header, body: memoryview) -> None:
        self._changes_rows(Query.read(body, is_load=True))

    def _changes_rows(self, query: Query) -> bool:
        """Handle a statement that is in the log instead of the rows that it changes."""
        return not self._skipped and self._parts.statements.handle(query.sql, query.database, self._place)

    @property
    def _place(self) -> str:
        return f"{self._position.file}:{self._position.position}"

    def _on_ddl(self, header: Header, query: Query) -> None:
        parts = self._parts
        truncates = query.sql.lstrip()[:8].upper() == "TRUNCATE"
        if not self._skipped and (truncates or not parts.changes.left_out(query.sql)):
            records, truncated = parts.changes.handle(query.sql, query.database)
            for table in truncated:
                records = [*self._truncate(table, header), *records]
            self._put(records, header.size)
        if not self._is_open:
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
        number, self._row_events = self._row_events, self._row_events + 1
        if self._skipped or self._withheld or self._foreign or is_taken_back(number, self._whole.taken_back):
            return
        event = read_rows_event(header.type, body, self._id_bytes(header.type))
        table = self._tables.get(event.table_id)
        if table is None or table.schema is None or table.readers is None or table.definition is None:
            return
        self._has_rows = self._has_rows or table.captured
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
                    records += self._rows.records(table, table.schema, *change, number)
                if len(records) >= self._common.batch_size:
                    self._put(records, header.size * (number + 1 - passed) // count)
                    records, passed = [], number + 1
            self._put(records, header.size * (count - passed) // count)
        except BaseException:
            self._position.resume_at(self._position.skips[0], passed)  # a new dump reads the rest of the rows again
            raise


def pass_over(header: Header, file: str, mode: str) -> None:
    """Pass over an event unless it may hold changes and ``event.deserialization.failure.handling.mode`` is fail.

    Raises:
        ConnectError: it may, and the mode is.
    """
    if header.has_no_changes:
        return
    message = (
        f"The binary log has an event of type {header.kind} at {file}:{header.position}, which may hold changes and which this "
        "connector does not read."
    )
    if mode == "fail":
        raise ConnectError(
            f"{message} To go on without them, set event.deserialization.failure.handling.mode=warn; read the tables again "
            "afterwards."
        )
    log.log(logging.WARNING if mode == "warn" else logging.DEBUG, "%s It is skipped.", message)
