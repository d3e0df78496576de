"""From Connect's data to JSON: one function per schema, made once. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from sluiceway.converters.json_schema import to_base64
from sluiceway.data.logical import DECIMAL, FROM_LOGICAL, decimal_to_bytes
from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.errors import DataError

Write = Callable[[Any], Any]

_BITS = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
_BACKSLASH = ord("\\")
_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS
# An escaped backslash is matched too, so that the text after it is not taken for an escape.
_ESCAPES = re.compile(rb"\\(?:\\|u00[01][a-f])")


class JsonWriter:
    """Makes writers. ``numeric_decimals``: Decimals as numbers, not base64; ``use_defaults``: nulls become defaults."""

    def __init__(self, *, numeric_decimals: bool = False, use_defaults: bool = True) -> None:
        self._numeric_decimals = numeric_decimals
        self._use_defaults = use_defaults

    def writer(self, schema: Schema | None) -> Write:
        """Return the function from values of a schema (None: of no schema) to what orjson can print."""
        if schema is None:
            return self.schemaless
        write = self._writer_with_nulls(schema)
        exact = _EXACT.get(schema.type)
        # Nearly all values are of the type itself: those take one call less.
        return write if exact is None else lambda value: value if type(value) is exact else write(value)

    def _writer_with_nulls(self, schema: Schema) -> Write:
        write = self._value_writer(schema)
        if schema.default is not None and self._use_defaults:
            default = write(schema.default)
            return lambda value: default if value is None else write(value)
        if schema.optional:
            return lambda value: None if value is None else write(value)

        def required(value: Any) -> Any:
            if value is None:
                raise DataError("Conversion error: null value for field that is required and has no default value")
            return write(value)

        return required

    def _value_writer(self, schema: Schema) -> Write:
        """Return the writer for values that are not None."""
        if schema.name == DECIMAL and self._numeric_decimals:
            return lambda value: _numeric_decimal(schema, value)
        if schema.name in FROM_LOGICAL and schema.type.primitive:
            from_logical = FROM_LOGICAL[schema.name]
            if schema.type is Type.BYTES:
                return lambda value: to_base64(from_logical(schema, value))
            return lambda value: from_logical(schema, value)
        if schema.type.primitive:
            return _PRIMITIVES[schema.type](schema)
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
            return dict(pairs) if as_object else pairs

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

    def schemaless(self, value: Any) -> Any:
        """Return a value of no schema as what orjson can print; raises DataError for a type outside Connect's data."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return value if value.bit_length() < 64 else orjson.Fragment(str(value))
        if isinstance(value, float):
            return _float(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return to_base64(bytes(value))
        if isinstance(value, (list, tuple)):
            return [self.schemaless(item) for item in value]
        if isinstance(value, Struct):
            return self.writer(value.schema)(value)
        if isinstance(value, Mapping):
            pairs = [(self.schemaless(key), self.schemaless(item)) for key, item in value.items()]
            return dict(pairs) if all(isinstance(key, str) for key, _ in pairs) else pairs
        raise DataError(f"Python class {type(value).__name__} does not have corresponding schema type.")


def dumps(node: Any) -> bytes:
    """Print JSON as Connect's library does: compact, control characters as ``\\u001F``. Raises DataError."""
    try:
        text = orjson.dumps(node, option=_OPTIONS)
    except (TypeError, RecursionError) as error:
        raise DataError(f"Converting Kafka Connect data to byte[] failed due to serialization error: {error}") from error
    # Looking for a single byte is eight times faster than looking for b"\\u00".
    return _ESCAPES.sub(_upper, text) if _BACKSLASH in text else text


def _upper(escape: re.Match[bytes]) -> bytes:
    return escape[0][:2] + escape[0][2:].upper()


def dumps_schemaless(writer: JsonWriter, value: Any) -> bytes:
    """Print a value of no schema: at once where orjson prints it right, else after a walk over it."""
    try:
        text = orjson.dumps(value, option=_OPTIONS)
    except (TypeError, RecursionError):
        return dumps(writer.schemaless(value))
    # orjson prints NaN and the infinities as null, and its escapes are in lower case.
    return dumps(writer.schemaless(value)) if b"null" in text or _BACKSLASH in text else text


def _wrong_type(schema: Schema, value: Any) -> DataError:
    return DataError(f"Invalid type for {schema.type.name}: {type(value).__name__}")


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _numeric_decimal(schema: Schema, value: Any) -> Any:
    decimal_to_bytes(schema, value)  # checks type and scale
    return orjson.Fragment(format(value, "f"))


def _integer_writer(schema: Schema) -> Write:
    bits = _BITS[schema.type]

    def write(value: Any) -> Any:
        if type(value) is not int:
            raise _wrong_type(schema, value)
        if not -(1 << bits) <= value < 1 << bits:
            raise DataError(f"Invalid value for {schema.type.name}: {value} does not fit")
        return value

    return write


def _float_writer(schema: Schema) -> Write:
    def write(value: Any) -> Any:
        if type(value) is not float:
            raise _wrong_type(schema, value)
        return _float(value)

    return write


def _exact_writer(python_type: type) -> Callable[[Schema], Write]:
    def make(schema: Schema) -> Write:
        def write(value: Any) -> Any:
            if type(value) is not python_type:
                raise _wrong_type(schema, value)
            return value

        return write

    return make


def _bytes_writer(schema: Schema) -> Write:
    def write(value: Any) -> Any:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise _wrong_type(schema, value)
        return to_base64(bytes(value))

    return write


_EXACT = {Type.STRING: str, Type.BOOLEAN: bool}
_PRIMITIVES: dict[Type, Callable[[Schema], Write]] = {
    **dict.fromkeys(_BITS, _integer_writer),
    Type.FLOAT32: _float_writer, Type.FLOAT64: _float_writer, Type.BOOLEAN: _exact_writer(bool),
    Type.STRING: _exact_writer(str), Type.BYTES: _bytes_writer,
}  # fmt: skip
