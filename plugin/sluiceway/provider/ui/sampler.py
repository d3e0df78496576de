"""Looks at all connectors now and then, for everybody who watches: one thread in each API-server process.

Offsets in Kafka are the same for every process, so each one samples for itself and all of them tell the same.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluiceway.errors import ConnectError
from sluiceway.provider.progress.measures import Measure, Reading, measure
from sluiceway.provider.progress.subjects import Subject
from sluiceway.provider.ui.series import Series

log = logging.getLogger(__name__)

_IDLE_SECONDS = 60.0
_LEAST_SECONDS = 5.0
_SHARE = 4  # looking takes at most one part in so many of the time


@dataclass(frozen=True, slots=True)
class Look:
    """What is known now. ``at``: when Kafka last answered, in seconds since the epoch (0: never); ``problem``: why not since."""

    at: float = 0.0
    measures: Mapping[str, Measure] = field(default_factory=dict)
    problem: str | None = None


class Sampler:
    """Takes a sample each minute, and while somebody asks for a fresh one every few seconds. Thread-safe.

    Args:
        subjects: tells which connectors there are.
        read: asks Kafka about them; may raise ConnectError.
        spread: how long a sink's commits may be apart, in seconds.
        idle: seconds between two samples while nobody looks.
    """

    def __init__(
        self,
        subjects: Callable[[], list[Subject]],
        read: Callable[[list[Subject]], Reading],
        *,
        spread: float,
        idle: float = _IDLE_SECONDS,
        least: float = _LEAST_SECONDS,
    ) -> None:
        self._subjects = subjects
        self._read = read
        self._spread = spread
        self._idle = idle
        self._least = least
        self._look = Look()
        self._series: dict[str, Series] = {}
        self._tried = threading.Condition()
        self._tries = 0
        self._rest_until = 0.0
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="sluiceway-ui", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def fresh(self, wait: float = 3.0) -> Look:
        """Return what is known, at most some seconds old; older if Kafka does not answer within ``wait`` seconds."""
        with self._tried:
            if time.monotonic() >= self._rest_until:
                tries = self._tries
                self._wake.set()
                self._tried.wait_for(lambda: self._tries > tries, timeout=wait)
            return self._look

    def series(self, name: str) -> Series | None:
        """Return a connector's last hour, as it is now."""
        with self._tried:
            found = self._series.get(name)
            return None if found is None else found.copy()

    def _run(self) -> None:
        while not self._stopping:
            self.sample()
            if not self._stopping:
                self._wake.wait(self._idle)

    def sample(self) -> None:
        """Look once. Never raises: what is wrong is told by ``fresh`` and, once, by the log."""
        began = time.monotonic()
        try:
            asked = self._subjects()
            reading = self._read(asked)
            measures = {each.name: measure(each, reading) for each in asked}
        except Exception as error:
            problem = str(error) if isinstance(error, ConnectError) else f"{type(error).__name__}; the log has the details"
            if self._look.problem is None:
                unexpected = not isinstance(error, ConnectError)
                log.warning("How far connectors are is not known, trying again: %s", problem, exc_info=unexpected)
            self._tell(Look(self._look.at, self._look.measures, problem), None, began)
        else:
            if self._look.problem is not None:
                log.info("How far connectors are is known again")
            self._tell(Look(reading.at, measures), asked, began)

    def _tell(self, look: Look, asked: list[Subject] | None, began: float) -> None:
        with self._tried:
            if asked is not None:
                known = self._series
                self._series = {each.name: known[each.name] if each.name in known else self._new(each) for each in asked}
                for name, each in look.measures.items():
                    self._series[name].add(look.at, each.positions, each.lag)
            self._look = look
            self._rest_until = time.monotonic() + max(self._least, _SHARE * (time.monotonic() - began))
            self._tries += 1
            self._wake.clear()  # whoever asked while this look was under way has been served by it
            self._tried.notify_all()

    def _new(self, subject: Subject) -> Series:
        return Series(self._spread if subject.group is not None else 0.0)
