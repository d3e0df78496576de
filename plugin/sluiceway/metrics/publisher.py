"""Sends this process's metrics to its driver every few seconds. Runs on executors, on a thread of its own.

An executor can always reach its driver, so no port is opened on executors. Metrics that cannot be sent are dropped: the next ones
have the same counters.
"""

from __future__ import annotations

import logging
import os
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sluiceway.metrics.beans import encode_beans
from sluiceway.metrics.registry import registry

log = logging.getLogger(__name__)

PUBLISH_SECONDS = 5.0
"""The time between two messages of a process, while somebody reads the metrics: the driver's answers say when to send others."""

PROCESS_HEADER = "X-Sluiceway-Process"
_TIMEOUT_SECONDS = 2.0
_LONGEST_ANSWER = 32  # bytes


@dataclass(frozen=True, slots=True)
class MetricsTarget:
    """The address for metrics: the driver's URL and the secret that it gave its tasks. Picklable."""

    url: str
    token: str


@contextmanager
def publishing(target: MetricsTarget | None) -> Iterator[None]:
    """Send metrics while the context is open, and once more at its end. Without a target, do nothing."""
    if target is None:
        yield
        return
    publisher = _Publisher(target)
    thread = threading.Thread(target=publisher.run, name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        publisher.ending.set()
        thread.join(_TIMEOUT_SECONDS)


class _Publisher:
    def __init__(self, target: MetricsTarget) -> None:
        self._target = target
        self._process = f"{os.uname().nodename}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._failed = False
        self._seconds = PUBLISH_SECONDS
        self.ending = threading.Event()

    def run(self) -> None:
        while not self.ending.wait(self._seconds):
            self._send()
        self._send()

    def _send(self) -> None:
        headers = {"Authorization": f"Bearer {self._target.token}", PROCESS_HEADER: self._process}
        try:
            body = encode_beans(registry.beans())
            request = urllib.request.Request(self._target.url, body, headers, method="POST")  # noqa: S310 (http, from our driver)
            with _opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                self._seconds = float(answer.read(_LONGEST_ANSWER))
            self._failed = False
        except (OSError, urllib.error.URLError, ValueError) as error:
            if not self._failed:
                log.info(
                    "Cannot send metrics to the driver at %s; trying again every %g s: %s",
                    self._target.url,
                    self._seconds,
                    error,
                )
            self._failed = True


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Drivers are in the same network; a proxy of the environment does not know them."""
