"""The life of a Connector object as its runner sees it: it starts, says which tasks it wants, fails, asks again, stops."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.reconcile import TooManyTasksError
from sluiceway.worker.connector_thread import HostedConnector

log = logging.getLogger(__name__)

Await = Callable[[Callable[[], bool], float], bool]
"""Waits until a condition holds, at most so many seconds, while heartbeats go on; whether it holds."""

_BACKOFF = (1.0, 60.0)  # seconds before a connector is asked for its tasks again after it failed to say


@dataclass(frozen=True, slots=True)
class Started:
    """``start`` has returned."""


@dataclass(frozen=True, slots=True)
class Wants:
    """The connector has said which tasks it wants."""

    configs: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Failed:
    """Its code raised an error, or it reported one."""

    error: BaseException


News = Started | Wants | Failed


class ConnectorLife:
    """One connector's object, or none. For the runner's thread; nothing here waits for the connector's code but ``end``."""

    def __init__(self, name: str, worker: WorkerConfig, notify: Callable[[], None], wait: Await) -> None:
        self._name = name
        self._worker = worker
        self._notify = notify
        self._wait = wait
        self._hosted: HostedConnector | None = None
        self._started = False
        self._broken = False
        self._pending: Future[None] | None = None
        self._asked: Future[list[dict[str, str]]] | None = None
        self._ask_at: float | None = None
        self._backoff = _BACKOFF[0]

    @property
    def version(self) -> str | None:
        return self._hosted.version if self._hosted is not None else None

    @property
    def begun(self) -> bool:
        """Whether there is an object, whatever became of it."""
        return self._hosted is not None

    @property
    def broken(self) -> bool:
        """Whether it failed in a way that only a restart or another config can mend."""
        return self._broken

    @property
    def started(self) -> bool:
        """Whether there is an object whose ``start`` has returned."""
        return self._started

    @property
    def settled(self) -> bool:
        """Whether nothing is under way: the tasks that it wants are known."""
        return self._started and not self._broken and self._asked is None and self._ask_at is None

    @property
    def outdated(self) -> bool:
        """Whether the secrets that it was started with hold no longer, so that it is to be restarted (KIP-297)."""
        return self._hosted is not None and time.monotonic() >= self._hosted.good_until

    @property
    def seconds_left(self) -> float:
        """The time until it is to be asked again, or is outdated."""
        due = [] if self._hosted is None else [self._hosted.good_until]
        if self._ask_at is not None and self._asked is None:
            due.append(self._ask_at)
        return max(0.0, min(due, default=float("inf")) - time.monotonic())

    def begin(self, config: Mapping[str, str]) -> None:
        """Start a new object."""
        self._hosted = HostedConnector(self._name, config, self._worker, self._notify)
        self._pending = self._hosted.start()

    def news(self) -> list[News]:
        """Return what has happened since the last call, and ask what is to be asked."""
        found: list[News] = []
        if self._hosted is None:
            return found
        if self._pending is not None and self._pending.done():
            found.append(self._after_start(self._pending))
        if self._hosted.error is not None:
            found.append(self._break(self._hosted.error))
            self._hosted.error = None
        if self._asked is not None and self._asked.done():
            found.append(self._after_asking(self._asked))
        self._ask()
        return found

    def ask_again(self) -> None:
        """Ask for the tasks once more, later with each time in a row: what it wanted could not be had."""
        self._ask_at = time.monotonic() + self._backoff
        self._backoff = min(self._backoff * 2, _BACKOFF[1])

    def contented(self) -> None:
        """Say that it has the tasks that it wanted."""
        self._backoff = _BACKOFF[0]

    def end(self, patience: float) -> None:
        """Stop the object. One that does not return within ``patience`` seconds is left to itself."""
        hosted, self._hosted = self._hosted, None
        self._started, self._broken, self._pending, self._asked, self._ask_at = False, False, None, None, None
        self._backoff = _BACKOFF[0]
        if hosted is None:
            return
        stopped = hosted.stop()
        if not self._wait(stopped.done, patience):
            log.error("Connector %s did not stop within %g s; it is left to itself", self._name, patience)
        elif (error := stopped.exception()) is not None:
            log.error("Connector %s failed to stop cleanly", self._name, exc_info=error)

    def _after_start(self, pending: Future[None]) -> News:
        self._pending = None
        error = pending.exception()
        if error is not None:
            return self._break(error)
        self._started = True
        self._ask_at = time.monotonic()
        return Started()

    def _after_asking(self, asked: Future[list[dict[str, str]]]) -> News:
        self._asked = None
        error = asked.exception()
        if error is None:
            return Wants(asked.result())
        if isinstance(error, TooManyTasksError):  # asked again, it would say the same
            return self._break(error)
        self.ask_again()
        return Failed(error)

    def _break(self, error: BaseException) -> News:
        self._broken = True
        self._ask_at = None
        return Failed(error)

    def _ask(self) -> None:
        if self._hosted is None or not self._started or self._broken or self._asked is not None:
            return
        due = self._ask_at is not None and time.monotonic() >= self._ask_at
        if due or self._hosted.reconfigure:
            self._hosted.reconfigure = False
            self._ask_at = None
            self._asked = self._hosted.task_configs()
