"""Beside a running driver, in a thread of the Airflow task: says in its log what is moved, and in the end how much it was."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from sluiceway.errors import ConnectError
from sluiceway.provider.progress.position import Moved, Position, progress_line

log = logging.getLogger(__name__)

Look = Callable[[], Position]


class Positions(Protocol):
    """Where connectors stand (``Link``); every call raises ConnectError when Kafka does not answer."""

    def position(self, name: str) -> Position | None: ...

    def meter(self, name: str) -> Look: ...


class MovementWatch:
    """A context manager around the driver's life. An outage of Kafka costs lines in the log, never the driver.

    ``interval``: seconds between two lines.
    """

    def __init__(self, name: str, positions: Positions, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._positions = positions
        self._interval = interval
        self._clock = clock
        self._began = clock()
        self._before: Position | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"movement-{name}", daemon=True)

    def __enter__(self) -> MovementWatch:
        self._thread.start()  # the first look too: a driver takes longer to start than that
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=30)

    def moved(self, records: int | None) -> Moved:
        """Return what was moved since the beginning; ``records`` as the driver counted them, if it did. Call after the end."""
        after = None
        try:
            after = self._positions.position(self._name)
        except ConnectError as error:
            log.warning("[%s|worker] What was moved is not known: %s", self._name, error)
        return Moved.between(self._before, after, self._clock() - self._began, records)

    def _run(self) -> None:
        try:
            self._before = self._positions.position(self._name)
            self._tell(self._positions.meter(self._name))
        except Exception:  # a line in a log is not worth a driver
            log.exception("[%s|worker] Its progress is not shown any more", self._name)

    def _tell(self, look: Look) -> None:
        last: tuple[float, Position] | None = None
        while not self._end.wait(self._interval):
            try:
                now = self._clock(), look()
            except ConnectError as error:
                log.warning("[%s|worker] Its progress is not known now: %s", self._name, error)
                continue
            if last is not None:
                log.info("[%s|worker] %s", self._name, progress_line(last[1], now[1], now[0] - last[0]))
            elif self._before is not None:
                log.info("[%s|worker] %s", self._name, progress_line(self._before, now[1], now[0] - self._began))
            last = now
