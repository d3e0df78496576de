"""Clears the runs of intervals for which records came late, with ``airflow.interval.late=rerun``.

Runs in the API server, in the process that leads the pause sync. Which intervals those are is in the ledgers: a run that leaves
late records to another interval notes it there when it ends, so whatever dies, the run of that interval is cleared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from sluiceway.config.intervals import LATE, RERUN, interval_of
from sluiceway.errors import ConnectError
from sluiceway.provider.dag_bundle.dag_keys import dag_of
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.intervals import IntervalEntry, IntervalState

log = logging.getLogger(__name__)


class Database(Protocol):
    """The part of Airflow's database that has DAG runs (``AirflowDatabase``)."""

    def clear_run(self, dag_id: str, run_id: str, why: str) -> bool | None: ...


class LateReruns:
    """Clears the runs.

    Args:
        config: the connectors.
        waiting: returns the intervals of a connector that late records wait for. Raises ConnectError.
        database: Airflow's database.
        leads: tells whether this process may act.
    """

    def __init__(
        self,
        config: ConfigBackingStore,
        waiting: Callable[[str], Iterable[IntervalEntry]],
        database: Database,
        leads: Callable[[], bool],
    ) -> None:
        self._config = config
        self._waiting = waiting
        self._database = database
        self._leads = leads
        self._done: set[tuple[str, int, int, int]] = set()
        self._problems: dict[str, str] = {}

    def step(self) -> None:
        """Clear the runs for which late records wait. A connector whose ledger cannot be read is tried again, and said once."""
        if not self._leads():
            self._done.clear()
            return
        for name, connector in self._config.snapshot().connectors.items():
            config = connector.config or {}
            if config.get(LATE) != RERUN or interval_of(config) is not None:
                continue
            try:
                for entry in self._waiting(name):
                    if entry.rerun and entry.state is IntervalState.DONE and entry.runs:
                        self._clear(name, dag_of(name, config), entry)
                self._problems.pop(name, None)
            except Exception as error:  # whatever it is, the others are cleared, and it is tried again
                if self._problems.get(name) != str(error):
                    self._problems[name] = str(error)
                    unexpected = not isinstance(error, ConnectError)
                    log.warning("[%s|worker] Runs of late records cannot be cleared: %s", name, error, exc_info=unexpected)

    def _clear(self, name: str, dag: str, entry: IntervalEntry) -> None:
        attempt = (name, entry.interval.start, entry.attempt, entry.rerun)
        if attempt in self._done:
            return
        run = entry.runs[-1]
        cleared = self._database.clear_run(dag, run, f"records of interval {entry.interval} of connector {name} came late")
        if cleared is None:
            return  # it is about to begin, or waits for another task
        self._done.add(attempt)
        if cleared:
            log.info("[%s|worker] Late records: run %s is cleared, to move interval %s again", name, run, entry.interval)
        else:
            log.warning(
                "[%s|worker] Late records of interval %s wait: its run %s is not in Airflow any more. A backfill moves them.",
                name,
                entry.interval,
                run,
            )
