"""A Connect cluster as a migration sees it, through its REST API."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from sluiceway.cli.migration_steps import UNASSIGNED, ConnectorView, MigrationError, Tasks
from sluiceway.rest.client import ConnectClient, RestError

T = TypeVar("T")

NOT_FOUND = 404
POLL_SECONDS = 0.1
# No connection, a rebalance of Connect's workers, their timeouts, a server that is starting.
TRANSIENT = (0, 409, 500, 502, 503, 504)
_WORKER_SECONDS = 5.0  # within which a worker that can be reached answers the first request
# Of each further one, which a worker in a rebalance holds back for seconds: meanwhile UNASSIGNED may be seen.
_ANSWER_SECONDS = 1.0
_MOST_WORKERS = 32  # that are asked at once
_ENDING_SECONDS = 6.0  # Kafka Connect's task.shutdown.graceful.timeout.ms is 5 s by default


@dataclass(frozen=True)
class MigrationCluster:
    """A Connect cluster's REST API and what it says of itself."""

    api: ConnectClient
    _ends: dict[str, TaskEnds] = field(default_factory=dict, compare=False)

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

    def await_topics(self, timeout: float, say: Callable[[str], None]) -> None:
        """Wait until it knows all of its connectors, and say so if it has to. Raises RestError after ``timeout`` seconds.

        A worker of Kafka Connect that starts lists the connectors that it has read from its topics so far, which may be none. It
        answers for a single one, whether that exists or not, once it has read them and is in its group.
        """
        deadline, said = time.monotonic() + timeout, False
        while (error := self._not_ready()) is not None:
            if time.monotonic() > deadline:
                raise error
            if not said:
                say(f"{self.text} is not ready; trying again for up to {timeout:g} s. {error}")
            said = True
            time.sleep(POLL_SECONDS)

    def _not_ready(self) -> RestError | None:
        try:
            self.api.config("any")
        except RestError as error:
            return error if error.status in TRANSIENT else None
        return None

    def view(self, name: str) -> ConnectorView | None:
        """Return a connector as it is now; None if there is none."""
        config = unless_missing(lambda: self.api.config(name))
        return None if config is None else ConnectorView.of(config, self.status(name))

    def status(self, name: str) -> dict[str, Any]:
        """Return a connector's status; empty if it has none yet, or a worker that has just started does not know it yet."""
        return unless_missing(lambda: self.api.status(name)) or {}

    def tasks(self, name: str) -> Tasks:
        """Return a connector's tasks, those of its config and those of its status."""
        return Tasks.of(self.status(name), [each["task"] for each in self.api.info(name)["tasks"]])

    def task_state(self, name: str, task: int) -> str | None:
        """Return a task's state; None if it has no status."""
        status = unless_missing(lambda: self.api.task_status(name, task))
        return None if status is None else str(status["state"])

    def pause(self, name: str) -> None:
        self.api.pause(name, moving=self.is_sluiceway)

    def resume(self, name: str) -> None:
        self.api.resume(name, moving=self.is_sluiceway)

    def ends(self, name: str) -> TaskEnds:
        """Return what notices the ends of a connector's tasks, one for each connector."""
        return self._ends.setdefault(name, TaskEnds(self, name))

    @cached_property
    def workers(self) -> dict[str, ConnectClient | None]:
        """A client of each worker of a Kafka Connect by its id; None for one that cannot be reached from here.

        Empty for a Sluiceway, where one driver runs all tasks of a connector.
        """
        if self.is_sluiceway:
            return {}
        scheme, statuses = self.api.server.partition("://")[0], self.api.statuses().values()
        found = {part["worker_id"] for status in statuses for part in (status["connector"], *status["tasks"])}
        addresses = {each: f"{scheme}://{each}" for each in found}
        with ThreadPoolExecutor(_MOST_WORKERS) as pool:  # one that cannot be reached may take the 5 seconds
            respond = pool.map(lambda each: MigrationCluster(self.api.at(each, _WORKER_SECONDS)).responds(), addresses.values())
            return {
                each: self.api.at(address, _ANSWER_SECONDS) if responds else None
                for (each, address), responds in zip(addresses.items(), respond, strict=True)
            }


class TaskEnds:
    """Notices when the tasks of a connector that was told to stop have ended.

    The leader of a Kafka Connect cluster removes a task's status as soon as a rebalance revokes the task. Another worker may
    still be ending it then, and says UNASSIGNED later, until the next rebalance. A worker answers requests for connectors only
    after it has ended what was revoked. So once the statuses are gone, each worker is asked, and UNASSIGNED is looked for,
    until one of them shows the end: at most as long as a worker may take to end a task.
    """

    def __init__(self, cluster: MigrationCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._tasks: set[int] | None = None  # those not seen UNASSIGNED; None if an earlier command has stopped the connector
        self._silent = set(cluster.workers)  # those that have not answered since the statuses are gone
        self._gone: float | None = None  # since when they are gone

    def expect(self, tasks: Collection[int]) -> None:
        """Note that a connector with these tasks is about to be told to stop."""
        self._tasks = (self._tasks or set()) | set(tasks)
        self._silent, self._gone = set(self._cluster.workers), None

    def all(self) -> bool:
        """Return whether each task has ended and stored its offsets."""
        for task in sorted(self._tasks or ()):
            state = self._cluster.task_state(self._name, task)
            if state not in (None, UNASSIGNED):
                return False
            if state == UNASSIGNED and self._tasks is not None:
                self._tasks.discard(task)
        if self._gone is None:
            self._gone = time.monotonic()
        for each in sorted(self._silent):
            if not self._answers(self._cluster.workers[each]):
                break  # look for UNASSIGNED before the others are asked
            self._silent.discard(each)
        if self._silent and self._tasks != set() and time.monotonic() <= self._gone + _ENDING_SECONDS:
            return False
        self._tasks, self._silent = set(), set()  # known until the connector is told to stop once more
        return True

    def _answers(self, worker: ConnectClient | None) -> bool:
        try:
            if worker is None:
                return False
            worker.config(self._name)
        except RestError as error:
            return error.status == NOT_FOUND
        return True


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
