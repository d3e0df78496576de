"""Shows and sets the levels of this process's loggers with Log4j's level names, for ``/admin/loggers``. Thread-safe.

A level for this process is set directly. A level for the whole cluster is written to the config topic, and each process
that follows the topic sets it. The logger ``connector.<name>`` stands for all loggers of that connector's driver. The levels
apply to the Java processes of plugins too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sluiceway.errors import NotFoundError
from sluiceway.java_plugins.log_levels import set_java_levels
from sluiceway.storage.interfaces import ConfigBackingStore

log = logging.getLogger(__name__)

ROOT = "root"
CONNECTOR = "connector."
LOGGER_LEVEL = "logger-level"
"""The kind of change that a config store reports for a new level."""

_OFF = "OFF"
_LEVELS = {_OFF: 100, "FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5, "ALL": 1}
_PACKAGE = "sluiceway"


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """A level and the time it was changed here, in milliseconds since the epoch, None if it was not."""

    level: str
    last_modified: int | None


def checked_level(level: str) -> str:
    """Return a level in upper case. Raises NotFoundError for an unknown level (404, as in Connect)."""
    checked = level.strip().upper()
    if checked not in _LEVELS:
        raise NotFoundError(f"invalid log level '{level}'.")
    return checked


class Loggers:
    """The loggers of this process. ``connector`` is the name of the connector whose driver runs here, if any."""

    def __init__(self, connector: str | None = None, clock: Callable[[], float] = time.time) -> None:
        self._connector = connector
        self._clock = clock
        self._lock = threading.Lock()
        self._set: dict[str, int | None] = {}

    def all(self) -> dict[str, LoggerLevel]:
        """Return the levels of the root logger and of loggers that were set here, by name; like Connect without those at OFF."""
        with self._lock:
            levels = {name: self._level(name) for name in sorted({ROOT, *self._set})}
        return {name: level for name, level in levels.items() if level.level != _OFF}

    def get(self, name: str) -> LoggerLevel:
        """Return a logger's level. Raises NotFoundError if there is no such logger."""
        name = _root_or(name)
        with self._lock:
            if name != ROOT and name not in self._set and name not in _existing():
                raise NotFoundError(f"Logger {name} not found.")
            return self._level(name)

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and its descendants and return the names of those that changed.

        Raises NotFoundError for an unknown level.
        """
        name, level = _root_or(name), checked_level(level)
        with self._lock:
            below = [each for each in {*self._set, *_existing()} if name == ROOT or each.startswith(f"{name}.")]
            # A logger without its own level inherits that of its parent.
            names = sorted({name, *(each for each in below if each in self._set or logging.getLogger(each).level)})
            changed = [each for each in names if self._level(each).level != level]
            self._set = {**dict.fromkeys(names), **self._set, **dict.fromkeys(changed, int(self._clock() * 1000))}
            for each in names:
                self._logger(each).setLevel(_LEVELS[level])
            set_java_levels({ROOT if self._is_driver(each) else each: level for each in names})
        log.info("[worker] Log level of %s is %s", name, level)
        return changed

    def apply_cluster_level(self, name: str, level: str) -> None:
        """Set a level that was set for the whole cluster. An unknown level is only logged."""
        try:
            self.set(name, level)
        except NotFoundError as error:
            log.warning("[worker] Ignoring the cluster-wide log level of %s: %s", name, error)

    def _level(self, name: str) -> LoggerLevel:
        return LoggerLevel(_name(self._logger(name).getEffectiveLevel()), self._set.get(name))

    def _logger(self, name: str) -> logging.Logger:
        if name == ROOT:
            return logging.getLogger()
        return logging.getLogger(_PACKAGE if self._is_driver(name) else name)

    def _is_driver(self, name: str) -> bool:
        return self._connector is not None and name == f"{CONNECTOR}{self._connector}"


def follow_cluster_levels(config: ConfigBackingStore, loggers: Loggers) -> None:
    """Apply levels that are set for the whole cluster from now on."""

    def changed(kind: str, name: str) -> None:
        if kind == LOGGER_LEVEL:
            loggers.apply_cluster_level(name, config.snapshot().logger_levels.get(name, ""))

    config.on_change(changed)


def _root_or(name: str) -> str:
    return ROOT if name.lower() == ROOT else name


def _existing() -> list[str]:
    known = logging.root.manager.loggerDict.copy()
    return [name for name, logger in known.items() if isinstance(logger, logging.Logger)]


def _name(number: int) -> str:
    """Return the name of the nearest level at or below one of Python's numbers."""
    return next((name for name, least in _LEVELS.items() if number >= least), "ALL")
