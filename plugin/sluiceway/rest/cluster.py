"""Knows the Kafka cluster's id, which ``GET /`` tells."""

from __future__ import annotations

import logging
import threading

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_SECONDS = 3.0


class ClusterId:
    """Callable that asks the cluster until it answers once, then remembers. Thread-safe.

    None while the cluster does not answer (at most 3 s), so that ``GET /``, which serves as a sign of life, still does.
    """

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker
        self._asking = threading.Lock()
        self._known: str | None = None

    def __call__(self) -> str | None:
        if self._known is None and self._asking.acquire(blocking=False):
            try:
                self._known = _ask(self._worker)
            except ConnectError as error:
                log.warning("%s", error)
            finally:
                self._asking.release()
        return self._known


def _ask(worker: WorkerConfig) -> str | None:
    from sluiceway.kafka.clients import admin_client
    from sluiceway.kafka.errors import mapped_errors

    with mapped_errors("ask the Kafka cluster for its id"):
        found: str | None = admin_client(worker).list_topics(timeout=_SECONDS).cluster_id
        return found
