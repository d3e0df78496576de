"""Converts Connect's data to JSON nodes, with a function for each schema. No I/O. ``fast_writer`` must return the same nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson

from sluiceway.converters.json.base64_text import to_base64
from sluiceway.converters.json.printer import dumps, orjson_dumps
from sluiceway.data.class_names import java_class
from sluiceway.data.logical import DECIMAL, FROM_LOGICAL, decimal_to_bytes
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int16, Int32
from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.errors import DataError
from sluiceway.java.numbers import decimal_text, java_double, java_float, to_float32

Write = Callable[[Any], Any]

_INTEGERS: dict[Type, tuple[int, type[int]]] = {
    Type.INT8: (7, Int8),
    Type.INT16: (15, Int16),
    Type.INT32: (31, Int32),
    Type.INT64: (63, int),
}
_NARROW = (Int32, Int16, Int8)
_LINE_FEED = orjson.Fragment(b"\n")


class JsonWriter:
    """Creates writers. ``numeric_decimals`` writes Decimals as numbers instead of base64; ``use_defaults`` replaces nulls."""

    def __init__(self, *, numeric_decimals: bool = False, use_defaults: bool = True) -> None:
        self.numeric_decimals = numeric_decimals
        self.use_defaults = use_defaults

    def writer(self, schema: Schema | None) -> Write:
        """Return the function from values of a schema (None: schemaless) to printable nodes. The function raises DataError."""
        if schema is None:
            return self.schemaless
        write = self._value_writer(schema)
        default, optional = schema.default if self.use_defaults else None, schema.optional

        def write_or_null(value: Any) -> Any:
            if value is not None:
                return write(value)
            if default is not None:
                return write(default)
            if optional:
                return None
            raise DataError("Conversion error: null value for field that is required and has no default value")

        return write_or_null

    def _value_writer(self, schema: Schema) -> Write:
        """Return the writer for values that are not None. Like in Connect, the name alone decides about logical types."""
        if schema.name == DECIMAL:
            return lambda value: self._decimal(schema, value)
        if schema.name in FROM_LOGICAL:
            from_logical = FROM_LOGICAL[schema.name]
            return lambda value: from_logical(schema, value)
        if schema.type in _INTEGERS:
            return lambda value: _integer(schema, value)
        if schema.type in _SCALARS:
            scalar = _SCALARS[schema.type]
            return lambda value: scalar(schema, value)
        return {Type.ARRAY: self._array, Type.MAP: self._map, Type.STRUCT: self._struct}[schema.type](schema)

    def _array(self, schema: Schema) -> Write:
        item = self.writer(schema.value_schema)

        def write(value: Any) -> Any:
            if not isinstance(value, (list, tuple)):
                raise _wrong_type(schema, value)
            return [item(element) for element in value]

        return write

    def _map(self, schema: Schema) -> Write:
        key, item = self.writer(schema.key_schema), self.writer(schema.value_schema)
        as_object = schema.key_schema is not None and schema.key_schema.type is Type.STRING

        def write(value: Any) -> Any:
            if not isinstance(value, Mapping) or isinstance(value, Struct):
                raise _wrong_type(schema, value)
            pairs = [(key(name), item(element)) for name, element in value.items()]
            return {"null" if name is None else name: element for name, element in pairs} if as_object else pairs

        return write

    def _struct(self, schema: Schema) -> Write:
        fields = [(field.name, self.writer(field.schema)) for field in schema.fields]

        def write(value: Any) -> Any:
            if not isinstance(value, Struct):
                raise _wrong_type(schema, value)
            if value.schema is not schema and value.schema != schema:
                raise DataError("Mismatching schema.")
            return {name: item(element) for (name, item), element in zip(fields, value.values_, strict=True)}

        return write

    def _decimal(self, schema: Schema, value: Any) -> Any:
        if not isinstance(value, Decimal) or not value.is_finite():
            raise DataError(f"Invalid type for Decimal, expected BigDecimal but was class {java_class(value)}")
        if self.numeric_decimals:  # like in Connect, the schema's scale does not matter
            return orjson.Fragment(decimal_text(value))
        return to_base64(decimal_to_bytes(schema, value))

    def schemaless(self, value: Any) -> Any:
        """Return a schemaless value as a node. Raises DataError for a type that Connect does not have."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            if value.bit_length() < 64 and type(value) is not BigInteger:
                return int(value)
        elif isinstance(value, float):
            return orjson.Fragment(java_float(value)) if type(value) is Float32 and math.isfinite(value) else _finite(value)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            return to_base64(bytes(value))
        elif isinstance(value, (list, tuple)):
            return [self.schemaless(item) for item in value]
        elif isinstance(value, Struct):
            raise DataError("Mismatching schema.")  # Connect refuses a Struct inside schemaless data
        elif isinstance(value, Mapping):
            pairs = [(self.schemaless(key), self.schemaless(item)) for key, item in value.items()]
            return dict(pairs) if all(isinstance(key, str) for key in value) else pairs
        raise DataError(f"Java class class {java_class(value)} does not have corresponding schema type.")


