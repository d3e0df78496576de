"""Makes records of rows: keys, values, headers and offsets. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from sluiceway.api import Column, ColumnBatch, Offset, SourceColumns, SourceRecord
from sluiceway.columns.arrays import struct_array, to_values
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.connect_schemas import connect_array, row_schema
from sluiceway.connectors.tables.source.net_changes import CHANGE, DELETE
from sluiceway.connectors.tables.source.position import TABLE, Position
from sluiceway.data import STRING_SCHEMA, Header, Schema, Type
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

_FEWEST_ROWS_FOR_COLUMNS = 32


class Schemas(NamedTuple):
    """The schemas of the records of a snapshot's rows; ``key`` is None without id columns."""

    value: Schema
    key: Schema | None


class Piece(NamedTuple):
    """Rows of one file to produce together, and the position after the last one."""

    rows: pa.RecordBatch
    end: Position
    completes: bool
    """Whether they are the last rows of their snapshot."""


class RecordMaker:
    """Makes the records of one table.

    ``tombstones``: deleted rows become records with a null value; otherwise all records of changes have the header CHANGE.
    """

    def __init__(self, table: str, topic: str, *, tombstones: bool) -> None:
        self._table = table
        self._topic = topic
        self._partition = {TABLE: table}
        self._tombstones = tombstones

    def schemas(self, columns: pa.Schema, id_columns: Sequence[str]) -> Schemas:
        """Return the schemas for rows with these columns. Raises ConnectError if an id column is missing."""
        if CHANGE in columns.names:
            raise ConnectError(
                f"Table {self._table} has a column {CHANGE}, which is reserved. Leave it out with the key columns."
            )
        value = row_schema(columns, self._table.rpartition(".")[2])
        fields = {field.name: field.schema for field in value.fields}
        if missing := [name for name in id_columns if name not in fields]:
            raise ConnectError(f"Table {self._table} has no id column {', '.join(missing)} among the columns to read.")
        key = Schema(Type.STRUCT, fields=[(name, fields[name]) for name in id_columns]) if id_columns else None
        return Schemas(value, key)

    def make(self, piece: Piece, schemas: Schemas, *, header: str | None, columnar: bool) -> SourceColumns | list[SourceRecord]:
        """Return the records of some rows, as columns if that is wanted and worth it.

        Rows have the value of the column CHANGE as header, else ``header`` unless it is None.
        """
        rows = piece.rows
        changes: list[Any] | None = None
        if CHANGE in rows.schema.names:
            changes = rows.column(CHANGE).to_pylist()
            rows = rows.drop_columns([CHANGE])
        elif header is not None:
            changes = [header] * len(rows)
        array = connect_array(schemas.value, rows.to_struct_array())
        key = None if schemas.key is None else self._keys(schemas, schemas.key, array)

        def records() -> list[SourceRecord]:
            return self._records(piece, schemas, array, key, changes)

        typed = array.type == arrow_type(schemas.value) and (schemas.key is None or key is not None)
        if not columnar or changes is not None or not typed or len(rows) < _FEWEST_ROWS_FOR_COLUMNS:
            return records()
        batch = ColumnBatch(
            topic=self._topic,
            partition=None,
            key=Column(schemas.key, key),
            value=Column(schemas.value, array),
            count=len(rows),
        )
        return SourceColumns(
            batch=batch, source_partition=self._partition, source_offset=_offset(piece, len(rows)), records=records
        )

    @staticmethod
    def _keys(schemas: Schemas, key: Schema, values: AnyArray) -> AnyArray | None:
        """Return the keys; None if nested fields are not typed as the schema has them."""
        assert isinstance(values, pa.StructArray)  # noqa: S101 (the type of rows)
        arrays = [values.field(field.name) for field in key.fields]
        typed = all(array.type == arrow_type(field.schema) for array, field in zip(arrays, key.fields, strict=True))
        return struct_array(key, arrays) if typed else None

    def _records(
        self, piece: Piece, schemas: Schemas, array: AnyArray, keys: AnyArray | None, changes: list[Any] | None
    ) -> list[SourceRecord]:
        values = to_values(schemas.value, array)
        found: list[Any] = [None] * len(values)
        if schemas.key is not None:
            found = to_values(schemas.key, connect_array(schemas.key, _selected(array, schemas.key)) if keys is None else keys)
        records = [
            SourceRecord(self._partition, _offset(piece, number + 1), self._topic, value, schemas.value, key, schemas.key)
            for number, (value, key) in enumerate(zip(values, found, strict=True))
        ]
        if changes is not None:
            for record, change in zip(records, changes, strict=True):
                self._mark(record, change)
        return records

    def _mark(self, record: SourceRecord, change: str) -> None:
        if not self._tombstones:
            record.headers = (Header(CHANGE, change, STRING_SCHEMA),)
        elif change == DELETE:
            record.replace_data(record.key_schema, record.key, None, None)


def _selected(array: AnyArray, key: Schema) -> AnyArray:
    assert isinstance(array, pa.StructArray)  # noqa: S101 (the type of rows)
    names = [field.name for field in key.fields]
    return pa.StructArray.from_arrays([array.field(name) for name in names], names=names)


def _offset(piece: Piece, count: int) -> Offset:
    """Return the offset after the first ``count`` rows of a piece."""
    end = piece.end
    if count < len(piece.rows):
        return dataclasses.replace(end, row=end.row - len(piece.rows) + count).offset()
    return (Position(end.snapshot, uuid=end.uuid) if piece.completes else end).offset()
