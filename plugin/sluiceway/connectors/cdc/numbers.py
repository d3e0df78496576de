"""The forms of decimals and binary values by ``decimal.handling.mode`` and ``binary.handling.mode``. No I/O."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.data import Schema, Struct, decimal_schema
from sluiceway.data.schema import BYTES_SCHEMA, INT32_SCHEMA, STRING_SCHEMA

VARIABLE_DECIMAL = Schema.struct(
    [("scale", INT32_SCHEMA), ("value", BYTES_SCHEMA)],
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)

PRECISE, DOUBLE, TEXT = "precise", "double", "string"


def decimal_with_precision(scale: int, precision: int | None) -> Schema:
    """Return the schema of decimals; the precision is a parameter too, if it is known."""
    schema = decimal_schema(scale)
    if precision is None:
        return schema
    return schema.replace(parameters={**schema.parameters, "connect.decimal.precision": str(precision)})


def variable_decimal(value: Decimal) -> Struct:
    """Return a decimal with its own scale."""
    sign, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    number = int(Decimal((sign, digits, 0)))  # not by text, of which Python converts 4,300 digits at most
    return Struct.of(VARIABLE_DECIMAL, [scale, signed_bytes(number)])


def signed_bytes(number: int) -> bytes:
    """Return a number's shortest two's complement form (``BigInteger.toByteArray``)."""
    length = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(length, "big", signed=True)


def binary_field(mode: str, to_bytes: Callable[[object], bytes], placeholder: bytes) -> FieldType:
    """Return the type of a binary column; ``to_bytes`` reads a raw value."""
    encoders: dict[str, Callable[[bytes], str]] = {
        "base64": lambda data: base64.b64encode(data).decode(),
        "base64-url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
        "hex": bytes.hex,
    }
    encode = encoders.get(mode)
    if encode is None:
        return FieldType(BYTES_SCHEMA, to_bytes, b"", placeholder)
    unavailable = placeholder.decode("utf-8", "replace") if mode == "hex" else encode(placeholder)
    return FieldType(STRING_SCHEMA, lambda raw: encode(to_bytes(raw)), "", unavailable)
