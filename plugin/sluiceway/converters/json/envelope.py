"""The fast path through JsonConverter's envelope ``{"schema":..,"payload":..}``.

All records of one schema start with the same bytes. Once such a start is known, a record that has it needs only its payload
parsed; whatever looks otherwise takes the plain way, so the answer is the same.
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
    """A known start of records: everything before the payload, the schema in it, and how to read payloads of it."""

    prefix: bytes
    schema: Schema | None
    read: Callable[[bytes], Any]


class EnvelopeCache:
    """The starts seen lately, the newest match first. For one topic and one thread."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: list[Envelope] = []

    def find(self, data: bytes) -> Envelope | None:
        """Return the envelope that ``data`` starts with, or None."""
        known = self._known
        for index, envelope in enumerate(known):
            if data.startswith(envelope.prefix):
                if index:
                    known.insert(0, known.pop(index))
                return envelope
        return None

    def learn(self, data: bytes, schema: Schema | None, read: Callable[[bytes], Any]) -> None:
        """Remember the start of ``data``, a document with nothing but these two members, if the schema comes first."""
        prefix = _prefix(data)
        if prefix is not None and self._size > 0:
            self._known.insert(0, Envelope(prefix, schema, read))
            del self._known[self._size :]


def _prefix(data: bytes) -> bytes | None:
    """Return the bytes before the payload, or None where they cannot be told for certain."""
    try:
        text = data.decode("utf-8")
        start = _SCHEMA.match(text)
        end = start and _PAYLOAD.match(text, _DECODER.raw_decode(text, start.end())[1])
    except (ValueError, RecursionError):
        return None
    return text[: end.end()].encode() if end else None
