"""Reads task and sequence number from records of the verifiable source, in a sink or in a topic. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from sluiceway.errors import DataError

_ENVELOPE = {"schema", "payload"}


class NumberedRecord(NamedTuple):
    """A record that arrived: the source task, the sequence number, and the topic partition, within which order is kept."""

    task: int
    seqno: int
    topic_partition: tuple[str, int] | None = None


class TopicRecord(NamedTuple):
    """The bytes of a record in a topic."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


def task_and_seqno(key: Any, value: Any) -> tuple[int, int]:
    """Return the source task and the sequence number in a record's key and value, which may be JSON text.

    Raises DataError for a record that a verifiable source did not make.
    """
    body = _parsed(value)
    if isinstance(body, Mapping):
        task, seqno = body.get("task"), body.get("seqno")
    else:
        task, seqno = _parsed(key), body
    if type(task) is int and type(seqno) is int and seqno >= 0:
        return task, seqno
    raise DataError("Not a record of a verifiable source: it has no task and sequence number. Is another writer on this topic?")


def from_topic(records: Iterable[TopicRecord]) -> Iterator[NumberedRecord]:
    """Yield the numbers in records of a topic, in the same order.

    Reads records written by JsonConverter, with and without schemas, and StringConverter. Raises DataError for others.
    """
    for record in records:
        try:
            yield NumberedRecord(*task_and_seqno(record.key, record.value), (record.topic, record.partition))
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
