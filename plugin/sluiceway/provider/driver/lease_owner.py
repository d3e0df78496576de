"""Finds out whether another Airflow task holds a connector's lease. Runs in the Airflow task, which asks Airflow."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from sluiceway.provider.progress.cluster_view import DriverSeen
from sluiceway.storage.model import LeaseOwner

log = logging.getLogger(__name__)

_ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")


def owner_of(context: Mapping[str, Any] | Any) -> LeaseOwner:
    """Return the task of a context as the owner of leases. Each try of the task is the same owner."""
    ti = context["ti"]
    return LeaseOwner(ti.dag_id, ti.run_id, ti.task_id, -1 if ti.map_index is None else ti.map_index)


def rival(context: Mapping[str, Any] | Any, driver: DriverSeen) -> LeaseOwner | None:
    """Return the other task whose driver lives; None if this task may start a driver.

    Heartbeats stay in the topic for some seconds after a driver was killed. So a driver of this task, or of one that has ended
    according to Airflow, counts as dead: nothing waits for its heartbeats to grow old.
    """
    owner = driver.owner
    if not driver.lives or owner is None or owner == owner_of(context) or _has_ended(context["ti"], owner):
        return None
    return owner


def _has_ended(ti: Any, owner: LeaseOwner) -> bool:
    """Return whether Airflow knows the task, and that it has ended. False for a task of another Airflow."""
    mapped = None if owner.map_index < 0 else owner.map_index
    try:
        found = ti.get_task_states(dag_id=owner.dag, run_ids=[owner.run], task_ids=[owner.task], map_index=mapped)
    except Exception as error:  # noqa: BLE001 (Airflow does not answer, or has no such request; heartbeats decide alone)
        log.warning("Cannot read whether %s has ended: %s", owner, error)
        return False
    states = [state for run in found.values() for state in run.values()]
    return bool(states) and all(str(getattr(state, "value", state)) in _ENDED for state in states)
