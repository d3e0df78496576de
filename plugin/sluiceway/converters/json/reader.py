"""Converts exact JSON nodes to Connect's data, with a function for each schema. No I/O.

Like Connect, it accepts wrong scalars: a string instead of a number is 0, a number instead of a string is null.
``fast_reader`` must return the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sluiceway.converters.json.base64_text import from_base64
from sluiceway.converters.json.parser import MISSING
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, TO_LOGICAL, decimal_from_bytes
from sluiceway.data.schema import INTEGER_BITS, Schema, Type
from sluiceway.data.struct import Struct, validate_value
from sluiceway.errors import DataError
from sluiceway.java.numbers import decimal_to_integer, parse_float32, wrap

Read = Callable[[Any], Any]


def reader(schema: Schema | None, *, use_defaults: bool = True) -> Read:
    """Return the function from exact nodes to values of a schema (None: schemaless). The function raises DataError."""
    if schema is None:
        return read_schemaless
    read = _value_reader(schema, use_defaults)
    default, optional, name = schema.default if use_defaults else None, schema.optional, schema.type.name

    def read_or_null(node: Any) -> Any:
        if node is not None:
            return read(node)
        if default is None and not optional:
            raise DataError(f"Invalid null value for required {name} field")
        return default

    return read_or_null


def read_schemaless(node: Any) -> Any:
    """Return an exact node as a schemaless value: integers wrap to 64 bits, fractions become doubles."""
    try:
        return _schemaless(node)
    except RecursionError as error:
        raise DataError("Converting byte[] to Kafka Connect data failed: the document is nested too deeply.") from error


def _schemaless(node: Any) -> Any:
    if type(node) is int:
        return wrap(node, 64)
    if type(node) is Decimal:
        return _double(node)
    if type(node) is list:
        return [_schemaless(item) for item in node]
    if type(node) is dict:
        return {name: _schemaless(item) for name, item in node.items()}
    return None if node is MISSING else node


def _value_reader(schema: Schema, use_defaults: bool) -> Read:
    """Return the reader for nodes that are not null. Like in Connect, the name alone decides about logical types."""
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        return lambda node: logical(schema, node)
    if schema.type in INTEGER_BITS:
        bits = INTEGER_BITS[schema.type]
        return lambda node: _to_integer(node, bits)
    if schema.type in _SCALARS:
        return _SCALARS[schema.type]
    return {Type.ARRAY: _array, Type.MAP: _map, Type.STRUCT: _struct}[schema.type](schema, use_defaults)


def _array(schema: Schema, use_defaults: bool) -> Read:
    item = reader(schema.value_schema, use_defaults=use_defaults)

    def read(node: Any) -> Any:
        # Like Jackson's iterator: an object has its values as elements, a scalar has none.
        elements = node if isinstance(node, list) else node.values() if isinstance(node, dict) else ()
        return [item(element) for element in elements]

    return read


def _map(schema: Schema, use_defaults: bool) -> Read:
    key, item = reader(schema.key_schema, use_defaults=use_defaults), reader(schema.value_schema, use_defaults=use_defaults)
    if schema.key_schema is not None and schema.key_schema.type is Type.STRING:

        def read(node: Any) -> Any:
            if not isinstance(node, dict):
                raise DataError(f"Maps with string fields should be encoded as JSON objects, but found {kind_of(node)}")
            return {name: item(element) for name, element in node.items()}

        return read

    def read_pairs(node: Any) -> Any:
        if not isinstance(node, list):
            raise DataError(f"Maps with non-string fields should be encoded as JSON array of tuples, but found {kind_of(node)}")
        result = {}
        for entry in node:
            if not isinstance(entry, list):
                raise DataError(f"Found invalid map entry instead of array tuple: {kind_of(entry)}")
            if len(entry) != 2:
                raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
            result[_hashable(key(entry[0]))] = item(entry[1])
        return result

    return read_pairs


def _hashable(key: Any) -> Any:
    """Return a map key as a hashable value: a list becomes a tuple."""
    if isinstance(key, list):
        return tuple(_hashable(item) for item in key)
    if isinstance(key, dict):
        raise DataError(
            "Maps cannot be keys of a map, because a Python dict is not hashable. Use a struct or an array as the key."
        )
    return key


def _struct(schema: Schema, use_defaults: bool) -> Read:
    fields = [(field, reader(field.schema, use_defaults=use_defaults)) for field in schema.fields]

    def read(node: Any) -> Any:
        if not isinstance(node, dict):
            raise DataError(f"Structs should be encoded as JSON objects, but found {kind_of(node)}")
        values = []
        for field, read_field in fields:
            value = read_field(node.get(field.name))
            validate_value(field.schema, value, field.name)  # a wrong scalar may have become null
            values.append(value)
        return Struct.of(schema, values)

    return read


def _decimal(schema: Schema, node: Any) -> Decimal:
    if type(node) in (int, Decimal):
        return Decimal(node)
    if not isinstance(node, str):
        raise DataError(f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {kind_of(node)}")
    try:
        data = from_base64(node)
        if not data:
            raise ValueError("a Decimal has at least one byte")
        return decimal_from_bytes(schema, data)
    except (ValueError, DataError) as error:
        raise DataError("Invalid bytes for Decimal field") from error


def _date_or_time(schema: Schema, node: Any) -> Any:
    if type(node) is not int or wrap(node, 32) != node:
        kind = "Date" if schema.name == DATE else "Time"
        raise DataError(f"Invalid type for {kind}, underlying representation should be integer but was {kind_of(node)}")
    return TO_LOGICAL[schema.name or ""](schema, node)


def _timestamp(schema: Schema, node: Any) -> Any:
    if type(node) is not int:
        raise DataError(f"Invalid type for Timestamp, underlying representation should be integral but was {kind_of(node)}")
    return TO_LOGICAL[TIMESTAMP](schema, wrap(node, 64))


def _to_integer(node: Any, bits: int) -> int:
    """Return a node as an integer: fractions are truncated, other nodes are 0."""
    if type(node) is int:
        return wrap(node, bits)
    return decimal_to_integer(node, bits) if type(node) is Decimal else 0


def _double(node: Any) -> float:
    try:
        return float(node) + 0.0 if type(node) in (int, Decimal) else 0.0  # no negative zero: BigDecimal has none
    except OverflowError:
        return float("inf") if node > 0 else float("-inf")


def _float32(node: Any) -> float:
    return parse_float32(str(node)) + 0.0 if type(node) in (int, Decimal) else 0.0


def _bytes(node: Any) -> bytes | None:
    if type(node) is not str:
        return None
    try:
        return from_base64(node)
    except ValueError as error:
        raise DataError("Invalid bytes field") from error


def kind_of(node: Any) -> str:
    """Return the name of a node's kind (Jackson's JsonNodeType) for Connect's error messages."""
    if isinstance(node, bool):
        return "BOOLEAN"
    kinds = {dict: "OBJECT", list: "ARRAY", str: "STRING", type(None): "NULL", type(MISSING): "MISSING"}
    return kinds.get(type(node), "NUMBER")


_SCALARS: dict[Type, Read] = {
    Type.FLOAT32: _float32,
    Type.FLOAT64: _double,
    Type.BOOLEAN: lambda node: node is True,
    Type.STRING: lambda node: node if type(node) is str else None,
    Type.BYTES: _bytes,
}
_LOGICAL: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL: _decimal,
    DATE: _date_or_time,
    TIME: _date_or_time,
    TIMESTAMP: _timestamp,
}
