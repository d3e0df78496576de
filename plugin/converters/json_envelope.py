"""The fast path through JsonConverter's envelope ``{"schema":..,"payload":..}``.

All records of one schema start with the same bytes. Once such a start is known, a record that has it needs only its payload
parsed; whatever looks otherwise takes the plain way, so the answer is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson
from sluiceway.converters.json_read import Read
from sluiceway.data.schema import Schema

_SCHEMA = b'{"schema":'
_PAYLOAD = b',"payload":'


class Envelope(NamedTuple):
    """A known start of records: everything before the payload, the schema in it, and how to read payloads of it."""

    prefix: bytes
    schema: Schema | None
    read: Read


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

    def learn(self, data: bytes, schema: Schema | None, read: Read) -> None:
        """Remember the start of ``data``, a document with nothing but these two members, if the schema comes first."""
        prefix = _prefix(data)
        if prefix is not None and self._size > 0:
            self._known.insert(0, Envelope(prefix, schema, read))
            del self._known[self._size :]


def _prefix(data: bytes) -> bytes | None:
    """Return the bytes before the payload, or None where they cannot be told for certain.

    ``,"payload":`` may stand inside the schema, too (in its parameters); then what precedes it is not JSON.
    """
    end = data.find(_PAYLOAD) if data.startswith(_SCHEMA) else -1
    while end >= 0:
        try:
            orjson.loads(data[len(_SCHEMA) : end])
            return data[: end + len(_PAYLOAD)]
        except orjson.JSONDecodeError:
            end = data.find(_PAYLOAD, end + 1)
    return None
