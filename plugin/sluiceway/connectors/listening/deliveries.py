"""The base of source tasks to which clients send requests by HTTP, and which answer when Kafka has their records."""

from __future__ import annotations

import abc
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from sluiceway.api import SourceRecord, SourceTask
from sluiceway.connectors.listening.buffer import Batch, Buffer, Losses
from sluiceway.connectors.listening.http_server import HttpListener, RefusedError
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

T = TypeVar("T")

_WAIT_SECONDS = 1.0
_RETRY_SECONDS = 1


class Delivery(Batch[T]):
    """The items of a request, until the task has them. ``ended`` is set when Kafka has them, or, with ``delivered`` False, when
    the task stops.
    """

    __slots__ = ("delivered", "ended", "left")

    def __init__(self, items: Sequence[T], size: int, at: int) -> None:
        super().__init__(items, size, at)
        self.left = len(items)
        self.ended = threading.Event()
        self.delivered = False

    def acknowledge(self) -> bool:
        """Count a record that Kafka has. Return True for the last one. Called by the task's thread."""
        self.left -= 1
        if self.left:
            return False
        self.delivered = True
        self.ended.set()
        return True


class DeliveryRecord(SourceRecord, Generic[T]):
    """A record that knows its request."""

    __slots__ = ("delivery",)

    delivery: Delivery[T]


def not_now(why: str) -> RefusedError:
    """Return the refusal that asks a client to send a request again."""
    return RefusedError(503, f"{why}: send the request again", ("Retry-After", str(_RETRY_SECONDS)))


class DeliveryTask(SourceTask, Generic[T]):
    """Returns what a listener has put into the buffer as records without offsets, and tells the listener what Kafka has.

    In ``start``, a subclass calls ``listen``.
    """

    _server: HttpListener | None = None

    def listen(self, server: HttpListener, buffer: Buffer[Delivery[T]], refusals: Losses, *, delivered: bool) -> None:
        """Begin to answer. ``delivered``: requests wait for Kafka. ``refusals`` counts what clients are asked to send again."""
        self._buffer = buffer
        self._refusals = refusals
        self._delivered = delivered
        self._unacknowledged: set[Delivery[T]] = set()
        server.start()
        self._server = server

    @abc.abstractmethod
    def record(self, item: T, delivery: Delivery[T]) -> DeliveryRecord[T]:
        """Return the record of an item."""

    def dropped(self, items: int) -> None:
        """Handle that items are lost that were answered with success. Called by ``stop``, without ``delivered``."""

    @property
    def port(self) -> int:
        """The port that the task listens on."""
        return self.listener().port

    def poll(self) -> Sequence[SourceRecord] | None:
        server = self.listener()
        self._refusals.say()
        if server.failure is not None:
            raise ConnectError(f"The listener has ended: {server.failure!r}") from server.failure
        deliveries = self._buffer.take()
        if not deliveries and not self._unacknowledged:  # returning at once, the runtime waits for acknowledgements
            self.context.wait(_WAIT_SECONDS)
            deliveries = self._buffer.take()
        return self._taken(deliveries)

    def drain(self) -> Sequence[SourceRecord] | None:
        return self._taken(self._buffer.close())

    def _taken(self, deliveries: Sequence[Delivery[T]]) -> list[SourceRecord] | None:
        if self._delivered:
            self._unacknowledged.update(deliveries)
        records: list[SourceRecord] = []
        for delivery in deliveries:
            for item in delivery.items:
                record = self.record(item, delivery)
                record.delivery = delivery
                records.append(record)
            delivery.items = ()  # who remembers a delivery need not keep its data
        return records or None

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        if isinstance(record, DeliveryRecord) and record.delivery.acknowledge():
            self._unacknowledged.discard(record.delivery)

    def metrics(self) -> Mapping[str, float]:
        """Return the number of connections that were above the limit. Subclasses add others."""
        return {} if self._server is None else {"connections-refused": self._server.refused}

    def stop(self) -> None:
        server = self._server
        if server is None:
            return
        left = self._buffer.close()
        for delivery in (*left, *self._unacknowledged):
            delivery.ended.set()
        self._unacknowledged.clear()
        if left and not self._delivered:
            self.dropped(sum(len(delivery.items) for delivery in left))
        server.stop()
        self._refusals.say(at_once=True)

    def listener(self) -> HttpListener:
        """Return the server. Raises ConnectError before ``start``."""
        if self._server is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._server
