"""Pulls the messages of JetStream's consumers (ADR-13 and ADR-37 of NATS), and says what the server answers."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.nats.session import Session
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

MOST_BYTES = 32 * 1024 * 1024
"""The most bytes of a request's messages, unless one alone has more."""
_LATE_SECONDS = 0.25  # which the server may take to say that a request has ended
_BILLION = 1_000_000_000
_SHORT_REPLY = 9  # parts of the subject for acknowledgements, without a domain


class ConsumerGoneError(UnreachableError):
    """The consumer was deleted, by somebody or because nobody has used it."""


class Delivery(NamedTuple):
    """A delivery of a message.

    Attributes:
        sequence: the message's sequence in the stream.
        number: of the delivery, among those of the consumer, from 1.
        times: how often the message was delivered, from 1.
        time: when the stream has stored the message, in nanoseconds since 1970.
        reply: the subject for acknowledgements.
    """

    sequence: int
    number: int
    times: int
    time: int
    reply: str


def delivery_of(message: Msg) -> Delivery:
    """Return what the subject for acknowledgements says (ADR-15 of NATS). Raises ConnectError if it is none."""
    parts = message.reply.split(".")
    first = 4 if len(parts) == _SHORT_REPLY else 6
    try:
        times, sequence, number, at = map(int, parts[first : first + 4])
    except ValueError as error:
        raise ConnectError(f"NATS has sent a message of {message.subject} that is of no stream") from error
    return Delivery(sequence, number, times, at, message.reply)


class Pull:
    """The requests for messages of one consumer, one after the other, and what has come."""

    def __init__(self, session: Session, stream: str, consumer: str) -> None:
        """Listen to answers."""
        self._session = session
        self._subject = f"{session.server.api}.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._name = f"{session.where}: consumer {consumer} of stream {stream}"
        self._inbox = session.client.new_inbox()
        self._numbers = itertools.count(1)
        self._arrived: deque[Msg] = deque()
        self._wanted = 0  # messages of the open request that have not come
        self._subject_of_end = ""
        self._before = 0  # messages that had come when the request was sent
        self.deadline = 0.0
        """When the open request ends, by the monotonic clock."""
        self._last_sign = time.monotonic()
        self._problem: Exception | None = None
        self._one_only = False  # the next message has more bytes than a request may have
        self.is_open = False
        """Whether the server may still answer the last request."""
        self.is_dry = False
        """Whether the server had no message for the last request."""
        self.changed = asyncio.Event()
        session.call(session.client.subscribe(f"{self._inbox}.*", cb=self._on_message, pending_bytes_limit=0), 10.0)

    def take(self) -> list[Msg]:
        """Return the messages that have come."""
        return [self._arrived.popleft() for _ in range(len(self._arrived))]

    @property
    def silence(self) -> float:
        """Seconds since the server's last sign of the consumer."""
        return time.monotonic() - self._last_sign

    def check(self) -> None:
        """Raise what the server has answered: ConsumerGoneError, UnreachableError, or ConnectError for what does not pass."""
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    # Run on the session's thread.

    async def ask(self, most: int, seconds: float) -> None:
        """Request messages: those that are there, or the first ones that come in so many seconds."""
        body: dict[str, Any] = {"batch": most, "no_wait": True, "expires": int(seconds * _BILLION), "max_bytes": MOST_BYTES}
        if self._one_only:
            body = {"batch": 1, "expires": body["expires"]}
        self._wanted, self.is_open, self.is_dry = body["batch"], True, False
        self._subject_of_end = f"{self._inbox}.{next(self._numbers)}"
        self.deadline = time.monotonic() + seconds + _LATE_SECONDS
        self._before = len(self._arrived)
        await self._session.client.publish(self._subject, json.dumps(body).encode(), reply=self._subject_of_end)

    def expire(self) -> None:
        """End a request that the server has not said to have ended."""
        if self.is_open and time.monotonic() >= self.deadline:
            self.is_open = False

    async def _on_message(self, message: Msg) -> None:
        self._last_sign = time.monotonic()
        status = getattr(message.headers, "status", "")
        if status and message.subject.startswith(self._inbox):
            if self.is_open and message.subject == self._subject_of_end:
                self._end(status, message.headers.description)  # type: ignore[union-attr] # MessageHeaders
            return
        self._arrived.append(message)
        self._one_only = False
        self._wanted -= 1
        if self._wanted <= 0:
            self.is_open = False
            self.changed.set()

    def _end(self, status: str, description: str) -> None:
        text = description.lower()
        self.is_open = False
        if status == "404" or (status == "408" and "pending" not in text):
            self.is_dry = len(self._arrived) == self._before
        elif "completed" in text:  # which newer servers say of a batch after its last message
            pass
        elif status == "409" and "message size" in text:
            self._one_only = True
        elif status == "409" and "exceeded" not in text and "push" not in text:
            kind = ConsumerGoneError if "deleted" in text else UnreachableError
            self._problem = kind(f"{self._name}: {description}")
        elif status == "503":
            self._problem = ConsumerGoneError(f"{self._name} does not answer")
        elif status != "408":
            self._problem = ConnectError(f"{self._name} refuses to be read: {description} ({status})")
        self.changed.set()


def fetch(session: Session, pulls: Sequence[Pull], most: int, seconds: float) -> None:
    """Request up to ``most`` messages of each consumer, and wait until one of them has answered, for so many seconds at most.

    Requests that are open still are not repeated. Raises what the servers have answered, and UnreachableError.
    """
    session.call(_fetch(pulls, most, seconds), seconds + session.server.timeout)
    for each in pulls:
        each.check()


async def _fetch(pulls: Sequence[Pull], most: int, seconds: float) -> None:
    changed = asyncio.Event()
    for each in pulls:
        each.changed = changed
        if not each.is_open:
            await each.ask(most, seconds)
    end = time.monotonic() + seconds + _LATE_SECONDS
    while all(each.is_open for each in pulls):
        left = min(end, *(each.deadline for each in pulls)) - time.monotonic()
        if left <= 0:
            break
        changed.clear()
        try:
            await asyncio.wait_for(changed.wait(), left)
        except asyncio.TimeoutError:
            break
    for each in pulls:
        each.expire()
