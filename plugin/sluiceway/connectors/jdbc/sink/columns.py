"""Derives a record's columns and values from ``pk.mode`` and the schemas of key and value. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.dialects.writer import Row
from sluiceway.connectors.jdbc.sink.config import KAFKA_COLUMNS, PK_FIELDS, PK_MODE, PkMode, SinkOptions
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Field, Schema, Type
from sluiceway.data.generated import Code
from sluiceway.data.null_values import null_value
from sluiceway.data.schema_advice import schema_advice
from sluiceway.errors import ConnectError, DataError

Binder = Callable[[Any], Any]
BinderOf = Callable[[str, Schema], "Binder | None"]
"""Returns, for a field's name and schema, the function from a value that is not None to the driver's; None if they are the same.

Raises DataError for a schema without a column type.
"""

_POSITION = ("record.original_topic", "record.original_kafka_partition", "record.original_kafka_offset")
_POSITION_SCHEMAS = (STRING_SCHEMA, INT32_SCHEMA, INT64_SCHEMA)


class Column(NamedTuple):
    """A column of records; ``expression`` is the generated code that reads its value, ``null`` the value written for null."""

    name: str
    schema: Schema
    key: bool
    expression: str
    null: Any = None


class Layout(NamedTuple):
    """The columns for records of one key schema and one value schema, the ``keys`` columns of the primary key first.

    ``row`` returns the values of all columns of a record, ``key`` those of the key. ``binders`` convert the values of each
    column. A layout for tombstones has key columns only.
    """

    columns: tuple[Column, ...]
    keys: int
    row: Callable[[SinkRecord], Row]
    key: Callable[[SinkRecord], Row]
    binders: tuple[Binder | None, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def layout_of(
    options: SinkOptions, binder_of: BinderOf, key_schema: Schema | None, value_schema: Schema | None, *, tombstone: bool = False
) -> Layout:
    """Return the layout of records of these schemas.

    Raises DataError if such records cannot be written, and ConnectError if the config cannot be used with them.
    """
    keys = _key_columns(options, key_schema, value_schema)
    taken = {column.name for column in keys}
    others = [] if tombstone else [column for column in _value_columns(options, value_schema) if column.name not in taken]
    columns = (*keys, *others)
    if not columns:
        raise DataError("The record has no fields that become columns: neither a primary key nor fields of its value.")
    binders = tuple(binder_of(column.name, column.schema) for column in columns)
    return Layout(columns, len(keys), _extractor(columns, binders), _extractor(keys, binders), binders)


def _key_columns(options: SinkOptions, key_schema: Schema | None, value_schema: Schema | None) -> tuple[Column, ...]:
    if options.pk_mode is PkMode.NONE:
        return ()
    if options.pk_mode is PkMode.KAFKA:
        names = options.pk_fields or KAFKA_COLUMNS
        return tuple(Column(*each[:2], True, each[2]) for each in zip(names, _POSITION_SCHEMAS, _POSITION, strict=True))
    if options.pk_mode is PkMode.RECORD_VALUE:
        return tuple(_chosen(options, _struct(value_schema, "value"), "value"))
    if key_schema is None:
        raise DataError(f"{PK_MODE}=record_key needs keys with a schema, and the record's key has none.")
    if key_schema.type is Type.STRUCT:
        return tuple(_chosen(options, key_schema, "key"))
    if not key_schema.type.primitive:
        raise DataError(f"{PK_MODE}=record_key takes keys that are structs or single values, not {key_schema.type.name}.")
    if len(options.pk_fields) != 1:
        raise ConnectError(
            f"The records' keys are single values ({key_schema.type.name}), so {PK_FIELDS} has to name one column for them; "
            f"it names {', '.join(options.pk_fields) or 'none'}."
        )
    return (Column(options.pk_fields[0], key_schema, True, "record.key", _null(options, key_schema)),)


def _chosen(options: SinkOptions, schema: Schema, part: str) -> Iterator[Column]:
    """Yield the primary key's columns from a struct, in the order of ``pk.fields``."""
    for name in options.pk_fields or [field.name for field in schema.fields]:
        field = schema.field(name)
        if field is None:
            fields = ", ".join(each.name for each in schema.fields)
            raise DataError(f"{PK_FIELDS} names {name}, which the record's {part} does not have; it has {fields}.")
        yield _column(options, field, part, key=True)


def _value_columns(options: SinkOptions, schema: Schema | None) -> Iterator[Column]:
    for field in _struct(schema, "value").fields:
        if not options.fields or field.name in options.fields:
            yield _column(options, field, "value", key=False)


def _struct(schema: Schema | None, part: str) -> Schema:
    if schema is None or schema.type is not Type.STRUCT:
        if schema is None:
            raise DataError(f"The record's {part} has to be a struct with a schema, and has no schema. {schema_advice(part)}.")
        raise DataError(
            f"The record's {part} has to be a struct with a schema, and has a schema of type {schema.type.name}. Put it into "
            "a field with the transform HoistField."
        )
    return schema


def _column(options: SinkOptions, field: Field, part: str, *, key: bool) -> Column:
    return Column(field.name, field.schema, key, f"{part}[{field.index}]", _null(options, field.schema))


def _null(options: SinkOptions, schema: Schema) -> Any:
    return null_value(schema, replace=options.replace_nulls)


def _extractor(columns: tuple[Column, ...], binders: tuple[Binder | None, ...]) -> Callable[[SinkRecord], Row]:
    """Return the function from a record to the values of columns, compiled because it is called for each record."""
    code = Code()
    body = []
    for part in ("key", "value"):
        if any(column.expression.startswith(f"{part}[") for column in columns):
            missing = code.bind(DataError(f"The record has no {part}, and columns take their values from it."))
            body += [f"if record.{part} is None:", f"    raise {missing}", f"{part} = record.{part}.values_"]
    values = []
    for number, (column, binder) in enumerate(zip(columns, binders, strict=False)):  # the key's columns are the first ones
        value = f"column{number}"
        body.append(f"{value} = {column.expression}")
        if column.null is not None:
            body += [f"if {value} is None:", f"    {value} = {code.bind(column.null)}"]
        values.append(value if binder is None else f"None if {value} is None else {code.bind(binder)}({value})")
    body.append(f"return ({''.join(each + ', ' for each in values)})")
    return code.callable(code.function("record", body))
