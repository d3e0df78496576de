"""Sets the levels of Java loggers in all Java processes of this process, those that start later included."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import Protocol

ROOT = "root"

_lock = threading.Lock()
_levels: dict[str, str] = {}


class _Process(Protocol):
    """A ``JavaHost``."""

    def set_levels(self, levels: Mapping[str, str]) -> None: ...


_processes: weakref.WeakSet[_Process] = weakref.WeakSet()


def set_java_levels(levels: Mapping[str, str]) -> None:
    """Set the levels of Java loggers, by name; ``root`` is the root logger. Levels are Log4j's. Does not wait."""
    with _lock:
        _levels.update(levels)
        processes = list(_processes)
    for process in processes:
        process.set_levels(levels)


def follow_java_levels(process: _Process) -> None:
    """Set the levels that were set so far in a process that has just started, and later ones as they are set."""
    with _lock:
        _processes.add(process)
        levels = dict(_levels)
    if levels:
        process.set_levels(levels)
