"""How DAGs' paused flags and connectors' target states follow each other. Pure.

A DAG is the unit of pausing: mostly it runs one connector, a hand-written one may run several. What was last agreed
tells who moved: if the DAG's flag differs from it, a person toggled the DAG, and the connectors follow; if a connector
differs from it, its target state was changed, and the DAG follows. Nothing depends on having seen every step between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sluiceway.config.masking import masked
from sluiceway.errors import ConfigError
from sluiceway.provider.dag_bundle.dag_ids import dag_id
from sluiceway.provider.dag_bundle.dag_keys import dag_of, is_generated
from sluiceway.storage.model import ClusterState, RestartRequest, TargetState


class PausedFlag(Protocol):
    """What counts here of an active DAG."""

    @property
    def paused(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about one DAG. ``agreed`` is to be remembered as what both sides said last, None if they never did."""

    agreed: bool | None
    set_paused: bool | None = None
    put_target: Mapping[str, TargetState] = field(default_factory=dict)

    @property
    def paused_then(self) -> bool | None:
        """Whether the DAG and its connectors are paused once this has been done; None where there is nothing to do."""
        if self.set_paused is not None:
            return self.set_paused
        return next((target is not TargetState.STARTED for target in self.put_target.values()), None)


def decide(agreed: bool | None, paused: bool, targets: Mapping[str, TargetState], *, flag_is_newer: bool = False) -> Decision:
    """Return what makes a DAG's flag and its connectors' target states equal.

    ``agreed`` None (at start-up, and for a DAG or connector that has just appeared): the topic wins, and of several
    connectors one that is to rest; unless the flag is known to have been set after all that the topic says.
    """
    resting = {name: target is not TargetState.STARTED for name, target in targets.items()}
    if not resting:
        return Decision(None)
    if all(rests == paused for rests in resting.values()):
        return Decision(agreed=paused)
    if agreed is None:
        wanted = paused if flag_is_newer else any(resting.values())
    elif paused != agreed:
        wanted = paused
    else:
        wanted = not agreed
    state = TargetState.PAUSED if wanted else TargetState.STARTED
    follow = {name: state for name, rests in resting.items() if rests != wanted}
    return Decision(agreed, None if paused == wanted else wanted, follow)


@dataclass(frozen=True, slots=True)
class Toggle:
    """What Airflow's audit log last says of a DAG's flag, and when (milliseconds since the epoch)."""

    paused: bool
    at: int


def is_newer(toggle: Toggle | None, paused: bool, state: ClusterState, connectors: Iterable[str]) -> bool:
    """Whether a DAG's flag, as it is now, was set after the target states of these connectors.

    A flag that the audit log does not explain is not: it may be that of a DAG which has just appeared.
    """
    if toggle is None or toggle.paused != paused:
        return False
    said = [entry.target_state_at for name in connectors if (entry := state.entry(name)) is not None]
    return toggle.at > max(said, default=0)


def targets_by_dag(state: ClusterState) -> dict[str, dict[str, TargetState]]:
    """Return each DAG's connectors with their target states; a connector whose name is too long for a DAG has none."""
    found: dict[str, dict[str, TargetState]] = {}
    for name in state.names():
        entry = state.entry(name)
        if entry is not None and entry.config is not None:
            with contextlib.suppress(ConfigError):
                found.setdefault(dag_of(name, entry.config), {})[name] = entry.target_state
    return found


def dags_to_run_again(
    requests: Iterable[RestartRequest], dags: Mapping[str, Mapping[str, TargetState]], flags: Mapping[str, PausedFlag]
) -> list[str]:
    """Return the DAGs whose run is to be started again, should it have failed, as a restart of their connector was asked for.

    Not one that is paused, and not one that runs several connectors: the others did not ask.
    """
    asked = {request.connector for request in requests}
    return sorted(dag for dag, names in dags.items() if len(names) == 1 and asked >= names.keys() and not flags[dag].paused)


def generated(state: ClusterState) -> dict[str, Mapping[str, str]]:
    """Return what the generated DAGs are made from, by DAG: when this changes, the bundle must be looked at again."""
    found: dict[str, Mapping[str, str]] = {}
    for name in state.names():
        entry = state.entry(name)
        if entry is not None and entry.config is not None and is_generated(entry.config):
            with contextlib.suppress(ConfigError):
                found[dag_id(name)] = masked(entry.config)
    return found


def changed(before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the DAGs that have to appear, change or go."""
    return {dag for dag in before.keys() | now.keys() if before.get(dag) != now.get(dag)}
