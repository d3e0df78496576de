"""Measures the progress of all connectors periodically, in one thread of each API server process.

Each process samples for itself. They return the same progress, because they read the same offsets from Kafka.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sluiceway.errors import ConnectError
from sluiceway.provider.progress.connector_progress import ConnectorProgress, OffsetsSnapshot, measure
from sluiceway.provider.progress.probe_request import ProbeRequest
from sluiceway.provider.ui.series import Series

log = logging.getLogger(__name__)

_IDLE_SECONDS = 60.0
_MIN_SECONDS = 5.0
_DUTY_CYCLE = 4  # after a sample, wait this many times as long as it took


@dataclass(frozen=True, slots=True)
class LatestProgress:
    """The result of the latest samples.

    Attributes:
        at: when Kafka last answered, in seconds since the epoch; 0 for never.
        connectors: progress by connector.
        rates: current records per second by connector; None for those that are not known yet.
        problem: why the latest sample failed; None if it succeeded.
    """

    at: float = 0.0
    connectors: Mapping[str, ConnectorProgress] = field(default_factory=dict)
    rates: Mapping[str, float | None] = field(default_factory=dict)
    problem: str | None = None


class Sampler:
    """Takes a sample every minute, and every few seconds while callers ask for the latest progress. Thread-safe.

    Args:
        requests: returns what to measure.
        snapshot: reads the offsets from Kafka; may raise ConnectError.
        spread: the longest time between two offset commits of a sink, in seconds.
        idle: seconds between two samples that nobody asks for.
        least: seconds between two samples at least.
    """

    def __init__(
        self,
        requests: Callable[[], list[ProbeRequest]],
        snapshot: Callable[[list[ProbeRequest]], OffsetsSnapshot],
        *,
        spread: float,
        idle: float = _IDLE_SECONDS,
        least: float = _MIN_SECONDS,
    ) -> None:
        self._requests = requests
        self._snapshot = snapshot
        self._spread = spread
        self._idle = idle
        self._least = least
        self._latest = LatestProgress()
        self._series: dict[str, Series] = {}
        self._refused: set[str] = set()
        self._sampled = threading.Condition()
        self._samples = 0
        self._fresh_until = 0.0
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="sluiceway-ui", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, if it was started."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def latest(self, wait: float = 3.0) -> LatestProgress:
        """Return the progress, at most some seconds old; older if Kafka does not answer within ``wait`` seconds."""
        with self._sampled:
            if time.monotonic() >= self._fresh_until:
                samples = self._samples
                self._wake.set()
                self._sampled.wait_for(lambda: self._samples > samples, timeout=wait)
            return self._latest

    @property
    def last(self) -> LatestProgress:
        """The result of the last sample, which may be a minute old."""
        with self._sampled:
            return self._latest

    def series(self, name: str) -> Series | None:
        """Return a copy of a connector's last hour; None if it was never measured."""
        with self._sampled:
            found = self._series.get(name)
            return None if found is None else found.copy()

    def topic_rates(self, names: Iterable[str]) -> dict[str, dict[str, float | None]]:
        """Return the current records per second of each topic, by connector (``Series.topic_rates``)."""
        with self._sampled:
            return {name: self._series[name].topic_rates() for name in names if name in self._series}

    def sample(self) -> None:
        """Take one sample. Never raises: a failure is in ``latest().problem`` and, when it begins, in the log."""
        started = time.monotonic()
        try:
            requests = self._requests()
            snapshot = self._snapshot(requests)
            connectors = {each.name: measure(each, snapshot) for each in requests}
        except Exception as error:
            expected = isinstance(error, ConnectError)
            # The text of an unexpected error may hold a secret; the page shows only its class.
            problem = str(error) if expected else f"{type(error).__name__}; see the API server's log"
            if self._latest.problem is None:
                log.warning("Cannot measure the progress of connectors, trying again: %s", problem, exc_info=not expected)
            self._publish(replace(self._latest, problem=problem), None, started)
        else:
            if self._latest.problem is not None:
                log.info("The progress of connectors is measured again")
            self._log_refused(snapshot)
            self._publish(LatestProgress(snapshot.at, connectors), requests, started)

    def _run(self) -> None:
        while not self._stopping:
            self.sample()
            if not self._stopping:
                self._wake.wait(self._idle)

    def _publish(self, latest: LatestProgress, requests: list[ProbeRequest] | None, started: float) -> None:
        """Make a sample visible; ``requests`` is None for one that failed."""
        with self._sampled:
            if requests is not None:
                known = self._series
                self._series = {each.name: known[each.name] if each.name in known else self._new(each) for each in requests}
                for name, each in latest.connectors.items():
                    self._series[name].add(latest.at, each.positions, each.lag)
                latest = replace(latest, rates={name: series.rate() for name, series in self._series.items()})
            self._latest = latest
            self._fresh_until = time.monotonic() + max(self._least, _DUTY_CYCLE * (time.monotonic() - started))
            self._samples += 1
            self._wake.clear()  # this sample serves all who asked while it was being taken
            self._sampled.notify_all()

    def _log_refused(self, snapshot: OffsetsSnapshot) -> None:
        for group in snapshot.refused.keys() - self._refused:
            log.warning("The lag of consumer group %s is not shown: %s", group, snapshot.refused[group])
        self._refused |= snapshot.refused.keys()

    def _new(self, request: ProbeRequest) -> Series:
        return Series(self._spread if request.group is not None else 0.0)
