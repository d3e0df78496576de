"""Polls a Connect cluster from the triggerer's event loop.

Polls Kafka only. A trigger must not request a DAG from Airflow: the triggerer does not answer that request, and blocks forever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from sluiceway.backoff import Backoff
from sluiceway.errors import ConnectError
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.progress.cluster_view import ClusterKey, ClusterView, SharedViews

T = TypeVar("T")

_VIEWS = SharedViews()
_MAX_BACKOFF_SECONDS = 60.0

Logger = logging.Logger | Any  # Airflow's triggers log through structlog, which has no public type


class ClusterPolling:
    """An async context manager that holds the shared view of a cluster.

    Args:
        cluster: the cluster.
        interval: seconds between two polls; doubled after each failure, up to 60 s.
        log: the trigger's logger.
    """

    def __init__(self, cluster: ClusterKey, interval: float, log: Logger) -> None:
        self._cluster = cluster
        self._interval = interval
        self._log = log

    async def __aenter__(self) -> ClusterPolling:
        _VIEWS.acquire(self._cluster)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.to_thread(_VIEWS.release, self._cluster))

    async def poll(self, read: Callable[[ClusterView], T]) -> AsyncIterator[T]:
        """Yield the result of ``read`` at each interval. If Kafka does not answer, log a warning and retry."""
        backoff = Backoff(2 * self._interval, _MAX_BACKOFF_SECONDS)
        while True:
            try:
                result = await asyncio.to_thread(self._read, read)
            except ConnectError as error:
                pause = backoff.next()
                self._log.warning("Polling the cluster failed; trying again in %g s: %s", pause, error)
            else:
                pause = self._interval
                backoff.reset()
                yield result
            await asyncio.sleep(pause)

    def _read(self, read: Callable[[ClusterView], T]) -> T:
        return read(_VIEWS.view(self._cluster, kafka_overrides))
