"""Sends one heartbeat for all connectors of a driver."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sluiceway.errors import ConnectError
from sluiceway.storage.heartbeats import Heartbeat
from sluiceway.storage.model import LeaseOwner
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

log = logging.getLogger(__name__)

_MISSED = 2  # heartbeats without a call of a connector's runner, after which it is no longer named


class DriverHeartbeat:
    """Renews the statuses of the connectors whose runners have called ``renew`` lately. Runs on the driver. Thread-safe.

    The runner that finds the heartbeat due writes it for all. No lease protects it: readers count it only for statuses of this
    driver and of the same generation, so it renews nothing that another driver has taken over.

    Args:
        status: the status topic's store.
        sender: names the heartbeat's record, which the next driver of the same connector or application replaces.
        worker_id: identifies this driver in status records.
        interval: seconds between two heartbeats.
        metrics: the URL at which this driver serves its metrics.
        owner: the Airflow task that started this driver. Its first heartbeat is due at once, so that other tasks read of it.
    """

    def __init__(
        self,
        status: KafkaStatusBackingStore,
        sender: str,
        worker_id: str,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        metrics: str | None = None,
        owner: LeaseOwner | None = None,
    ) -> None:
        self._metrics = metrics
        self._owner = owner
        self._status = status
        self._sender = sender
        self._worker_id = worker_id
        self._interval = interval
        self._clock = clock
        self._lock = threading.Lock()
        self._renewed: dict[str, tuple[int, int]] = {}
        """The generation of each connector's status, and the number of heartbeats since its runner renewed it."""
        self._due = clock() + (interval if owner is None else 0.0)
        self._warned = False

    def renew(self, connector: str, generation: int) -> None:
        """Note that a runner's status of this generation still holds."""
        with self._lock:
            self._renewed[connector] = (generation, 0)

    def drop(self, connector: str) -> None:
        """Send no more heartbeats for a connector, because this driver no longer runs it."""
        with self._lock:
            self._renewed.pop(connector, None)

    def beat(self) -> bool:
        """Write the heartbeat if it is due, and return whether it was. One that cannot be written is only logged."""
        heartbeat = self._take_due()
        if heartbeat is None:
            return False
        try:
            self._status.put_heartbeat(self._sender, heartbeat)
        except ConnectError as error:
            if not self._warned:
                log.warning("Cannot write this driver's heartbeat; trying again every %g s: %s", self._interval, error)
            self._warned = True
        else:
            self._warned = False
        return True

    def close(self) -> None:
        """Remove the heartbeat from the topic, because this driver ends."""
        try:
            self._status.put_heartbeat(self._sender, None)
        except ConnectError as error:
            log.info("The last heartbeat of this driver stays in the status topic: %s", error)

    def _take_due(self) -> Heartbeat | None:
        now = self._clock()
        with self._lock:
            if now < self._due or not self._renewed:
                return None
            self._due = now + self._interval
            connectors = {name: generation for name, (generation, missed) in self._renewed.items() if missed <= _MISSED}
            self._renewed = {name: (generation, missed + 1) for name, (generation, missed) in self._renewed.items()}
        if not connectors:
            return None
        return Heartbeat(self._worker_id, connectors, metrics=self._metrics, owner=self._owner)
