"""Keeps the metrics that the processes of a driver's tasks have sent. No I/O."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from sluiceway.metrics.beans import CONNECT, OWN, Bean, Value
from sluiceway.metrics.publisher import PUBLISH_SECONDS

_UNREAD_SECONDS = 3 * PUBLISH_SECONDS  # between two messages of a process while nobody reads its metrics
_READERS_SECONDS = 300.0  # for this long after a reader it is expected again
_FRESH = 4  # intervals without a message, after which a process has ended
_KINDS = ("connector", "task")


class MetricsCollector:
    """The newest metrics of each process. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._received: dict[str, tuple[float, Sequence[Bean]]] = {}
        """The metrics of each process, and when it has ended if no others come."""
        self._read_at: float | None = None
        self._ended: dict[str, float] = {}
        """Sum of the counters of the starts in processes that have ended, which must not go backwards."""

    def receive(self, process: str, beans: Sequence[Bean]) -> float:
        """Take the metrics of a process in. Return after how many seconds it should send others."""
        with self._lock:
            now = self._clock()
            read = self._read_at is not None and now - self._read_at < _READERS_SECONDS
            seconds = PUBLISH_SECONDS if read else _UNREAD_SECONDS
            self._received[process] = now + _FRESH * seconds, beans
            self._drop_silent()
            return seconds

    def beans(self) -> list[Bean]:
        """Return the newest metrics of all processes that have sent some lately."""
        with self._lock:
            self._read_at = self._clock()
            self._drop_silent()
            beans = [bean for _, received in self._received.values() for bean in received]
            ended = Bean(OWN, "process-metrics", {"process": "ended"}, dict(self._ended))
        return [*beans, ended] if self._ended else beans

    def _drop_silent(self) -> None:
        now = self._clock()
        for process, (until, beans) in list(self._received.items()):
            if now > until:
                del self._received[process]
                for name, value in startups(beans).items():
                    self._ended[name] = self._ended.get(name, 0.0) + value


def startups(beans: Iterable[Bean]) -> dict[str, float]:
    """Return the sums of the counters of starts in these metrics."""
    sums: dict[str, float] = {}
    for bean in beans:
        if (bean.domain, bean.type) == (OWN, "process-metrics"):
            for name, value in bean.values.items():
                if "-startup-" in name and not isinstance(value, str):
                    sums[name] = sums.get(name, 0.0) + value
    return sums


def worker_bean(beans: Iterable[Bean], connectors: int, tasks: int) -> Bean:
    """Return Kafka Connect's metrics of the worker, from the metrics of its processes and its numbers of connectors and tasks."""
    values: dict[str, Value] = {"connector-count": float(connectors), "task-count": float(tasks)}
    sums = startups(beans)
    for kind in _KINDS:
        values |= _starts(kind, sums)
    return Bean(CONNECT, "connect-worker-metrics", {}, values)


def _starts(kind: str, sums: Mapping[str, float]) -> dict[str, Value]:
    prefix = f"{kind}-startup-"
    succeeded, failed = sums.get(f"{prefix}success-total", 0.0), sums.get(f"{prefix}failure-total", 0.0)
    attempts = succeeded + failed
    return {
        f"{prefix}attempts-total": attempts,
        f"{prefix}success-total": succeeded,
        f"{prefix}failure-total": failed,
        f"{prefix}success-percentage": succeeded / attempts if attempts else 0.0,
        f"{prefix}failure-percentage": failed / attempts if attempts else 0.0,
    }


def distinct(beans: Iterable[Bean]) -> list[Bean]:
    """Return these metrics with the last one of each thing: a task that moves may be reported by two processes for a moment."""
    return list({bean.key: bean for bean in beans}.values())
