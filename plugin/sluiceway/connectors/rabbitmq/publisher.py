"""Publishes messages to RabbitMQ and collects the server's confirms, on a thread that also answers heartbeats."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.api import DONE, Outcome, SinkRecord, WriteResult
from sluiceway.connectors.rabbitmq.connection import Server
from sluiceway.connectors.rabbitmq.session import opened

if TYPE_CHECKING:
    from pika.spec import BasicProperties

log = logging.getLogger(__name__)

_RUN_SECONDS = 5.0
_END_SECONDS = 30.0


@dataclass(slots=True, eq=False)
class Publication:
    """A message to publish, and the server's answer. ``sent`` says that it is on its way, so that it must not be sent again."""

    record: SinkRecord
    exchange: str
    routing_key: str
    body: bytes
    properties: BasicProperties
    sent: bool = False
    returned: str = ""
    """Why the server gave it back, before it confirms it."""
    result: WriteResult | None = None


class Publisher:
    """A connection that publishes messages, with up to ``window`` unconfirmed ones.

    A task hands over messages, waits, and reads their results. A publisher that has lost its connection has a ``failure`` and is
    not used again.
    """

    def __init__(self, server: Server, name: str, window: int, *, mandatory: bool, first: int = 0) -> None:
        """Connect. Raises UnreachableError and ConnectError."""
        self.window = window
        self.failure: Exception | None = None
        self.confirmed = 0
        self._mandatory = mandatory
        self._waiting: deque[Publication] = deque()
        self._unconfirmed: dict[int, Publication] = {}  # by delivery tag, in order
        self._tag = 0
        self._changed = threading.Condition()
        self._last_sign = time.monotonic()
        self._stopping = False
        self._session = session = opened(server, name, first)
        try:
            session.call(lambda done: session.channel.confirm_delivery(self._on_confirm, callback=done))
            session.channel.add_on_return_callback(self._on_return)
        except BaseException:
            session.close()
            raise
        self._thread = threading.Thread(target=self._run, name="rabbitmq-publisher", daemon=True)
        self._thread.start()

    # Called by the task.

    @property
    def blocked(self) -> str:
        """Why the server takes no messages now; empty if it does."""
        return self._session.blocked

    @property
    def idle(self) -> bool:
        """Whether all messages have results."""
        return not self._waiting and not self._unconfirmed

    @property
    def silence(self) -> float:
        """Seconds for which the server has confirmed nothing, although it may."""
        return time.monotonic() - self._last_sign

    def unconfirmed(self) -> Sequence[Publication]:
        """Return the messages that were sent and have no result. Exact once there is a failure."""
        return list(self._unconfirmed.values())

    def publish(self, publications: Iterable[Publication]) -> None:
        """Hand over messages, which are published in order."""
        if self.idle:
            self._last_sign = time.monotonic()
        self._waiting.extend(publications)
        self._session.wake_threadsafe()

    def wait(self, seconds: float) -> None:
        """Wait until all messages have results, the server blocks, or the connection is lost, and at most so long."""
        with self._changed:
            self._changed.wait_for(lambda: self.idle or self.failure is not None or bool(self.blocked), seconds)

    def close(self) -> None:
        """End the connection; what has no result gets none."""
        self._stopping = True
        self._session.wake_threadsafe()
        self._thread.join(_END_SECONDS)

    # Called by the thread.

    def _run(self) -> None:
        try:
            blocked = ""
            while not self._stopping:
                self._publish_some()
                self._session.run(_RUN_SECONDS)
                if self.blocked != blocked:
                    blocked = self.blocked
                    log.info("RabbitMQ blocks publishers: %s", blocked) if blocked else log.info("RabbitMQ takes messages again")
                    self._notify()
                if blocked:
                    self._last_sign = time.monotonic()
        except Exception as error:  # noqa: BLE001 (the task raises it)
            self.failure = error
        finally:
            self._session.close()
            self._notify()

    def _publish_some(self) -> None:
        channel, waiting, unconfirmed = self._session.channel, self._waiting, self._unconfirmed
        while waiting and len(unconfirmed) < self.window and not self._session.blocked:
            each = waiting[0]
            channel.basic_publish(each.exchange, each.routing_key, each.body, each.properties, self._mandatory)
            self._tag += 1
            unconfirmed[self._tag] = each
            waiting.popleft()

    def _on_confirm(self, frame: Any) -> None:
        method, unconfirmed = frame.method, self._unconfirmed
        accepted = method.NAME == "Basic.Ack"
        tag = method.delivery_tag
        if method.multiple:
            tags = []
            for each in unconfirmed:
                if tag and each > tag:
                    break
                tags.append(each)
        else:
            tags = [tag]
        for each in tags:
            self._settle(unconfirmed.pop(each), accepted)
        self._last_sign = time.monotonic()
        if self._waiting:
            self._publish_some()
        elif not unconfirmed:
            self._notify()

    def _settle(self, publication: Publication, accepted: bool) -> None:
        self.confirmed += 1
        if publication.returned:
            publication.result = WriteResult(Outcome.REFUSED, publication.returned)
        elif accepted:
            publication.result = DONE
        else:
            publication.result = WriteResult(Outcome.RETRY, "RabbitMQ does not take the message now: is the queue full?")

    def _on_return(self, _channel: Any, method: Any, properties: BasicProperties, body: bytes) -> None:
        """Find the message that was given back: its confirm comes next, and messages are handled in order."""
        for each in self._unconfirmed.values():
            if each.returned:
                continue
            same = each.routing_key == method.routing_key and each.exchange == method.exchange and each.body == body
            if same and _encoded(each.properties) == _encoded(properties):
                where = f"exchange '{each.exchange}' with the routing key '{each.routing_key}'"
                each.returned = f"no queue is bound to {where} ({method.reply_code} {method.reply_text})"
                return
        log.warning("RabbitMQ has given back a message that is not known, with the routing key %s", method.routing_key)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _encoded(properties: BasicProperties) -> bytes:
    return b"".join(properties.encode())
