"""Describes what Airflow knows about the DAG of a connector: schedule, runs, and config; and the state that follows. No I/O."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sluiceway.config.connector import CONFIG_TASK, DAG, NAME
from sluiceway.config.connector_files import to_text
from sluiceway.config.schedules import CONTINUOUS
from sluiceway.storage.model import State

IDLE, STARTING = "IDLE", "STARTING"
"""States of the page that Kafka Connect does not have, of a connector that is UNASSIGNED: no run is due, or a run begins."""

_PATIENCE_SECONDS = 300.0  # Airflow, the driver, and Spark may take as long to start on a busy cluster
_FRESH_SECONDS = 3.0
_FAILED = "failed"
_OF_DAG = (NAME, DAG, CONFIG_TASK)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A DAG run. ``at`` is when it ended, or, while it has not, began to wait for its turn; in seconds since the epoch."""

    state: str
    at: float
    run_id: str


@dataclass(frozen=True, slots=True)
class DagFacts:
    """A DAG in Airflow's database.

    Attributes:
        schedule: Airflow's summary of its timetable, such as a cron expression; None if there is none.
        next: when its next run is due, in seconds since the epoch; None if that is not known.
        paused: whether it is paused.
        gone: whether Airflow has no file of it any more.
        import_error: whether its file cannot be imported, so that Airflow starts no runs of it.
        last: its newest run that has ended.
        active: its newest run that has not ended.
    """

    schedule: str | None = None
    next: float | None = None
    paused: bool = False
    gone: bool = False
    import_error: bool = False
    last: RunFacts | None = None
    active: RunFacts | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)


class DagReader:
    """Reads the facts of DAGs, for all users of the page at most every 3 seconds. Thread-safe."""

    def __init__(
        self, read: Callable[[Collection[str]], Mapping[str, DagFacts]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._known: dict[str, tuple[float, DagFacts | None]] = {}
        self._lock = threading.Lock()

    def facts(self, dags: Collection[str]) -> dict[str, DagFacts]:
        """Return the facts of those of these DAGs that Airflow knows."""
        with self._lock:
            now = self._clock()
            self._known = {dag: each for dag, each in self._known.items() if now - each[0] < _FRESH_SECONDS}
            if unknown := [dag for dag in dags if dag not in self._known]:
                found = self._read(unknown)
                self._known |= {dag: (now, found.get(dag)) for dag in unknown}
            return {dag: facts for dag in dags if (facts := self._known[dag][1]) is not None}


def shown_state(state: str, tasks: Mapping[str, int], dag: DagFacts | None, now: float) -> str:
    """Return the state that the page shows for a connector.

    A failed task counts as a failure. A connector that no driver runs is UNASSIGNED in Kafka Connect, which has no schedules:
    here it is idle between two runs, starts with a run, and has failed with its last run. It stays UNASSIGNED, which asks for a
    look, if it should run: a run that takes too long to start, or is overdue, and a DAG that is missing, has an import error, or
    runs all the time.

    Args:
        state: the connector's state in the REST API.
        tasks: the number of its tasks by state.
        dag: its DAG; None if Airflow does not know it.
        now: seconds since the epoch.
    """
    if tasks.get(State.FAILED.value):
        return State.FAILED.value
    if state != State.UNASSIGNED.value or dag is None or dag.gone or dag.import_error or dag.paused:
        return state
    begins = dag.active or (dag.last if dag.schedule == CONTINUOUS else None)
    if begins is not None or dag.schedule == CONTINUOUS:
        return STARTING if begins is not None and now - begins.at < _PATIENCE_SECONDS else state
    if dag.next is not None and now - dag.next > _PATIENCE_SECONDS:
        return state
    return State.FAILED.value if dag.last is not None and dag.last.state == _FAILED else IDLE


def drift(given: Mapping[str, Any] | None, stored: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Return the keys in which the config in a DAG's file differs from the one that runs, with its value here and there.

    Values with templates are left out, since only a run knows them.

    Args:
        given: the config in the DAG's file as Airflow keeps it; None if that is not known.
        stored: the connector's config.
    """
    if given is None:
        return {}
    wanted = {key: to_text(value) for key, value in given.items() if value is not None}
    keys = [key for key in sorted({*wanted, *stored}) if key not in _OF_DAG and "{{" not in wanted.get(key, "")]
    return {key: (stored.get(key), wanted.get(key)) for key in keys if stored.get(key) != wanted.get(key)}
