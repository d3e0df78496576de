"""Maps Connect's schemas to the columns of a Hive table, and merges them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from sluiceway.data import Field, Schema, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, decimal_scale
from sluiceway.data.schema_advice import schema_advice
from sluiceway.errors import DataError

_PRECISION = "connect.decimal.precision"
_DIGITS = 38
_PRIMITIVE = {
    Type.INT8: "tinyint",
    Type.INT16: "smallint",
    Type.INT32: "int",
    Type.INT64: "bigint",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "binary",
}
_LOGICAL = {DATE: "date", TIME: "int", TIMESTAMP: "timestamp"}
_AVRO = {Type.INT8: "int", Type.INT16: "int"}
_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
# They separate names and types in the text of a type.
_FORBIDDEN = re.compile(r"[,:;<>`\s]")


class Column(NamedTuple):
    """A column of a Hive table. Hive's names have no upper case."""

    name: str
    type: str


def table_schema(schema: Schema | None, partitions: Collection[str]) -> Schema:
    """Return the schema of a table without the fields that are partitions, which Hive takes from the folders.

    Raises DataError for values without columns, and for columns that Hive cannot have.
    """
    if schema is None:
        raise DataError(f"A Hive table needs values with a schema. {schema_advice()}.")
    if schema.type is not Type.STRUCT:
        raise DataError("A Hive table needs values with fields. Put the value into a field with the transform HoistField.")
    kept = {field.name: field.schema for field in schema.fields if field.name.lower() not in partitions}
    if not kept:
        raise DataError("A Hive table needs a field that is not a partition.")
    names = [name.lower() for name in kept]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"Hive does not distinguish the fields {twice} by upper and lower case. Rename one with ReplaceField.")
    return Schema.struct(kept, name=schema.name, version=schema.version, doc=schema.doc)


def columns(schema: Schema, *, avro: bool = False) -> tuple[Column, ...]:
    """Return the columns of a table's schema. Avro files have no integers below 32 bits. Raises DataError."""
    return tuple(_column(field, avro=avro) for field in schema.fields)


def _column(field: Field, *, avro: bool) -> Column:
    try:
        return Column(_name(field.name.lower()), _type(field.schema, avro=avro))
    except DataError as error:
        raise DataError(f"Field {field.name}: {error}") from error


def _type(schema: Schema, *, avro: bool) -> str:
    nested = _NESTED.get(schema.type)
    if nested is not None:
        return nested(schema, avro)
    if schema.name == DECIMAL:
        return _decimal(schema)
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    return _AVRO.get(schema.type, _PRIMITIVE[schema.type]) if avro else _PRIMITIVE[schema.type]


def _decimal(schema: Schema) -> str:
    scale = decimal_scale(schema)
    digits = max(int(schema.parameters.get(_PRECISION, _DIGITS)), scale)
    if scale < 0 or digits > _DIGITS:
        raise DataError(f"Hive has no decimals with {digits} digits and scale {scale}; it allows {_DIGITS} digits.")
    return f"decimal({digits},{scale})"


def _struct(schema: Schema, avro: bool) -> str:
    if not schema.fields:
        raise DataError("Hive has no structs without fields. Leave the field out with the transform ReplaceField.")
    return f"struct<{','.join(f'{_name(field.name)}:{_type(field.schema, avro=avro)}' for field in schema.fields)}>"


def _array(schema: Schema, avro: bool) -> str:
    return f"array<{_type(_inner(schema.value_schema), avro=avro)}>"


def _map(schema: Schema, avro: bool) -> str:
    keys, values = _inner(schema.key_schema), _inner(schema.value_schema)
    key, value = _type(keys, avro=avro), _type(values, avro=avro)
    if avro and (keys.type is not Type.STRING or keys.optional):
        return f"array<struct<key:{key},value:{value}>>"
    return f"map<{key},{value}>"


_NESTED: dict[Type, Callable[[Schema, bool], str]] = {Type.STRUCT: _struct, Type.ARRAY: _array, Type.MAP: _map}


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("A Hive table needs the schemas of the elements of arrays and maps.")
    return schema


def _name(name: str) -> str:
    if _FORBIDDEN.search(name):
        raise DataError(f"Hive does not allow the column name {name!r}. Rename it with the transform ReplaceField.")
    return name


def merged(table: Sequence[Column], file: Sequence[Column]) -> tuple[list[Column], list[str]]:
    """Return the table's columns with those of a file added or widened, and the names of columns that do not fit together."""
    found = {column.name.lower(): column for column in table}
    conflicts = []
    for column in file:
        before = found.get(column.name)
        kind = column.type if before is None else _wider(before.type, column.type)
        if kind is None:
            conflicts.append(column.name)
        else:
            found[column.name] = Column(column.name, kind)
    return list(found.values()), conflicts


def _wider(table: str, file: str) -> str | None:
    """Return the type that holds the values of both, None if there is none. Fields of structs are added as columns are."""
    if table == file:
        return table
    for types in _WIDER:
        if table in types and file in types:
            return max(table, file, key=types.index)
    if table.startswith("struct<") and file.startswith("struct<"):
        return _merged_struct(table, file)
    return None


def _merged_struct(table: str, file: str) -> str | None:
    before, after = _fields(table), _fields(file)
    both, conflicts = merged(before, after)
    return None if conflicts else f"struct<{','.join(f'{name}:{kind}' for name, kind in both)}>"


def _fields(struct: str) -> list[Column]:
    """Return the fields in the text of a struct's type."""
    parts, depth, start = [], 0, len("struct<")
    inner = struct[:-1]
    for position in range(start, len(inner)):
        depth += {"<": 1, ">": -1, "(": 1, ")": -1}.get(inner[position], 0)
        if inner[position] == "," and depth == 0:
            parts.append(inner[start:position])
            start = position + 1
    parts.append(inner[start:])
    return [Column(name.lower(), kind) for name, _, kind in (part.partition(":") for part in parts)]
