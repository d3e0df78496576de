"""Builds the schemas of a table's records and the functions from rows to keys and values. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sluiceway.connectors.cdc.columns import Column, ColumnRules, Convert, Mutation, compiled, noticed, with_schema
from sluiceway.connectors.cdc.envelope import envelope_schema
from sluiceway.connectors.cdc.filters import KeyColumns, Matcher, TableId
from sluiceway.connectors.cdc.json_forms import JsonForm
from sluiceway.connectors.cdc.naming import Adjuster, TopicNames
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.schema import STRING_SCHEMA

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes a struct of a row: for each field the row's index and the conversion.

    ``forms`` has the fields' forms in JSON, as far as there are any. ``width`` is the number of values in a row.
    """

    schema: Schema
    fields: tuple[tuple[int, Convert], ...]
    forms: tuple[JsonForm | None, ...] = ()
    width: int = 0

    def __call__(self, row: Row) -> Struct:
        return Struct.of(self.schema, [convert(row[index]) for index, convert in self.fields])


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table's topic, schemas and row functions. Rows have the values of ``columns``, in this order.

    ``key`` is None for a table without key. ``primary`` are the indexes of the columns of the primary key, whatever the records'
    key is; ``identity`` reads these. The functions for snapshots differ where Debezium's snapshots do.
    """

    id: TableId
    topic: str
    columns: tuple[str, ...]
    envelope: Schema
    key: RowReader | None
    value: RowReader
    snapshot_key: RowReader | None
    snapshot_value: RowReader
    primary: tuple[int, ...] = ()
    identity: RowReader | None = None
    snapshot_identity: RowReader | None = None

    @property
    def key_schema(self) -> Schema | None:
        return None if self.key is None else self.key.schema


@dataclass(frozen=True, slots=True)
class TableSchemas:
    """Builds table schemas by a config.

    Args:
        included: tells by ``schema.table.column`` whether records have a column.
    """

    topics: TopicNames
    source: Schema
    rules: ColumnRules
    keys: KeyColumns
    included: Matcher
    schema_name: Adjuster
    field_name: Adjuster

    def build(self, table: TableId, columns: Sequence[Column], primary_key: Sequence[str]) -> TableSchema:
        """Return the schema of a table. ``primary_key`` names the columns in the order of the key."""
        topic = self.topics.table(table)
        self.rules.warn_of_unmasked(str(table), columns)
        names = [column.name for column in columns]
        kept = [column.name for column in columns if self.included(f"{table}.{column.name}") and column.field is not None]
        value = self._reader(f"{topic}.Value", table, columns, kept, ruled=True, snapshot=False)
        key_names = self.keys.of(table, names)
        key_names = [name for name in (primary_key if key_names is None else key_names) if name in names]
        primary = [name for name in primary_key if name in names]
        return TableSchema(
            id=table,
            topic=topic,
            columns=tuple(names),
            envelope=envelope_schema(self.schema_name(f"{topic}.Envelope"), value.schema, self.source),
            key=self._record_key(topic, table, columns, key_names, snapshot=False),
            value=value,
            snapshot_key=self._record_key(topic, table, columns, key_names, snapshot=True),
            snapshot_value=replace(self._reader("", table, columns, kept, ruled=True, snapshot=True), schema=value.schema),
            primary=tuple(map(names.index, primary)),
            identity=self._key(topic, table, columns, primary, snapshot=False),
            snapshot_identity=self._key(topic, table, columns, primary, snapshot=True),
        )

    def _record_key(
        self, topic: str, table: TableId, columns: Sequence[Column], names: Sequence[str], *, snapshot: bool
    ) -> RowReader | None:
        """Return the reader of records' keys: the key columns, and what tells the tables of a topic apart."""
        reader = self._key(topic, table, columns, names, snapshot=snapshot)
        extra = self.topics.key_field(table)
        if extra is None or not columns:
            return reader
        name, value = extra
        if reader is None:
            reader = RowReader(Schema.struct([], name=self.schema_name(f"{topic}.Key")), (), (), len(columns))
        fields = [(field.name, field.schema) for field in reader.schema.fields]
        any_column = reader.fields[0][0] if reader.fields else 0  # a column of the key, so that only its updates change keys
        return RowReader(
            Schema.struct([*fields, (name, STRING_SCHEMA)], name=reader.schema.name),
            (*reader.fields, (any_column, lambda _any: value)),
            (*reader.forms, None),
            reader.width,
        )

    def _key(
        self, topic: str, table: TableId, columns: Sequence[Column], names: Sequence[str], *, snapshot: bool
    ) -> RowReader | None:
        if not names:
            return None
        reader = self._reader(f"{topic}.Key", table, columns, names, ruled=False, snapshot=snapshot)
        schema = Schema.struct([(each.name, each.schema) for each in reader.schema.fields], name=reader.schema.name)
        return replace(reader, schema=schema)

    def _reader(
        self, name: str, table: TableId, columns: Sequence[Column], names: Sequence[str], *, ruled: bool, snapshot: bool
    ) -> RowReader:
        positions = {column.name: index for index, column in enumerate(columns)}
        fields: list[tuple[str, Schema]] = []
        converts: list[tuple[int, Convert]] = []
        forms: list[JsonForm | None] = []
        for each in names:
            column = columns[positions[each]]
            if column.field is None:
                continue
            schema, convert, form = self._field(table, column, ruled=ruled, snapshot=snapshot)
            fields.append((self.field_name(each), schema))
            converts.append((positions[each], convert))
            forms.append(form)
        struct = Schema.struct(fields, name=self.schema_name(name), optional=True)
        return RowReader(struct, tuple(converts), tuple(forms), len(columns))

    def _field(self, table: TableId, column: Column, *, ruled: bool, snapshot: bool) -> tuple[Schema, Convert, JsonForm | None]:
        """Return a column's field schema, its conversion, and its form in JSON if no rule changes its values."""
        kind = column.field
        assert kind is not None  # noqa: S101 (columns without one are left out)
        mutation = self.rules.mutation(str(table), column) if ruled else Mutation()
        parameters = {**kind.schema.parameters, **mutation.parameters}
        schema = kind.schema.replace(optional=column.optional, default=column.default, parameters=parameters)
        on_null = None if column.optional else (kind.fallback if column.default is None else column.default)
        convert, form = kind.convert, kind.json
        if snapshot and kind.snapshot is not None:
            convert, form = kind.snapshot, kind.snapshot_json
        if isinstance(on_null, Struct):
            on_null = Struct.of(schema, on_null.values_)
        convert = with_schema(convert, schema)
        if ruled and not column.optional:
            convert = noticed(convert, str(table), column)
        unavailable = kind.unavailable
        if unavailable is None and kind.schema.type is Type.ARRAY and not column.optional:
            unavailable = kind.fallback  # null is no value of the field, and would end the task
        read = compiled(convert, on_null=on_null, unavailable=unavailable, change=mutation.convert)
        return schema, read, form if mutation.convert is None else None
