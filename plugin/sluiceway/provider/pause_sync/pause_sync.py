"""The mirror: keeps DAGs and connectors alike. Runs in the API server, in a thread of the plugin's lifespan.

Several API servers may run it: only the one that leads acts, the others look on so as to know what was last agreed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from typing import Protocol

from sluiceway.errors import ConnectError
from sluiceway.provider.dag_bundle.dag_ids import stub_file
from sluiceway.provider.pause_sync.airflow_db import DagFlag
from sluiceway.provider.pause_sync.rules import (
    Decision,
    Toggle,
    changed,
    dags_to_run_again,
    decide,
    generated,
    is_newer,
    targets_by_dag,
)
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import TargetState

log = logging.getLogger(__name__)


class Database(Protocol):
    """What the mirror needs of Airflow's database (``AirflowDatabase``)."""

    def flags(self, dag_ids: Collection[str], bundle: str) -> Mapping[str, DagFlag]: ...

    def toggles(self, dag_ids: Collection[str]) -> Mapping[str, Toggle]: ...

    def set_paused(self, dag_id: str, paused: bool, why: str) -> None: ...

    def request_parsing(self, bundle: str, files: Collection[str]) -> None: ...

    def run_again(self, dag_id: str, why: str) -> Collection[str]: ...


class Herd(Protocol):
    """What the mirror asks of the herder."""

    def pause(self, name: str) -> None: ...

    def resume(self, name: str) -> None: ...


class Leadership(Protocol):
    def held(self) -> bool: ...

    def release(self) -> None: ...


class Mirror:
    """Looks at both sides at each ``interval`` (seconds), and at once when the config topic changes."""

    def __init__(
        self,
        config: ConfigBackingStore,
        herder: Herd,
        database: Database,
        leadership: Leadership,
        *,
        bundle: str,
        interval: float,
    ) -> None:
        self._config = config
        self._herder = herder
        self._database = database
        self._leadership = leadership
        self._bundle = bundle
        self._interval = interval
        self._agreed: dict[str, bool] = {}
        self._generated: dict[str, Mapping[str, str]] | None = None
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="sluiceway-mirror", daemon=True)
        config.on_change(lambda _kind, _name: self._wake.set())

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=10)
        self._leadership.release()

    def _run(self) -> None:
        failing = False
        while not self._stopping:
            self._wake.wait(self._interval)
            self._wake.clear()
            try:
                self.step()
                failing = False
            except Exception:  # a database or broker that is out of reach comes back; the next look sees it all
                if not failing:
                    log.exception("The mirror cannot look at connectors and DAGs; trying again every %g s", self._interval)
                failing = True

    def step(self) -> None:
        """Look once at both sides and do what makes them equal."""
        state = self._config.snapshot()
        wanted, dags = generated(state), targets_by_dag(state)
        flags = self._database.flags(list(dags), self._bundle)
        leads = self._leadership.held()
        self._see_to_dags(wanted, flags, leads)
        restarts = self._config.take_restart_requests()  # taken by all, or a successor would find those of long ago
        there = {each: targets for each, targets in dags.items() if each in flags}
        toggles = self._database.toggles(there.keys() - self._agreed.keys())
        newer = {each: is_newer(toggles.get(each), flags[each].paused, state, targets) for each, targets in there.items()}
        decisions = {
            each: decide(self._agreed.get(each), flags[each].paused, targets, flag_is_newer=newer[each])
            for each, targets in there.items()
        }
        self._agreed = {each: decision.agreed for each, decision in decisions.items() if decision.agreed is not None}
        if leads:
            for dag in dags_to_run_again(restarts, there, flags):
                self._run_again(dag)
            for each, decision in decisions.items():
                if self._act(each, decision) and decision.paused_then is not None:
                    # At once, not at the next look: a person who toggles in between is to be heard.
                    self._agreed[each] = decision.paused_then

    def _see_to_dags(self, wanted: dict[str, Mapping[str, str]], flags: Mapping[str, DagFlag], leads: bool) -> None:
        """Have the bundle looked at when a connector appears, changes or goes. (It also looks by itself, but seldom.)"""
        if self._generated is None:  # what happened before this process began shows in what Airflow has
            present = {each for each, flag in flags.items() if flag.bundle == self._bundle}
            dags = wanted.keys() ^ present
        else:
            dags = changed(self._generated, wanted)
        if dags and leads:
            files = [stub_file(each) for each in sorted(dags)]
            log.info("Asking for bundle %s to be looked at: %s", self._bundle, ", ".join(files))
            self._database.request_parsing(self._bundle, files)
        self._generated = wanted

    def _run_again(self, dag: str) -> None:
        """A restart of a connector whose driver is gone is one of its run: nobody else is there who could do it."""
        if tasks := self._database.run_again(dag, "a restart of its connector was asked for"):
            log.info(
                "DAG %s: %s of its last run, which had failed, are run again, as a restart was asked for", dag, ", ".join(tasks)
            )

    def _act(self, dag: str, decision: Decision) -> bool:
        """Do what was decided; return whether all of it was done."""
        done = True
        for name, target in decision.put_target.items():
            log.info("[%s|worker] Target state %s, as DAG %s says", name, target.value, dag)
            try:
                if target is TargetState.PAUSED:
                    self._herder.pause(name)
                else:
                    self._herder.resume(name)
            except ConnectError as error:  # such as deleted in this very moment; the others must not wait for it
                log.warning("[%s|worker] Cannot change the target state: %s", name, error)
                done = False
        if decision.set_paused is not None:
            log.info("DAG %s is %s, as its connector says", dag, "paused" if decision.set_paused else "unpaused")
            self._database.set_paused(dag, decision.set_paused, "the connector's target state changed")
        return done
