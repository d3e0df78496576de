"""Makes source records of row changes, heartbeats, transactions and notifications. No I/O but the clock."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import (
    ENCODED,
    EncodedRecords,
    NotColumnar,
    Offset,
    Refusal,
    RowFormReason,
    RowRecords,
    SourceRecord,
    TaskConverters,
)
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.envelope import (
    CREATE,
    DELETE,
    HEARTBEAT_KEY,
    HEARTBEAT_VALUE,
    NOTIFICATION_KEY,
    NOTIFICATION_VALUE,
    READ,
    TRANSACTION_KEY,
    TRANSACTION_VALUE,
    TRUNCATE,
    UPDATE,
)
from sluiceway.connectors.cdc.json_forms import UNUSUAL, is_unusual
from sluiceway.connectors.cdc.serializers import Serializers
from sluiceway.connectors.cdc.tables import Row, RowReader, TableSchema
from sluiceway.connectors.cdc.transactions import transaction_key
from sluiceway.data import Header, Headers, Struct
from sluiceway.data.schema import INT32_SCHEMA, STRING_SCHEMA

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.column_serializers import ColumnSerializer

FEWEST_ROWS = 32
"""Fewer rows become records one by one, because each batch of columns has a fixed cost."""

Count = Callable[[], Struct]
"""Counts an event of a transaction, and returns its transaction block."""

_MOST_SERIALIZERS = 10_000
_CONTEXT = "__debezium.context."
_SINGLE = Refusal(RowFormReason.TASK, "transforms, and errors.tolerance=all, need single records")
_OTHER_CONVERTER = Refusal(RowFormReason.CONVERTER, "only JsonConverter has a form for changes in columns")


class Emitter:
    """Makes the records of one task.

    A change becomes no record (``skipped.operations``, unchanged rows), one, two with a tombstone, or three for a changed key.
    ``source`` is the source block. ``transaction`` is called for each record but tombstones; None without transaction metadata.

    With ``converters`` (see ``SourceTaskContext.converters``), records are encoded straight from rows where that is possible.
    """

    def __init__(self, config: CommonConfig, connector: str, converters: TaskConverters | None = None) -> None:
        self.partition = {"server": config.prefix}
        self._config = config
        self._skipped = config.skipped_operations
        self._converters = converters
        self._serializers = None if converters is None else Serializers(converters)
        self._columns: dict[tuple[int, bool], tuple[TableSchema, ColumnSerializer | None]] | None = None
        self._refusal = _SINGLE if converters is None else None
        self._headers: Headers = ()
        if config.extended_headers:
            self._headers = (
                Header(f"{_CONTEXT}connectorLogicalName", config.prefix, STRING_SCHEMA),
                Header(f"{_CONTEXT}taskId", 0, INT32_SCHEMA),
                Header(f"{_CONTEXT}connectorName", connector, STRING_SCHEMA),
                Header(f"{_CONTEXT}runId", _uuid7(), STRING_SCHEMA),
            )

    def read(self, table: TableSchema, row: Row, source: Struct, offset: Offset) -> SourceRecord:
        """Return the record of a row of a snapshot."""
        return self._change(table, READ, None, row, source, None, offset, snapshot=True)

    def encoded(self, table: TableSchema, *, snapshot: bool) -> ColumnSerializer | None:
        """Return what encodes many records of a table at once, or None if records are made one by one."""
        if self._columns is None:
            return None
        found = self._columns.get((id(table), snapshot))
        if found is None or found[0] is not table:
            if len(self._columns) > _MOST_SERIALIZERS:
                self._columns.clear()
            found = self._columns[id(table), snapshot] = table, self._column_serializer(table, snapshot=snapshot)
        return found[1]

    def _column_serializer(self, table: TableSchema, *, snapshot: bool) -> ColumnSerializer | None:
        from sluiceway.connectors.cdc.column_serializers import ColumnSerializer

        assert self._converters is not None  # noqa: S101 (see encode_columns)
        value = self._converters.value.json_layout(table.envelope)
        reader = table.snapshot_key if snapshot else table.key
        key = None if reader is None else self._converters.key.json_layout(reader.schema)
        if value is None or (reader is not None and key is None):
            self._refusal = _OTHER_CONVERTER._replace(schema=table.envelope)
            return None
        return ColumnSerializer(table, key, value, snapshot=snapshot)

    @property
    def encodes_columns(self) -> bool:
        return self._columns is not None

    def encode_columns(self) -> None:
        """Allow ``encoded``, which loads Arrow."""
        if self._columns is None and self._converters is not None:
            self._columns = {}

    def reads(self, table: TableSchema, rows: Sequence[Row], source: Struct, offset: Offset) -> EncodedRecords | None:
        """Return the records of many rows of a snapshot, or None if they must be made one by one."""
        serializer = self.encoded(table, snapshot=True)
        if serializer is None:
            return None
        from sluiceway.connectors.cdc.column_rows import raw_columns

        def encode() -> EncodedRecords:
            columns = raw_columns(rows)
            after = serializer.row(columns, len(rows))
            values = serializer.values(f'"{READ}"', "null", after, source.values_, len(rows))
            return self.batch(table, serializer.keys(columns, len(rows)), values, offset)

        return self.attempt(table, encode)

    def attempt(self, table: TableSchema, encode: Callable[[], EncodedRecords]) -> EncodedRecords | None:
        """Return what a function encodes, or None if it raises NotColumnar: records one by one have the reference's value."""
        try:
            encoded = encode()
        except NotColumnar as error:
            self._refusal = error.refusal._replace(schema=table.envelope)
            return None
        self._refusal = None
        return encoded

    def with_reason(
        self, records: EncodedRecords | Sequence[SourceRecord] | None
    ) -> EncodedRecords | Sequence[SourceRecord] | None:
        """Return the records, those that are many and made one by one with the reason."""
        if records is None or isinstance(records, EncodedRecords) or self._refusal is None or len(records) < FEWEST_ROWS:
            return records
        return RowRecords(records, self._refusal)

    def batch(
        self, table: TableSchema, keys: Sequence[bytes | None], values: Sequence[bytes | None], offset: Offset
    ) -> EncodedRecords:
        return EncodedRecords(
            topic=table.topic,
            keys=keys,
            values=values,
            headers=self._headers,
            source_partition=self.partition,
            source_offset=offset,
        )

    def create(
        self, table: TableSchema, row: Row, source: Struct, transaction: Count | None, offset: Offset
    ) -> list[SourceRecord]:
        if CREATE in self._skipped:
            return []
        return [self._change(table, CREATE, None, row, source, transaction, offset)]

    def update(
        self, table: TableSchema, old: Row | None, row: Row, source: Struct, transaction: Count | None, offset: Offset
    ) -> list[SourceRecord]:
        """Return the records of an update. ``old`` is the row before, as far as the log has it, or None."""
        if UPDATE in self._skipped:
            return []
        if old is not None:
            key, old_key = _changed_keys(table, old, row)
            if key is not None and old_key is not None and key != old_key:
                before, after = table.value(old), table.value(row)
                return self._moved(table, old_key, key, before, after, source, transaction, offset)
            if self._config.skip_unchanged and table.value(old) == table.value(row):
                return []
        return [self._change(table, UPDATE, old, row, source, transaction, offset)]

    def delete(
        self, table: TableSchema, row: Row, source: Struct, transaction: Count | None, offset: Offset
    ) -> list[SourceRecord]:
        """Return the records of a delete: the change, and a tombstone unless ``tombstones.on.delete`` is false."""
        if DELETE in self._skipped:
            return []
        record = self._change(table, DELETE, row, None, source, transaction, offset)
        return [record, *self._tombstone(record)]

    def truncate(self, table: TableSchema, source: Struct, transaction: Count | None, offset: Offset) -> list[SourceRecord]:
        if TRUNCATE in self._skipped:
            return []
        block = None if transaction is None else transaction()
        return [self._record(table, None, TRUNCATE, None, None, source, block, offset)]

    def heartbeat(self, offset: Offset) -> SourceRecord:
        key = Struct.of(HEARTBEAT_KEY, [self._config.prefix])
        value = Struct.of(HEARTBEAT_VALUE, [time.time_ns() // 1_000_000])
        return SourceRecord(
            self.partition, offset, self._config.topics.heartbeat, value, HEARTBEAT_VALUE, key, HEARTBEAT_KEY, kafka_partition=0
        )

    def transaction(self, identifier: str, value: Struct, offset: Offset) -> SourceRecord:
        """Return a record of the transaction topic, with a value of ``TransactionCounter``."""
        key = transaction_key(identifier)
        return SourceRecord(
            self.partition, offset, self._config.topics.transaction, value, TRANSACTION_VALUE, key, TRANSACTION_KEY
        )

    def schema_change(self, key: Struct, value: Struct, offset: Offset) -> SourceRecord:
        """Return a record of the topic of schema changes."""
        topic = self._config.topics.schema_changes
        return SourceRecord(
            self.partition, offset, topic, value, value.schema, key, key.schema, kafka_partition=0, headers=self._headers
        )

    def notification(
        self, topic: str, identifier: str, kind: str, aggregate: str, data: Mapping[str, str], offset: Offset | None
    ) -> SourceRecord:
        """Return a record of the notification topic."""
        key = Struct.of(NOTIFICATION_KEY, [identifier])
        value = Struct.of(NOTIFICATION_VALUE, [identifier, kind, aggregate, dict(data), time.time_ns() // 1_000_000])
        return SourceRecord(self.partition, offset, topic, value, NOTIFICATION_VALUE, key, NOTIFICATION_KEY)

    def _moved(
        self,
        table: TableSchema,
        old_key: Struct,
        key: Struct,
        before: Struct | None,
        after: Struct,
        source: Struct,
        transaction: Count | None,
        offset: Offset,
    ) -> list[SourceRecord]:
        """Return the records of an update that changed the key: a delete, a tombstone, and a create."""
        block = None if transaction is None else transaction()
        deleted = self._record(table, old_key, DELETE, before, None, source, block, offset)
        deleted.headers = (Header("__debezium.newkey", key, key.schema), *self._headers)
        block = None if transaction is None else transaction()
        created = self._record(table, key, CREATE, None, after, source, block, offset)
        created.headers = (Header("__debezium.oldkey", old_key, old_key.schema), *self._headers)
        return [deleted, *self._tombstone(deleted), created]

    def _tombstone(self, deleted: SourceRecord) -> list[SourceRecord]:
        if not self._config.tombstones:
            return []
        return [deleted.with_data(deleted.key_schema, deleted.key, None, None)]

    def _change(
        self,
        table: TableSchema,
        op: str,
        old: Row | None,
        new: Row | None,
        source: Struct,
        transaction: Count | None,
        offset: Offset,
        *,
        snapshot: bool = False,
    ) -> SourceRecord:
        """Return the record of a change whose key is that of ``new``, or of ``old`` if the row was deleted."""
        reader = table.snapshot_key if snapshot else table.key
        keyed: Any = old if new is None else new
        block = None if transaction is None else transaction()
        serializer = None if self._serializers is None else self._serializers.of(table)
        if serializer is not None:
            write_row, write_key = serializer.row, serializer.key
            if snapshot:
                write_row, write_key = serializer.snapshot_row, serializer.snapshot_key
            key: Any = None
            key_schema = None
            try:
                if write_key is not None:
                    key, key_schema = write_key(keyed), ENCODED
                elif reader is not None:
                    key, key_schema = reader(keyed), reader.schema
                before, after = "null" if old is None else write_row(old), "null" if new is None else write_row(new)
                value = serializer.value(op, before, after, source, block)
                return SourceRecord(self.partition, offset, table.topic, value, ENCODED, key, key_schema, headers=self._headers)
            except UNUSUAL as error:  # the structs have the reference's value, or the error
                if not is_unusual(error, old, new):
                    raise
        read = table.snapshot_value if snapshot else table.value
        row_before, row_after = None if old is None else read(old), None if new is None else read(new)
        return self._record(table, _key(reader, keyed), op, row_before, row_after, source, block, offset)

    def _record(
        self,
        table: TableSchema,
        key: Struct | None,
        op: str,
        before: Struct | None,
        after: Struct | None,
        source: Struct,
        block: Struct | None,
        offset: Offset,
    ) -> SourceRecord:
        now: int = time.time_ns()
        values: list[Any] = [before, after, source, block, op, now // 1_000_000, now // 1000, now]
        value = Struct.of(table.envelope, values)
        key_schema = None if key is None else key.schema
        return SourceRecord(self.partition, offset, table.topic, value, table.envelope, key, key_schema, headers=self._headers)


def _key(reader: RowReader | None, row: Row | None) -> Struct | None:
    return None if reader is None or row is None else reader(row)


def _changed_keys(table: TableSchema, old: Row, row: Row) -> tuple[Struct | None, Struct | None]:
    """Return the keys of both rows, or None for both if their values are the same."""
    reader = table.key
    if reader is None or all(old[index] == row[index] for index, _ in reader.fields):
        return None, None
    return reader(row), reader(old)


def _uuid7() -> str:
    """Return a random UUID that begins with the time (RFC 9562)."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=number & ~(0x3 << 62) | 2 << 62))
