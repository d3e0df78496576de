"""Forms of records for systems whose values are bytes, such as queues. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sluiceway.api import SinkRecord
from sluiceway.data import BigInteger, java_text


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


def repeats(records: Sequence[SinkRecord]) -> dict[int, int]:
    """Return the numbers, from 1, of further records that transforms have made of one message, by the records' identities."""
    counts: Counter[tuple[Any, ...]] = Counter()
    found: dict[int, int] = {}
    for record in records:
        message = (*record.original_topic_partition, record.original_kafka_offset)
        if counts[message]:
            found[id(record)] = counts[message]
        counts[message] += 1
    return found
