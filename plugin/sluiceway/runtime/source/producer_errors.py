"""Adds remediation advice to producer errors. No I/O."""

from __future__ import annotations

from collections.abc import Collection

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError, FencedError


def record_error(error: ConnectError, key: bytes | None, value: bytes | None, record: SourceRecord | None = None) -> ConnectError:
    """Return the error of a record that could not be sent, with advice. ``record`` is given if it is known."""
    code = getattr(error, "code", None)
    advice = ""
    if code == "TOPIC_AUTHORIZATION_FAILED":
        advice = " The task's principal needs WRITE on the topic; allow that, then restart the task."
    elif code == "MSG_SIZE_TOO_LARGE":
        size = len(key or b"") + len(value or b"")
        where = "" if record is None else f" of source partition {record.source_partition} with offset {record.source_offset}"
        advice = (
            f" The record{where} has {size} bytes; raise producer.override.max.request.size, and the topic's max.message.bytes."
        )
    return ConnectError(f"Unrecoverable exception from producer send callback: {error}{advice}")


def producer_error(error: ConnectError, topics: Collection[str]) -> ConnectError:
    """Return an error of the producer or its transaction, which names no topic, with the ``topics`` the task writes to."""
    code = getattr(error, "code", None)
    used = ", ".join(f"topic {topic}" for topic in sorted(topics))
    if isinstance(error, FencedError) or not used:
        return error
    if code == "CLUSTER_AUTHORIZATION_FAILED":  # WRITE on any topic would suffice, so the principal has it on none
        return ConnectError(f"{error} The task's principal needs WRITE on the topic it writes to: {used}.")
    if code == "TOPIC_AUTHORIZATION_FAILED":
        return ConnectError(
            f"{error} The task's principal needs WRITE on the topic it writes to ({used}) and on that of its offsets."
        )
    return error
