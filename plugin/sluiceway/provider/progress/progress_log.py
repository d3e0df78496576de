"""Logs a connector's progress while its driver runs, and summarizes the run. Runs in a thread of the Airflow task."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from sluiceway.errors import ConnectError
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.run_summary import RunSummary, progress_line

log = logging.getLogger(__name__)

ReadProgress = Callable[[], ConnectorProgress]


class ProgressSource(Protocol):
    """Measures connectors (``Link``). Every call raises ConnectError if Kafka does not answer."""

    def progress(self, name: str) -> ConnectorProgress | None:
        """Return a connector's progress with its offsets; None if there is no such connector."""

    def progress_reader(self, name: str) -> ReadProgress:
        """Return a function that measures the connector repeatedly over one connection."""

    def failed(self, name: str, since: float) -> tuple[str, ...]:
        """Return what of a connector is FAILED, the connector itself or tasks, each with the first line of its trace.

        A status from before ``since``, in seconds since the epoch, is that of an earlier driver and does not count.
        """


class ProgressLog:
    """Context manager that logs progress until it exits. If Kafka does not answer, lines are missing; the driver runs on.

    Args:
        name: the connector's name.
        interval: seconds between two lines.
        observe: called on the log's thread with each measurement and the one before it, if there is one.
        observe_failed: called after it with what is FAILED, also if that is nothing.
    """

    def __init__(
        self,
        name: str,
        source: ProgressSource,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
        observe: Callable[[ConnectorProgress | None, ConnectorProgress], None] = lambda _before, _now: None,
        observe_failed: Callable[[tuple[str, ...]], None] = lambda _failed: None,
    ) -> None:
        self._name = name
        self._source = source
        self._interval = interval
        self._clock = clock
        self._observe = observe
        self._observe_failed = observe_failed
        self._started_at = clock()
        self._since = time.time()
        self._before: ConnectorProgress | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"progress-{name}", daemon=True)

    def __enter__(self) -> ProgressLog:
        self._thread.start()  # measures the start too: that is faster than the start of a driver, which need not wait for it
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=30)

    def summary(self, records: int | None) -> RunSummary:
        """Return what was moved since the start. Call after the exit.

        Args:
            records: the driver's own count, if it reported one.
        """
        after = None
        try:
            after = self._source.progress(self._name)
        except ConnectError as error:
            log.warning("[%s|worker] Cannot measure what the run has moved: %s", self._name, error)
        return RunSummary.between(self._before, after, self._clock() - self._started_at, records)

    def _run(self) -> None:
        try:
            self._before = self._source.progress(self._name)
            self._log_lines(self._source.progress_reader(self._name))
        except Exception:  # a defect in logging must not end the driver
            log.exception("[%s|worker] Progress is no longer logged; the driver runs on", self._name)

    def _log_lines(self, read: ReadProgress) -> None:
        last = None if self._before is None else (self._started_at, self._before)
        while not self._stop.wait(self._interval):
            try:
                now = self._clock(), read()
                failed = self._source.failed(self._name, self._since)
            except ConnectError as error:
                log.warning("[%s|worker] Cannot measure progress, trying again in %g s: %s", self._name, self._interval, error)
                continue
            moved = "" if last is None else progress_line(last[1], now[1], now[0] - last[0])
            if failed:
                log.warning("[%s|worker] FAILED: %s; %s", self._name, "; ".join(failed), moved)
            elif moved:
                log.info("[%s|worker] %s", self._name, moved)
            self._observe(None if last is None else last[1], now[1])
            self._observe_failed(failed)
            last = now
