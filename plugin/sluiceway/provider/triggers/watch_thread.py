"""Watches a source's system for changes, on a thread of its own in the triggerer.

The other system may not answer for minutes, which must delay neither other triggers nor the end of the triggerer.
"""

from __future__ import annotations

import contextvars
import re
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple

from sluiceway.api import Mark, SourceConnector, SourceWatch
from sluiceway.backoff import Backoff
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION
from sluiceway.config.variables import resolution_for_use
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError
from sluiceway.herder.references import References
from sluiceway.provider.triggers.cluster_polling import Logger

_MAX_BACKOFF_SECONDS = 60.0
_AIRFLOW = "airflow."
_NUMBER = re.compile(r"\d+")

Config = Mapping[str, str]


class Seen(NamedTuple):
    """A mark that the watch has seen. ``build`` is the number of the watch: marks of different ones are not comparable."""

    build: int
    mark: Mark


class _Wanted(NamedTuple):
    worker: WorkerConfig
    config: Config


class WatchThread:
    """Holds the watch of one connector and asks it again and again. A context manager.

    An error of the other system is logged once, and the watch is asked again after a pause. After an error, the config's
    references are resolved again: a password may have changed. The config with its secrets is never logged.

    Args:
        connector: the connector's name.
        interval: seconds between two questions; doubled after each failure, up to 60 s.
        log: the trigger's logger.
    """

    def __init__(self, connector: str, interval: float, log: Logger) -> None:
        self._connector = connector
        self._interval = interval
        self._log = log
        self._backoff = Backoff(2 * interval, _MAX_BACKOFF_SECONDS)
        self._wanted: _Wanted | None = None
        self._seen: Seen | None = None
        self._closing = threading.Event()
        self._wake = threading.Event()
        # The rest is the thread's.
        self._watched: _Wanted | None = None
        self._watch: SourceWatch | None = None
        self._resolved: Config = {}
        self._builds = 0
        self._failed = False
        self._said: set[str] = set()
        run = contextvars.copy_context().run  # so that its log is the trigger's
        self._thread = threading.Thread(target=run, args=(self._run,), name=f"watch-{connector}", daemon=True)

    def __enter__(self) -> WatchThread:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /) -> None:
        """End the thread without waiting for it: it may wait for the other system."""
        self._closing.set()
        self._wake.set()

    def want(self, worker: WorkerConfig, config: Config | None) -> None:
        """Watch the source of this config, with unresolved references; None for a connector that does not exist."""
        watched = None if config is None else {key: each for key, each in config.items() if not key.startswith(_AIRFLOW)}
        known = self._wanted
        if watched == (None if known is None else known.config):
            return
        self._seen = None
        self._wanted = None if watched is None else _Wanted(worker, watched)
        self._wake.set()

    @property
    def seen(self) -> Seen | None:
        """The last mark of the source that is wanted; None before that, and while its system does not answer."""
        return self._seen

    # The thread.

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._wake.clear()
                pause = self._ask()
                self._wake.wait(pause)
        finally:
            self._close_watch()

    def _ask(self) -> float:
        """Ask the watch once. Return the seconds until the next question."""
        wanted = self._wanted
        if wanted is not self._watched:
            self._close_watch()
            self._watched, self._failed = wanted, False
            self._said.clear()
            self._backoff.reset()
        if wanted is None:
            return self._interval
        try:
            seen = self._mark(wanted)
        except Exception as error:  # noqa: BLE001 (a connector may raise anything; the triggerer must go on)
            self._failed = True
            pause = self._backoff.next()
            self._say(wanted, error, pause)
            self._show(wanted, None)
            return pause
        self._failed = False
        self._backoff.reset()
        if self._said:
            self._said.clear()
            self._log.info("Connector %s: its system answers again, and is watched for changes", self._connector)
        self._show(wanted, seen)
        return self._interval

    def _show(self, wanted: _Wanted, seen: Seen | None) -> None:
        if self._wanted is wanted:
            self._seen = seen

    def _mark(self, wanted: _Wanted) -> Seen:
        if self._watch is None or self._failed:
            self._build(wanted)
        assert self._watch is not None  # noqa: S101 (_build has set it, or raised)
        return Seen(self._builds, self._watch.mark())

    def _build(self, wanted: _Wanted) -> None:
        """Make the watch, unless there is one with the same values."""
        resolved = resolution_for_use(wanted.worker, wanted.config).config
        if self._watch is not None and resolved == self._resolved:
            return
        self._close_watch()
        cls = connector_class(resolved.get(CONNECTOR_CLASS, ""), resolved.get(CONNECTOR_VERSION))
        if not issubclass(cls, SourceConnector):
            raise ConfigError(f"{cls.__name__} is no source, and only sources are watched")
        self._resolved = resolved  # before the watch is made: what is logged of an error hides these values
        self._watch = cls.watch(resolved)
        self._builds += 1

    def _close_watch(self) -> None:
        watch, self._watch, self._resolved = self._watch, None, {}
        if watch is None:
            return
        try:
            watch.close()
        except Exception as error:  # noqa: BLE001 (as above)
            self._log.debug("Connector %s: closing its watch failed: %s", self._connector, type(error).__name__)

    def _say(self, wanted: _Wanted, error: Exception, pause: float) -> None:
        """Log an error, once for each kind until the system answers again."""
        written = {key: value for key, value in wanted.config.items() if "${" in value}
        text = References({**wanted.config, **self._resolved}, written, frozenset()).hidden(str(error))
        kind = f"{type(error).__name__} {_NUMBER.sub('', text)}"
        if kind in self._said:
            return
        self._said.add(kind)
        what = "Connector %s: its system cannot be watched for changes; trying again in %g s: %s: %s"
        self._log.warning(what, self._connector, pause, type(error).__name__, text)
