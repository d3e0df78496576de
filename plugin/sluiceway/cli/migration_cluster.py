"""A Connect cluster as a migration sees it, through its REST API."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from sluiceway.cli.migration_steps import MigrationError, View
from sluiceway.rest.client import ConnectClient, RestError

T = TypeVar("T")

NOT_FOUND = 404
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Cluster:
    """A Connect cluster's REST API and what it says of itself."""

    api: ConnectClient

    @cached_property
    def root(self) -> dict[str, Any]:
        """The version, the commit and the id of the Kafka cluster."""
        return self.api.root()

    @property
    def is_sluiceway(self) -> bool:
        return str(self.root.get("commit", "")).startswith("sluiceway-")

    @property
    def text(self) -> str:
        """The address, for messages."""
        scheme, mark, rest = self.api.server.partition("://")
        return f"{scheme}{mark}{rest.rpartition('@')[2]}"

    def responds(self) -> bool:
        """Return whether there is a REST API."""
        try:
            self.api.root()
        except RestError as error:
            return error.status != 0
        return True

    def view(self, name: str) -> View | None:
        """Return a connector as it is now; None if there is none."""
        config = unless_missing(lambda: self.api.config(name))
        return None if config is None else View.of(config, unless_missing(lambda: self.api.status(name)) or {})

    def has_task(self, name: str, task: int) -> bool:
        """Return whether a task has not ended yet, according to its status."""
        status = unless_missing(lambda: self.api.task_status(name, task))
        return status is not None and status["state"] != "UNASSIGNED"


def awaited(condition: Callable[[], bool], timeout: float, what: str) -> None:
    """Wait until a condition holds. Raises MigrationError after ``timeout`` seconds; ``what`` says what has not happened."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise MigrationError(f"Timed out after {timeout:g} s: {what}.")
        time.sleep(POLL_SECONDS)


def unless_missing(call: Callable[[], T]) -> T | None:
    try:
        return call()
    except RestError as error:
        if error.status == NOT_FOUND:
            return None
        raise
