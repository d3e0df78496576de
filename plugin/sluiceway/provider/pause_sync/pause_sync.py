"""Keeps the paused flags of DAGs and the target states of connectors equal, and ends the runs of deleted connectors.

Runs in the API server, in a thread of each process that serves the REST API. Only the process that holds the lock acts. The
others track what was last agreed, to be able to take over.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from sluiceway.errors import ConnectError
from sluiceway.provider.dag_bundle.dag_ids import stub_file
from sluiceway.provider.pause_sync.airflow_db import DagFlag, EndedRuns
from sluiceway.provider.pause_sync.leadership import Leadership
from sluiceway.provider.pause_sync.rules import (
    ConnectorTasks,
    Decision,
    Toggle,
    changed,
    decide,
    generated,
    is_newer,
    moved_away,
    moving,
    targets_by_dag,
    tasks_to_clear,
)
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import RestartRequest, TargetState

log = logging.getLogger(__name__)

_ALLOW_SECONDS = 5.0


class Database(Protocol):
    """The part of Airflow's database that the pause sync uses (``AirflowDatabase``)."""

    def flags(self, dag_ids: Collection[str], bundle: str) -> Mapping[str, DagFlag]: ...

    def served_since(self, cluster: str, *, claim: bool) -> int | None: ...

    def toggles(self, dag_ids: Collection[str]) -> Mapping[str, Toggle]: ...

    def set_paused(self, dag_id: str, paused: bool, why: str) -> None: ...

    def request_parsing(self, bundle: str, files: Collection[str]) -> None: ...

    def clear_failed(self, dag_id: str, tasks: ConnectorTasks, why: str) -> Collection[str]: ...

    def gone(self, dag_ids: Collection[str]) -> Collection[str]: ...

    def allow_runs(self, bundle: str) -> None: ...

    def end_runs(self, bundle: str, keep: Collection[str], why: str) -> EndedRuns: ...


class Connectors(Protocol):
    """The part of the herder that the pause sync uses."""

    def pause(self, name: str) -> None: ...

    def resume(self, name: str) -> None: ...


