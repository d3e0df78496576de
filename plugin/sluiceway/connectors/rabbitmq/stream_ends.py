"""Finds offsets of a stream. AMQP 0.9.1 has no request for them: a consumer is opened, and what it gets at once shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.rabbitmq.messages import STREAM_OFFSET
from sluiceway.connectors.rabbitmq.session import RefusedError, Session
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from pika.spec import BasicProperties


def offset_of(properties: BasicProperties) -> int:
    """Return the offset of a stream's message."""
    headers: Any = properties.headers
    return int(headers[STREAM_OFFSET])


def first_offset(session: Session, stream: str) -> int | None:
    """Return the offset of the first message that the stream still has; None if it has none."""
    return min(_sent_at_once(session, stream, "first"), default=None)


def last_offset(session: Session, stream: str) -> int | None:
    """Return the offset of the last message; None if the stream has none."""
    return max(_sent_at_once(session, stream, "last"), default=None)  # all messages that were written together with it


def offset_at(session: Session, stream: str, time: datetime) -> int | None:
    """Return the offset of the first message of those that were written together at a time or later; None if there are none."""
    return min(_sent_at_once(session, stream, time), default=None)


def _sent_at_once(session: Session, stream: str, begin: str | datetime) -> list[int]:
    """Return the offsets of what the server sends to a new consumer before it answers the next request."""
    found: list[int] = []

    def on_message(_delivery: Any, properties: BasicProperties, _body: bytes) -> None:
        found.append(offset_of(properties))

    with session.another_channel():
        session.prefetch(1)  # the messages that were written together come as a whole
        try:
            session.consume(stream, on_message, x_stream_offset=begin)
        except RefusedError as error:
            if "x-stream-offset" not in str(error):
                raise
            raise ConnectError(f"{stream} is no stream. Read it with RabbitQueueSource.") from error
        session.count(stream)
    return found
