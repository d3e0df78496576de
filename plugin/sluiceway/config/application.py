"""Decides which Spark application runs a connector: its own, or one that it shares. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.connector import APPLICATION

DEFAULT = "sluiceway.application.default"
"""Worker key of the shared application of connectors that do not choose one."""
MAX_TASKS = "sluiceway.application.max.tasks"
"""Worker key of the number of tasks from which on connectors of one name are spread over several applications."""
NONE = "none"
"""Value of ``sluiceway.application`` that gives a connector an application of its own."""

_SPARK, _DAG, _MODE, _LONG_RUNNING = "spark.", "airflow.dag", "airflow.mode", "long-running"
_NUMBERED = re.compile(r"(.+)-([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Membership:
    """The shared application of a connector, None for one of its own, and the reason in a sentence."""

    application: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Applications:
    """The worker's settings: the default application, None for none, and the tasks of one application, None for no limit."""

    default: str | None = None
    max_tasks: int | None = None

    @classmethod
    def of(cls, worker: Mapping[str, object]) -> Applications:
        """Read the parsed values of a worker's keys."""
        default, most = worker.get(DEFAULT), worker.get(MAX_TASKS)
        name = default if isinstance(default, str) and default not in ("", NONE) else None
        return cls(name, most if isinstance(most, int) else None)

    def membership(self, config: Mapping[str, str]) -> Membership:
        """Return the application that a connector's config chooses, before it is spread."""
        if chosen := config.get(APPLICATION):
            return Membership(None if chosen == NONE else chosen, f"its config has {APPLICATION}={chosen}")
        if self.default is None:
            return Membership(None, f"the worker has no {DEFAULT}")
        if dag := config.get(_DAG):
            return Membership(None, f"the hand-written DAG {dag} runs it")
        if config.get(_MODE, _LONG_RUNNING) != _LONG_RUNNING:
            return Membership(None, f"its config has {_MODE}={config[_MODE]}")
        if own := sorted(key for key in config if key.startswith(_SPARK)):
            return Membership(None, f"its config has {own[0]}")
        return Membership(self.default, f"the worker has {DEFAULT}={self.default}")

    def application(self, config: Mapping[str, str], placed: str | None = None) -> str | None:
        """Return the application that runs a connector. ``placed`` is the stored one of the applications of its name."""
        name = self.membership(config).application
        return placed if name is not None and placed is not None and group(placed, name) else name


def group(application: str, name: str) -> bool:
    """Return whether an application is one of those over which the connectors of an application are spread."""
    return number_of(application, name) is not None


def number_of(application: str, name: str) -> int | None:
    """Return 1 for ``name`` itself, n for ``name-n`` from 2 on, and None for any other application."""
    if application == name:
        return 1
    found = _NUMBERED.fullmatch(application)
    number = int(found[2]) if found is not None and found[1] == name else 0
    return number if number > 1 else None


def numbered(name: str, number: int) -> str:
    """Return the application of a number: the inverse of ``number_of``."""
    return name if number == 1 else f"{name}-{number}"
