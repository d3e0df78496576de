"""Caches the prefixes of JsonConverter's envelopes, ``{"schema":..,"payload":``.

All records of a schema start with the same bytes. For a record with a cached prefix, only the payload must be parsed. All
other records are parsed completely, so the result is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from sluiceway.data.schema import Schema

_SCHEMA = re.compile(r'\s*\{\s*"schema"\s*:\s*', re.ASCII)
_PAYLOAD = re.compile(r'\s*,\s*"payload"\s*:', re.ASCII)
_DECODER = json.JSONDecoder()


class Envelope(NamedTuple):
    """A cached prefix: the bytes before the payload, their schema, and the fast reader for payloads."""

    prefix: bytes
    schema: Schema | None
    read: Callable[[bytes], Any]


class EnvelopeCache:
    """The most recently used envelopes of a topic. Not thread-safe."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: list[Envelope] = []

    def find(self, data: bytes) -> Envelope | None:
        """Return the envelope with which ``data`` starts, or None."""
        known = self._known
        for index, envelope in enumerate(known):
            if data.startswith(envelope.prefix):
                if index:
                    known.insert(0, known.pop(index))
                return envelope
        return None

    def add(self, data: bytes, schema: Schema | None, read: Callable[[bytes], Any]) -> None:
        """Cache the prefix of ``data``, a document with only these two members, if the schema comes first."""
        prefix = _prefix(data)
        if prefix is not None and self._size > 0:
            self._known.insert(0, Envelope(prefix, schema, read))
            del self._known[self._size :]


def _prefix(data: bytes) -> bytes | None:
    """Return the bytes before the payload, or None if the schema is not the first member."""
    try:
        text = data.decode("utf-8")
        start = _SCHEMA.match(text)
        end = start and _PAYLOAD.match(text, _DECODER.raw_decode(text, start.end())[1])
    except (ValueError, RecursionError):
        return None
    return text[: end.end()].encode() if end else None
