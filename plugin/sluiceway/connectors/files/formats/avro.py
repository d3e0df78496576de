"""Avro container files, by fastavro."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, cast

from fastavro import parse_schema
from fastavro.schema import SchemaParseException
from fastavro.write import Writer

from sluiceway.columns.arrays import to_values
from sluiceway.connectors.files.formats.base import FileWriter, Format
from sluiceway.connectors.files.keys import AVRO_CODEC, AVRO_ENHANCED, AVRO_META_DATA, AVRO_OPTIONAL_MAP_KEYS
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.avro_schema import ENUM, FILES, AvroOptions, enum_symbols, filled, fixed_size, has_string_keys, to_avro
from sluiceway.data.instant import Instant
from sluiceway.data.logical import DECIMAL, FROM_LOGICAL
from sluiceway.data.schema_advice import schema_advice
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.connectors.files.filesystem import Output

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CODECS = {"null": "null", "deflate": "deflate", "snappy": "snappy", "bzip2": "bzip2"}


class AvroWriter(FileWriter):
    """Writes a container file with blocks of a few thousand bytes, which are fastavro's."""

    def __init__(self, output: Output, schema: Any, codec: str) -> None:
        self._writer: Any = Writer(cast("IO[bytes]", output), schema, codec=_CODECS[codec])

    def write(self, piece: list[Any]) -> None:
        for value in piece:
            self._writer.write(value)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.flush()


class AvroFormat(Format):
    """Values of any schema, with the Avro schema that Confluent's AvroConverter would give them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._avro = replace(
            FILES,
            meta_data=options.get(AVRO_META_DATA) != "false",
            enhanced=options.get(AVRO_ENHANCED) == "true",
            optional_map_keys=options.get(AVRO_OPTIONAL_MAP_KEYS) == "true",
        )
        self._converters: dict[Schema, Callable[[Any], Any]] = {}
        self._schemas: dict[Schema, Any] = {}

    @property
    def extension(self) -> str:
        return ".avro"

    def rows(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> list[Any]:
        if schema is None:
            raise DataError(f"Avro files need records with a schema. {schema_advice()}; or write JSON files.")
        convert = self._converters.get(schema)
        if convert is None:
            self._parsed(schema)
            convert = self._converters[schema] = _converter(self.readable(schema), "", self._avro)
        return [convert(value) for value in values]

    def columns(self, topic: str, schema: Schema, array: AnyArray) -> list[Any]:
        return self.rows(topic, schema, to_values(schema, array))

    def open(self, output: Output, topic: str, schema: Schema | None) -> FileWriter:
        if schema is None:
            raise DataError("Avro files need records with a schema.")
        return AvroWriter(output, self._parsed(schema), self.options[AVRO_CODEC])

    def _parsed(self, schema: Schema) -> Any:
        if schema not in self._schemas:
            _check_names(schema)
            try:
                self._schemas[schema] = parse_schema(to_avro(schema, self._avro))
            except (SchemaParseException, ValueError) as error:
                raise DataError(f"The schema cannot be an Avro schema: {error}. Rename fields with ReplaceField.") from error
        return self._schemas[schema]


def _check_names(schema: Schema) -> None:
    """Raise DataError for a name of a struct or field that Avro does not allow; fastavro takes any."""
    if schema.type is Type.STRUCT:
        for name in (*(schema.name or "x").split("."), *(field.name for field in schema.fields)):
            if not _NAME.fullmatch(name):
                raise DataError(
                    f"Avro does not allow the name {name!r}. Rename it with the transform ReplaceField or SetSchemaMetadata."
                )
    for part in (schema.key_schema, schema.value_schema, *(field.schema for field in schema.fields)):
        if part is not None:
            _check_names(part)


def _converter(schema: Schema, path: str, options: AvroOptions) -> Callable[[Any], Any]:
    """Return the function from Connect's values to fastavro's. Nulls become the schema's defaults.

    It raises DataError, which names the field's ``path``, for what fastavro would find after it has written a part of the record.
    """
    convert = _NESTED.get(schema.type, _leaf)(schema, path, options)
    default = None if schema.default is None else convert(schema.default)
    if default is not None or schema.optional:
        return lambda value: default if value is None else convert(value)
    return lambda value: convert(value) if value is not None else _refuse(path, "it is required, and the value is null")


def _leaf(schema: Schema, path: str, _options: AvroOptions) -> Callable[[Any], Any]:
    if schema.name in FROM_LOGICAL:  # written as numbers and bytes: fastavro would check the precision of decimals
        primitive, name = FROM_LOGICAL[schema.name], schema.name
        return lambda value: (
            primitive(schema, value) if isinstance(value, _LOGICAL_VALUES) else _refuse(path, f"{value!r} is no value of {name}")
        )
    return lambda value: value


def _bytes(schema: Schema, path: str, options: AvroOptions) -> Callable[[Any], Any]:
    plain = _leaf(schema, path, options) if schema.name in FROM_LOGICAL else bytes
    if (size := fixed_size(schema)) is None:
        return plain
    is_number = schema.name == DECIMAL

    def convert(value: Any) -> bytes:
        found = filled(plain(value), size) if is_number else plain(value)
        return found if len(found) == size else _refuse(path, f"it has {len(found)} bytes, not {size}")

    return convert


def _text(schema: Schema, path: str, options: AvroOptions) -> Callable[[Any], Any]:
    if options.enhanced and ENUM in schema.parameters:
        symbols = frozenset(enum_symbols(schema))
        return lambda value: value if value in symbols else _refuse(path, f"{value!r} is not one of {', '.join(sorted(symbols))}")

    def convert(value: str) -> str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                _refuse(path, str(error))
        return value

    return convert


def _struct(schema: Schema, path: str, options: AvroOptions) -> Callable[[Any], Any]:
    fields = [(field.name, field.index, _converter(field.schema, f"{path}.{field.name}", options)) for field in schema.fields]

    def convert(value: Struct) -> dict[str, Any]:
        values = value.values_
        return {name: convert(values[index]) for name, index, convert in fields}

    return convert


def _array(schema: Schema, path: str, options: AvroOptions) -> Callable[[Any], Any]:
    assert schema.value_schema is not None  # noqa: S101 (an array schema has one)
    item = _converter(schema.value_schema, path, options)
    return lambda values: [item(value) for value in values]


def _map(schema: Schema, path: str, options: AvroOptions) -> Callable[[Any], Any]:
    keys, items = schema.key_schema, schema.value_schema
    assert keys is not None  # noqa: S101 (a map schema has both)
    assert items is not None  # noqa: S101
    key, item = _converter(keys, path, options), _converter(items, path, options)
    if has_string_keys(schema, options):
        return lambda values: {key(name): item(value) for name, value in values.items()}
    return lambda values: [{"key": key(name), "value": item(value)} for name, value in values.items()]


_NESTED: dict[Type, Callable[[Schema, str, AvroOptions], Callable[[Any], Any]]] = {
    Type.STRUCT: _struct,
    Type.ARRAY: _array,
    Type.MAP: _map,
    Type.STRING: _text,
    Type.BYTES: _bytes,
}

_LOGICAL_VALUES = (Decimal, dt.date, dt.time, dt.datetime, Instant)


def _refuse(path: str, reason: str) -> Any:
    where = f"the field {path.removeprefix('.')}" if path else "the value"
    raise DataError(f"Avro files cannot hold {where}: {reason}.")
