"""Refuses to run connectors beside Kafka Connect's own workers of the same ``group.id``, which ignore the lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sluiceway.errors import FencedError
from sluiceway.kafka.worker_group import connect_workers
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

_POLL_SECONDS = 1.0  # between two requests while a worker leaves the group
_HOLDS_SECONDS = 1.5  # for which an answer holds; runners with tasks ask every two seconds


class RunByConnectError(FencedError):
    """Kafka Connect's own workers run the connectors of this group."""


class ConnectWorkers:
    """Looks for Kafka Connect workers, once for all connectors of a driver. Thread-safe.

    Args:
        status: the status topic's store; its admin client asks for the group's members.
        group_id: the worker's ``group.id``.
    """

    def __init__(self, status: KafkaStatusBackingStore, group_id: str) -> None:
        self._status = status
        self._group_id = group_id
        self._lock = threading.Lock()
        self._hosts: list[str] = []
        self._asked_at = float("-inf")

    def refuse(
        self, connector: str, *, seen: bool = False, patience: float = 0.0, wait: Callable[[float], bool] = lambda _: True
    ) -> None:
        """Raise RunByConnectError while Kafka Connect workers are members of the group.

        A worker that has just left may stay a member, so wait up to ``patience`` seconds for the group to become empty.
        ``wait`` waits some seconds and returns True if the caller must stop. ``seen``: a worker has written a status of this
        connector, so do not trust an older answer.
        """
        deadline = time.monotonic() + patience
        while hosts := self._members(_POLL_SECONDS if seen or patience else _HOLDS_SECONDS):
            if time.monotonic() >= deadline or wait(_POLL_SECONDS):
                raise RunByConnectError(
                    f"Kafka Connect runs connector {connector}: {len(hosts)} worker(s) with group.id={self._group_id} are up, on "
                    f"{', '.join(sorted(set(hosts)))}. Stop them, or give this one another group.id and topics of its own."
                )

    def _members(self, max_age: float) -> list[str]:
        """Return the workers' hosts, by an answer that is at most ``max_age`` seconds old."""
        with self._lock:
            if time.monotonic() - self._asked_at >= max_age:
                self._hosts = connect_workers(self._status.admin, self._group_id)
                self._asked_at = time.monotonic()
            return self._hosts