class PauseSync:
    """Compares both sides every ``interval`` seconds, and at once when the config topic changes.

    Args:
        bundle: the DAG bundle of generated DAGs.
        cluster: returns what tells this Connect cluster from others that Airflow may have served before. Raises ConnectError.
    """

    def __init__(
        self,
        config: ConfigBackingStore,
        herder: Connectors,
        database: Database,
        leadership: Leadership,
        *,
        bundle: str,
        cluster: Callable[[], str],
        interval: float,
    ) -> None:
        self._config = config
        self._herder = herder
        self._database = database
        self._leadership = leadership
        self._bundle = bundle
        self._cluster = cluster
        self._served_since: int | None = None
        self._interval = interval
        self.leads = False
        """Whether this process held the lock in the last step."""
        self._agreed: dict[str, bool] = {}
        self._generated: dict[str, Mapping[str, str]] | None = None
        self._allowed_at = float("-inf")
        self._gone: set[str] = set()
        self._restarts: list[RestartRequest] = []
        self._has_runs_to_end = True  # connectors may have been deleted while no API server ran
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="sluiceway-pause-sync", daemon=True)
        config.on_change(lambda _kind, _name: self._wake.set())

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and release the lock."""
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=10)
        self._leadership.release()

    def step(self) -> None:
        """Compare both sides once, and change what makes them equal."""
        state = self._config.snapshot()
        wanted, dags = generated(state), targets_by_dag(state)
        flags = self._database.flags(list(dags), self._bundle)
        taken = {dag for dag in wanted.keys() & flags.keys() if flags[dag].other_bundle(self._bundle)}
        if taken:
            dags = targets_by_dag(state, taken)
        self.leads = leads = self._leadership.held()
        if self._served_since is None:
            self._served_since = self._database.served_since(self._cluster(), claim=leads)
        self._request_parsing(wanted, flags, leads)
        # Every process takes the requests, or a new leader would serve old ones. What a step of the leader cannot, its next does.
        requests = self._config.take_restart_requests()
        self._restarts = [*self._restarts, *requests] if leads else []
        known = {dag: targets for dag, targets in dags.items() if dag in flags}
        toggles = self._database.toggles(known.keys() - self._agreed.keys())
        newer = {
            dag: is_newer(toggles.get(dag), flags[dag].paused, state, targets, self._served_since)
            for dag, targets in known.items()
        }
        others = {"moved": moved_away(state), "moving": moving(state)}
        decisions = {
            dag: decide(self._agreed.get(dag), flags[dag].paused, targets, flag_is_newer=newer[dag], **others)
            for dag, targets in known.items()
        }
        self._agreed = {dag: decision.agreed for dag, decision in decisions.items() if decision.agreed is not None}
        if leads:
            for dag, tasks in tasks_to_clear(self._restarts, known, flags, state).items():
                self._clear_failed(dag, tasks)
            self._restarts.clear()
            self._report_gone({dag: dags[dag] for dag in dags.keys() - flags.keys() - wanted.keys()})
            for dag, decision in decisions.items():
                if self._apply(dag, decision) and decision.paused_after is not None:
                    # Not in the next step: a user's toggle before it would look like the state before, and be undone.
                    self._agreed[dag] = decision.paused_after
            self._end_runs(wanted, flags)

    def _run(self) -> None:
        failing = False
        while not self._stopping:
            self._wake.wait(self._interval)
            self._wake.clear()
            try:
                self.step()
                failing = False
            except Exception:  # the database or Kafka is unavailable; a later step sees all changes, whenever they happened
                if not failing:
                    log.exception("The pause sync cannot read DAGs or connectors, trying again every %g s", self._interval)
                failing = True

    def _request_parsing(self, wanted: dict[str, Mapping[str, str]], flags: Mapping[str, DagFlag], leads: bool) -> None:
        """Have the bundle parsed at once when a generated DAG appears, changes or disappears; on its own that takes longer."""
        if self._generated is None:  # changes from before this process started show as a difference to Airflow's DAGs
            present = {dag for dag, flag in flags.items() if flag.bundle == self._bundle}
            dags = wanted.keys() ^ present
        else:
            dags = changed(self._generated, wanted)
        if dags and leads:
            files = [stub_file(dag) for dag in sorted(dags)]
            log.info("Requesting that bundle %s be parsed: %s", self._bundle, ", ".join(files))
            self._database.request_parsing(self._bundle, files)
        self._has_runs_to_end |= bool((self._generated or {}).keys() - wanted.keys())
        self._generated = wanted

    def _end_runs(self, wanted: Mapping[str, object], flags: Mapping[str, DagFlag]) -> None:
        """End the runs of deleted connectors: Airflow's scheduler ignores a running run whose DAG no longer exists.

        Called until no task of theirs executes and Airflow has removed their DAGs: until then it may create another run.
        """
        exist = any(flag.bundle == self._bundle and dag not in wanted for dag, flag in flags.items())
        if self._has_runs_to_end or exist:
            runs = self._database.end_runs(self._bundle, wanted.keys(), "its connector was deleted")
            if runs.ended:
                log.info("Ended the runs of deleted connectors' DAGs: %s", ", ".join(sorted(runs.ended)))
            self._has_runs_to_end = bool(runs.executing)
            self._allowed_at = float("-inf")
        if time.monotonic() - self._allowed_at >= _ALLOW_SECONDS:
            self._database.allow_runs(self._bundle)
            self._allowed_at = time.monotonic()

    def _clear_failed(self, dag: str, tasks: ConnectorTasks) -> None:
        """Serve a restart request by clearing tasks: a connector without a live driver has no one else to restart it."""
        names = ", ".join(tasks.by_config)
        if cleared := self._database.clear_failed(dag, tasks, f"a restart of {names} was requested"):
            log.info("DAG %s: cleared %s of its last run, because a restart of %s was requested", dag, ", ".join(cleared), names)

    def _report_gone(self, missing: Mapping[str, Mapping[str, TargetState]]) -> None:
        """Warn once about each hand-written DAG that Airflow has no file of any more. Its connectors run on."""
        gone = set(self._database.gone(missing.keys())) if missing else set()
        for dag in sorted(gone - self._gone):
            log.warning(
                "DAG %s is gone, but its connectors are not: %s. They run until their Airflow tasks end, and then nothing starts "
                "them. Delete them, which keeps their offsets, or restore the DAG's file",
                dag,
                ", ".join(sorted(missing[dag])),
            )
        self._gone = gone

    def _apply(self, dag: str, decision: Decision) -> bool:
        """Carry out a decision; return whether all of it succeeded."""
        succeeded = True
        for name, target in decision.put_target.items():
            log.info("[%s|worker] Setting target state %s, as DAG %s was toggled", name, target.value, dag)
            try:
                if target is TargetState.PAUSED:
                    self._herder.pause(name)
                else:
                    self._herder.resume(name)
            except ConnectError as error:  # such as a connector deleted since the snapshot; other connectors must not wait
                log.warning("[%s|worker] Cannot change the target state: %s", name, error)
                succeeded = False
        if decision.set_paused is not None:
            log.info("DAG %s: %s, as its connector was", dag, "paused" if decision.set_paused else "unpaused")
            self._database.set_paused(dag, decision.set_paused, "the connector's target state changed")
        return succeeded
