"""Packs consumed messages for a Java sink task that converts them itself. No I/O. ``Messages.java`` is the other side."""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from sluiceway.kafka.clients import ConsumedMessage

Run = tuple[str, int, int]
"""A topic, a partition, and the number of successive messages from it."""

_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP, _KEY, _VALUE, _HEADERS = map(
    operator.methodcaller, ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
)
_NUMBER = struct.Struct("<i")


def packed_messages(messages: Sequence[ConsumedMessage]) -> tuple[list[Run], bytes]:
    """Return the messages' runs and, little endian, their data in columns.

    These are offsets and timestamps (longs), timestamp types and lengths of key, value and headers (ints; -1 stands for null),
    then the keys, the values, and the headers. A header is the length of its name, the name, the length of its value, the value.
    """
    count = len(messages)
    types, timestamps = zip(*map(_TIMESTAMP, messages), strict=True) if count else ((), ())
    keys, values = list(map(_KEY, messages)), list(map(_VALUE, messages))
    headers = [each and _packed_headers(each) for each in map(_HEADERS, messages)]
    longs, ints = struct.Struct(f"<{count}q"), struct.Struct(f"<{count}i")
    columns = [longs.pack(*map(_OFFSET, messages)), longs.pack(*timestamps), ints.pack(*types)]
    columns += [ints.pack(*_lengths(data)) for data in (keys, values, headers)]
    return runs_of(messages), b"".join([*columns, *filter(None, keys), *filter(None, values), *filter(None, headers)])


def runs_of(messages: Sequence[ConsumedMessage]) -> list[Run]:
    """Return from which topic partitions the messages come, in their order."""
    topics, partitions = list(map(_TOPIC, messages)), list(map(_PARTITION, messages))
    count = len(messages)
    if count and topics.count(topics[0]) == count == partitions.count(partitions[0]):
        return [(topics[0], partitions[0], count)]
    groups = itertools.groupby(zip(topics, partitions, strict=True))
    return [(topic, partition, sum(1 for _ in group)) for (topic, partition), group in groups]


def _lengths(data: Sequence[bytes | None]) -> Iterable[int]:
    absent = data.count(None)
    if not absent:
        return map(len, data)  # type: ignore[arg-type]  # none is None
    if absent == len(data):
        return itertools.repeat(-1, absent)
    return [-1 if each is None else len(each) for each in data]


def _packed_headers(headers: Iterable[tuple[str, Any]]) -> bytes:
    parts: list[bytes] = []
    for name, value in headers:
        text = name.encode()
        parts += (_NUMBER.pack(len(text)), text, _NUMBER.pack(-1 if value is None else len(value)), value or b"")
    return b"".join(parts)
