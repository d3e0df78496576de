"""Publishes messages to JetStream with up to a number of them unanswered, and collects the answers."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.api import DONE, Outcome, WriteResult
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.nats.connection import Server
from sluiceway.connectors.nats.jetstream import streams_of
from sluiceway.connectors.nats.session import opened

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger(__name__)

MESSAGE_ID = "Nats-Msg-Id"
_NO_RESPONDERS = "503"
_TURN = 64  # messages after which the client sends what it has, and reads
_FULL = 10077
_HEAD = len(b"NATS/1.0\r\n\r\n")
_DENIED_SUBJECT = re.compile(r'publish to "(.*)"')


@dataclass(slots=True, eq=False)
class Publication:
    """A message to publish."""

    subject: str
    payload: bytes
    headers: Sequence[tuple[str, str]]
    size: int
    """Its bytes, with those of its headers."""


class _Pairs(dict[str, str]):
    """Headers for nats-py, in which a name may be several times: it only asks for the items."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def items(self) -> Any:
        return self._pairs


def size_of(headers: Iterable[tuple[str, str]]) -> int:
    """Return the bytes of headers in a message."""
    return _HEAD + sum(len(name) + len(value.encode()) + 4 for name, value in headers)


class Publisher:
    """A connection that publishes messages. One that has lost its connection raises UnreachableError, and is not used again."""

    def __init__(self, server: Server, name: str, first: int = 0) -> None:
        """Connect. Raises UnreachableError and ConnectError."""
        self._session = session = opened(server, name, first)
        self._numbers = itertools.count(1)
        self._pending: dict[str, int] = {}  # the index of a message by the subject of its answer
        self._results: dict[int, WriteResult] = {}
        self._items: Sequence[Publication] = ()
        self._untaken: dict[int, None] = {}  # indexes of messages that no stream has taken
        self._changed = asyncio.Event()
        self._last_sign = 0.0
        session.on_denied = self._on_denied
        try:
            self._inbox = session.client.new_inbox()
            subscribing = session.client.subscribe(f"{self._inbox}.*", cb=self._on_answer, pending_bytes_limit=0)
            session.call(subscribing, server.timeout)
        except BaseException:
            session.close()
            raise

    def publish(self, items: Sequence[Publication], window: int) -> Mapping[int, WriteResult]:
        """Publish messages in order, with up to ``window`` without an answer, and return the results by index.

        When the connection is lost, results of the rest are missing; without any, UnreachableError is raised.
        """
        self._items, self._results = items, {}
        self._pending.clear()
        self._untaken.clear()
        seconds = 3600.0 + len(items)  # what limits the time is the server's silence
        try:
            self._session.call(self._publish(items, window), seconds)
        except UnreachableError as error:
            self._session.close()
            if not self._results:
                raise
            log.warning("%s", error)
        else:
            self._explain()
        return self._results

    def close(self) -> None:
        self._session.close()

    def _explain(self) -> None:
        """Find out whether messages that nobody has answered have a subject that no stream takes, or JetStream is away."""
        known: dict[str, bool] = {}
        for index in self._untaken:
            subject = self._items[index].subject
            if subject not in known:
                known[subject] = bool(streams_of(self._session, subject))
            if known[subject]:
                self._results[index] = WriteResult(Outcome.RETRY, f"the stream of the subject {subject} does not answer")
            else:
                reason = f"no stream takes the subject {subject}. Check nats.subject, or add the subject to a stream"
                self._results[index] = WriteResult(Outcome.REFUSED, reason)

    # Run on the session's thread.

    async def _publish(self, items: Sequence[Publication], window: int) -> None:
        client, most = self._session.client, self._session.client.max_payload
        self._last_sign = time.monotonic()
        for index, item in enumerate(items):
            if item.size > most:
                self._results[index] = WriteResult(Outcome.REFUSED, f"its {item.size} bytes are more than the server's {most}")
                continue
            await self._wait(window - 1)
            reply = f"{self._inbox}.{next(self._numbers)}"
            self._pending[reply] = index
            await client.publish(item.subject, item.payload, reply=reply, headers=_Pairs(item.headers))
            if index % _TURN == _TURN - 1:
                await asyncio.sleep(0)
        await self._wait(0)

    async def _wait(self, most: int) -> None:
        """Wait until no more than ``most`` messages have no answer. Raises UnreachableError."""
        timeout = self._session.server.timeout
        while len(self._pending) > most:
            left = self._last_sign + timeout - time.monotonic()
            if left <= 0:
                raise UnreachableError(f"{self._session.where} has acknowledged no message for {timeout:.0f} s")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except asyncio.TimeoutError:
                continue

    async def _on_answer(self, message: Msg) -> None:
        self._last_sign = time.monotonic()
        index = self._pending.pop(message.subject, None)
        self._changed.set()
        if index is None:
            return
        if getattr(message.headers, "status", "") == _NO_RESPONDERS:
            self._untaken[index] = None
        else:
            self._results[index] = result_of(message.data)

    def _on_denied(self, text: str) -> None:
        """Refuse the messages of a subject that the user may not publish to. nats-py gives the text in lower case."""
        found = _DENIED_SUBJECT.search(text)
        subject = found[1] if found else ""
        for reply, index in list(self._pending.items()):
            if self._items[index].subject.lower() == subject:
                del self._pending[reply]
                reason = f"the user may not publish to {self._items[index].subject}. Grant that, or check nats.subject"
                self._results[index] = WriteResult(Outcome.REFUSED, reason)
        self._changed.set()


def result_of(answer: bytes) -> WriteResult:
    """Return the outcome by JetStream's answer to a publication."""
    try:
        found = json.loads(answer)
        error = found.get("error")
    except (ValueError, AttributeError):
        return WriteResult(Outcome.REFUSED, "the subject was answered by something that is no stream. Check nats.subject")
    if not error and found.get("stream"):
        return DONE
    error = error or {}
    reason = f"NATS says: {error.get('description', 'nothing of a stream')}"
    later = error.get("code") == 503 or error.get("err_code") == _FULL
    return WriteResult(Outcome.RETRY if later else Outcome.REFUSED, reason)
