"""Forms of records for systems whose values are bytes, such as queues. No I/O."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sluiceway.api import SinkRecord
from sluiceway.data import BigInteger, java_text
from sluiceway.errors import DataError


def simple_bytes(value: Any) -> bytes | None:
    """Return a text, bytes, a number, or a boolean as bytes; None for any other value.

    Raises UnicodeError, ValueError, or ArithmeticError for a text or a number that has no such form.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, (int, float, BigInteger, Decimal)):
        return java_text(value).encode()
    return None


def record_name(record: SinkRecord) -> str:
    """Return what names a record in errors."""
    return f"{record.topic}-{record.kafka_partition} at offset {record.kafka_offset}"


def required_bytes(value: Any, record: SinkRecord, what: str) -> bytes:
    """Return a simple value of a record as bytes. Raises DataError for any other value, which ``what`` names."""
    if (found := simple_bytes(value)) is not None:
        return found
    raise DataError(
        f"The {what} of {record_name(record)} is no text, bytes or number, but {type(value).__name__}. Use StringConverter or "
        "ByteArrayConverter, or take a part of it with ExtractField or Flatten."
    )
