"""Looks up the id of the Kafka cluster for ``GET /``."""

from __future__ import annotations

import logging
import threading

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_SECONDS = 3.0


class ClusterId:
    """Callable that returns the cluster's id and caches it. Thread-safe.

    Returns None if the cluster does not respond within 3 s, so that ``GET /`` still works as a liveness probe.
    """

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._known: str | None = None

    def __call__(self) -> str | None:
        if self._known is None and self._lock.acquire(blocking=False):
            try:
                self._known = _lookup(self._worker)
            except ConnectError as error:
                log.warning("%s", error)
            finally:
                self._lock.release()
        return self._known


def _lookup(worker: WorkerConfig) -> str | None:
    from sluiceway.kafka.clients import admin_client
    from sluiceway.kafka.errors import mapped_errors

    with mapped_errors("look up the id of the Kafka cluster"):
        found: str | None = admin_client(worker).list_topics(timeout=_SECONDS).cluster_id
        return found
