"""Compares a connector's status in the REST API with the records of its tasks, twice a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from support.clusters.records import Records
from support.eventually import LIMIT

POLL_SECONDS = 0.5
SILENT_SECONDS = 2.0  # a task without a record for this long has no living loop: its source makes many records each second

Status = dict[str, Any]


class Poller:
    """A thread that watches one connector.

    ``false_running`` is the longest time in seconds that a task was RUNNING in the REST API but made no record; ``stable_since``
    is the time since which connector and tasks are RUNNING and make records, None if they do not.

    Args:
        status: returns the connector's status from the REST API; raises an error if it does not answer.
        records: the records of the connector's tasks, uncommitted ones included.
    """

    def __init__(self, status: Callable[[], Status], records: Records) -> None:
        self.false_running = 0.0
        self.stable_since: float | None = None
        self.worker_id = ""
        self.history: list[tuple[float, str]] = []
        self._status = status
        self._records = records
        self._running_since: dict[int, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
        self._thread.start()

    def reset(self) -> None:
        """Start a new measurement of ``false_running``."""
        now = time.time()
        self.false_running = 0.0
        self._running_since = dict.fromkeys(self._running_since, now)

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)

    def _run(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            try:
                status = self._status()
            except Exception as error:  # noqa: BLE001 (shown in the history; the thread must go on)
                self._note(f"{type(error).__name__}: {error}")
                self.stable_since = None
                continue
            self._look(status, time.time())

    def _look(self, status: Status, now: float) -> None:
        tasks = {int(each["id"]): str(each["state"]) for each in status["tasks"]}
        self.worker_id = str(status["connector"]["worker_id"])
        self._note(f"{status['connector']['state']} {self.worker_id} {_tasks(status)}")
        for number, state in tasks.items():
            if state != "RUNNING":
                self._running_since.pop(number, None)
                continue
            sign = max(self._running_since.setdefault(number, now), self._records.tasks[number].arrived)
            if now - sign > SILENT_SECONDS:
                self.false_running = max(self.false_running, now - sign)
        living = all(now - each.arrived <= SILENT_SECONDS for each in self._records.tasks)
        running = [status["connector"]["state"], *tasks.values()] == ["RUNNING"] * (len(self._records.tasks) + 1)
        if not (living and running):
            self.stable_since = None
        elif self.stable_since is None:
            self.stable_since = now

    def _note(self, seen: str) -> None:
        if not self.history or self.history[-1][1] != seen:
            self.history.append((time.time(), seen))

    def story(self, since: float) -> str:
        """Return the changes of the status since a time, one a line, with seconds from that time."""
        return "\n".join(f"{moment - since:6.1f} {seen}" for moment, seen in self.history if moment >= since)


def _tasks(status: Status) -> str:
    return " ".join(f"{each['id']}={each['state']}{_cause(each.get('trace'))}" for each in status["tasks"])


def _cause(trace: str | None) -> str:
    return f" ({trace.strip().splitlines()[0][:160]})" if trace and trace.strip() else ""