def dumps_schemaless(writer: JsonWriter, value: Any) -> bytes:
    """Print a schemaless value: directly if orjson prints it correctly, else converted to nodes first."""
    try:
        text = orjson_dumps(value, _simple)
        if b"null" not in text or not _contains_non_finite(value):  # orjson prints NaN and the infinities as null
            return text
    except TypeError:
        pass
    try:
        return dumps(writer.schemaless(value))
    except RecursionError as error:
        raise DataError("Converting Kafka Connect data to byte[] failed: the value is nested too deeply.") from error


def dump_lines(writer: JsonWriter, values: Sequence[Any]) -> bytes:
    """Print schemaless values like ``dumps_schemaless``, all at once, each with a line feed."""
    lines: list[Any] = [_LINE_FEED] * (2 * len(values))
    lines[::2] = values
    try:
        # A line feed in strings is escaped, so those of the document are between the values.
        text = orjson_dumps(lines, _simple)[1:-1].replace(b",\n,", b"\n").removesuffix(b",\n")
    except TypeError:
        return b"".join([dumps_schemaless(writer, value) + b"\n" for value in values])
    if b"null" not in text:
        return text + b"\n" if values else b""
    printed = zip(text.split(b"\n"), values, strict=True)
    return b"".join([(dumps_schemaless(writer, value) if b"null" in line else line) + b"\n" for line, value in printed])


def _simple(value: Any) -> Any:
    """Replace a value of a type unknown to orjson. Raises TypeError if the whole value must be converted to nodes."""
    if type(value) is Float32 and math.isfinite(value):
        return orjson.Fragment(java_float(value))
    if type(value) in _NARROW:
        return int(value)
    if isinstance(value, (bytes, bytearray)):
        return to_base64(bytes(value))
    raise TypeError


def _contains_non_finite(value: Any) -> bool:
    """Return True if the value contains NaN or an infinity."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    for item in value:
        kind = type(item)
        if kind is not str and kind is not int and item is not None and _contains_non_finite(item):
            return True
    return False


def _wrong_type(schema: Schema, value: Any) -> DataError:
    return DataError(f"Invalid type for {schema.type.name}: class {java_class(value)}")


def _integer(schema: Schema, value: Any) -> int:
    bits, narrow = _INTEGERS[schema.type]
    if type(value) is not int and type(value) is not narrow:
        raise _wrong_type(schema, value)
    if not -(1 << bits) <= value < 1 << bits:
        raise DataError(f"Invalid value for {schema.type.name}: {value} does not fit")
    return int(value)


def _finite(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _float64(schema: Schema, value: Any) -> Any:
    if type(value) is not float:
        raise _wrong_type(schema, value)
    return orjson.Fragment(java_double(value)) if math.isfinite(value) else _finite(value)


def _float32(schema: Schema, value: Any) -> Any:
    if type(value) is not float and type(value) is not Float32:
        raise _wrong_type(schema, value)
    rounded = to_float32(value)
    return orjson.Fragment(java_float(rounded)) if math.isfinite(rounded) else _finite(rounded)


def _boolean(schema: Schema, value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong_type(schema, value)
    return value


def _string(schema: Schema, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong_type(schema, value)
    return str(value)


def _bytes(schema: Schema, value: Any) -> str:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise DataError(f"Invalid type for bytes type: class {java_class(value)}")
    return to_base64(bytes(value))


_SCALARS: dict[Type, Callable[[Schema, Any], Any]] = {
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
}
