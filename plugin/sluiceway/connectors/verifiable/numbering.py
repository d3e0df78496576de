"""Which task made a record, and which of its records it is: read from what a sink gets, or from the bytes in a topic. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from sluiceway.errors import DataError

_ENVELOPE = {"schema", "payload"}


class Seen(NamedTuple):
    """A record that arrived: the task that made it, its sequence number, and the place within which order is kept."""

    task: int
    seqno: int
    place: tuple[str, int] | None = None


class TopicRecord(NamedTuple):
    """A record in a topic, as its bytes."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


def numbered(key: Any, value: Any) -> tuple[int, int]:
    """Return task and sequence number of a record's key and value: complete, the number alone, or either as JSON text.

    Raises DataError for what a verifiable source did not make.
    """
    body = _parsed(value)
    if isinstance(body, Mapping):
        task, seqno = body.get("task"), body.get("seqno")
    else:
        task, seqno = _parsed(key), body
    if type(task) is int and type(seqno) is int and seqno >= 0:
        return task, seqno
    raise DataError("Not a record of a verifiable source: it has no task and sequence number. Is another writer on this topic?")


def from_topic(records: Iterable[TopicRecord]) -> Iterator[Seen]:
    """Return what verifiable sources wrote to a topic; the records' order is that of reading it.

    Takes what JsonConverter, with and without schemas, and StringConverter (of numbers) write. Raises DataError otherwise.
    """
    for record in records:
        try:
            yield Seen(*numbered(record.key, record.value), (record.topic, record.partition))
        except DataError as error:
            raise DataError(f"{record.topic}-{record.partition}: {error}") from error


def _parsed(value: Any) -> Any:
    if not isinstance(value, (str, bytes)):
        return value
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return parsed["payload"] if isinstance(parsed, dict) and parsed.keys() == _ENVELOPE else parsed
