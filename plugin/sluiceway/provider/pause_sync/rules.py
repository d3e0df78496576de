"""Decides how the paused flags of DAGs and the target states of connectors follow each other. No I/O.

A DAG is paused as a whole. A generated DAG runs one connector, a hand-written one may run several. The state in which both
sides last agreed reveals which side changed: if the DAG's flag differs from it, a user toggled the DAG, and its connectors
follow. If a connector differs from it, its target state was changed, and the DAG follows. The decision does not depend on
having seen every change in between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sluiceway.config.connector import CONFIG_TASK, NAME
from sluiceway.errors import ConfigError
from sluiceway.herder.moved import is_moving, moved_to, rests_while_it_moves
from sluiceway.provider.dag_bundle.dag_ids import application_dag_id, dag_id
from sluiceway.provider.dag_bundle.dag_keys import dag_config, dag_of, is_generated
from sluiceway.storage.model import ClusterState, RestartRequest, TargetState


class PausedFlag(Protocol):
    """The paused flag of an active DAG (``DagFlag``)."""

    @property
    def paused(self) -> bool:
        """Return whether the DAG is paused."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The change to make on one DAG.

    Attributes:
        agreed: whether both sides were paused when they last agreed; None if they never did.
        set_paused: the flag to set on the DAG; None to leave it.
        put_target: the target states to set, by connector.
    """

    agreed: bool | None
    set_paused: bool | None = None
    put_target: Mapping[str, TargetState] = field(default_factory=dict)

    @property
    def paused_after(self) -> bool | None:
        """Return whether the DAG and its connectors are paused after the change; None if there is no change."""
        if self.set_paused is not None:
            return self.set_paused
        return next((target is not TargetState.STARTED for target in self.put_target.values()), None)


def decide(
    agreed: bool | None,
    paused: bool,
    targets: Mapping[str, TargetState],
    *,
    flag_is_newer: bool = False,
    moved: Collection[str] = (),
    moving: Collection[str] = (),
) -> Decision:
    """Return the change that makes a DAG's flag and its connectors' target states equal.

    Args:
        agreed: whether both sides were paused when they last agreed. With None (at startup, and for a new DAG or connector)
            the config topic wins, and of several connectors one that is paused or stopped, unless ``flag_is_newer``.
        paused: the DAG's flag.
        targets: target states by connector.
        flag_is_newer: whether the flag was set after all target states.
        moved: connectors that run on another cluster now. No flag starts them; a DAG that has no others stays paused.
        moving: connectors that a move will start or has stopped here. Their DAG runs, so that a driver is ready, and no flag
            changes their target states.
    """
    if any(name in moving for name in targets):
        return Decision(False, False if paused else None)
    inactive = {name: target is not TargetState.STARTED for name, target in targets.items() if name not in moved}
    if not inactive:
        return Decision(True, None if paused else True) if targets else Decision(None)
    if all(each == paused for each in inactive.values()):
        return Decision(agreed=paused)
    if agreed is None:
        wanted = paused if flag_is_newer else any(inactive.values())
    elif paused != agreed:
        wanted = paused
    else:
        wanted = not agreed
    state = TargetState.PAUSED if wanted else TargetState.STARTED
    follow = {name: state for name, is_inactive in inactive.items() if is_inactive != wanted}
    return Decision(agreed, None if paused == wanted else wanted, follow)


@dataclass(frozen=True, slots=True)
class Toggle:
    """The last change of a DAG's flag in Airflow's audit log; ``at`` in milliseconds since the epoch."""

    paused: bool
    at: int


def is_newer(
    toggle: Toggle | None, paused: bool, state: ClusterState, connectors: Iterable[str], served_since: int | None
) -> bool:
    """Return whether a DAG's flag was set after the target states of these connectors.

    False if the audit log does not explain the flag: it may be the initial flag of a new DAG. False also for a toggle from
    before ``served_since``, in milliseconds since the epoch, when Airflow began to serve this Connect cluster: it was meant for
    connectors of these names of another group, Kafka cluster, or config topic.
    """
    if toggle is None or toggle.paused != paused or served_since is None or toggle.at < served_since:
        return False
    set_at = [entry.target_state_at for name in connectors if (entry := state.entry(name)) is not None]
    return toggle.at > max(set_at, default=0)


def targets_by_dag(state: ClusterState, taken: Collection[str] = ()) -> dict[str, dict[str, TargetState]]:
    """Return the target states of each DAG's connectors, without connectors whose names are too long for a DAG id.

    ``taken`` are the generated DAGs whose ids other bundles' DAGs have: those DAGs do not run the connectors of that name.
    """
    found: dict[str, dict[str, TargetState]] = {}
    for name in state.names():
        entry = state.entry(name)
        if entry is not None and entry.config is not None:
            with contextlib.suppress(ConfigError):
                dag = dag_of(name, entry.config)
                if not (dag in taken and is_generated(entry.config)):
                    found.setdefault(dag, {})[name] = entry.target_state
    return found


def moved_away(state: ClusterState) -> set[str]:
    """Return the connectors that have moved to another cluster, or rest here while they move and shall not run in the end."""
    entries = (state.entry(name) for name in state.names())
    return {each.name for each in entries if each and (moved_to(each) or (rests_while_it_moves(each) and not is_moving(each)))}


def moving(state: ClusterState) -> set[str]:
    """Return the connectors that are stopped here while they move, and shall run in the end."""
    entries = (state.entry(name) for name in state.names())
    return {each.name for each in entries if each and is_moving(each)}


@dataclass(frozen=True, slots=True)
class ConnectorTasks:
    """The connectors of a DAG whose failed Airflow tasks must be cleared, because a restart was requested.

    Attributes:
        by_config: the id of the task that sets a connector's config, by connector; None if none does.
        is_only: whether the DAG has no other connector.
    """

    by_config: Mapping[str, str | None]
    is_only: bool

    def include(self, task_id: str, map_index: int, rendered: Mapping[str, object] | None) -> bool:
        """Return whether an Airflow task runs one of the connectors.

        ``rendered`` are the values of its templated fields; None if it has ended before Airflow had rendered them.
        """
        if rendered is None:
            return self.is_only or task_id in self.by_config.values()
        config = rendered.get("config")
        named = rendered.get("connector") or (config.get(NAME) if isinstance(config, Mapping) else None)
        # A config in a file has the name, which Airflow does not know.
        return named in self.by_config if named else map_index < 0 and task_id in self.by_config.values()


def tasks_to_clear(
    requests: Iterable[RestartRequest],
    dags: Mapping[str, Mapping[str, TargetState]],
    flags: Mapping[str, PausedFlag],
    state: ClusterState,
) -> dict[str, ConnectorTasks]:
    """Return what must be cleared in the runs of DAGs, by DAG. Paused DAGs are left out."""
    asked = {request.connector for request in requests}
    return {
        dag: ConnectorTasks({name: _config_task(state, name) for name in sorted(asked & names.keys())}, len(names) == 1)
        for dag, names in sorted(dags.items())
        if asked & names.keys() and not flags[dag].paused
    }


def _config_task(state: ClusterState, name: str) -> str | None:
    entry = state.entry(name)
    return ((entry.config if entry is not None else None) or {}).get(CONFIG_TASK)


def generated(state: ClusterState) -> dict[str, Mapping[str, str]]:
    """Return the config that each generated DAG depends on, by DAG. When it changes, the bundle must be parsed again.

    A shared application's DAG has no config here: the bundle's own refresh finds changed Spark settings.
    """
    found: dict[str, Mapping[str, str]] = {}
    for name in state.names():
        entry = state.entry(name)
        config = (entry.config if entry is not None else None) or {}
        with contextlib.suppress(ConfigError):
            if entry is not None and entry.application:
                found[application_dag_id(entry.application)] = {}
            if is_generated(config):
                found[dag_id(name)] = dag_config(config)
    return found


def changed(before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the DAGs that appear, change or disappear."""
    return {dag for dag in before.keys() | now.keys() if before.get(dag) != now.get(dag)}
