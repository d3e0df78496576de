"""Chooses the Spark settings with which a cluster's executors follow the number of tasks and drain before they leave. No I/O.

Spark's dynamic allocation counts waiting and running tasks, which are the connector's tasks: it requests executors for tasks that
wait for a slot, and returns those that have run no task for ``spark.dynamicAllocation.executorIdleTimeout``. The administrator
limits it with ``spark.dynamicAllocation.maxExecutors`` or ``spark.cores.max``.
"""

from __future__ import annotations

from collections.abc import Mapping

CLUSTERS = ("spark://", "yarn", "k8s://")
"""Prefixes of the masters of cluster managers."""

INSTANCES = "spark.executor.instances"
INITIAL = "spark.dynamicAllocation.initialExecutors"
DYNAMIC = "spark.dynamicAllocation.enabled"
_SHUFFLE_TRACKING = "spark.dynamicAllocation.shuffleTracking.enabled"
_DECOMMISSION = "spark.decommission.enabled"
_FORCE_KILL = "spark.executor.decommission.forceKillTimeout"
_CORES, _TASK_CPUS = "spark.executor.cores", "spark.task.cpus"

# A decommissioned executor ends with its last task, and the driver kills a task that does not drain within
# task.shutdown.graceful.timeout.ms. This timeout is for an executor that hangs nevertheless.
_FORCE_KILL_AFTER = "2m"


def is_elastic(given: Mapping[str, str]) -> bool:
    """Return False if ``given`` fixes the number of executors, with their number or by turning dynamic allocation off."""
    return _is_true(given, DYNAMIC) if DYNAMIC in given else INSTANCES not in given


def elastic_conf(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return settings that are missing in ``given``: decommissioning and, unless their number is fixed, allocation of executors.

    Local masters get no settings. ``spark.dynamicAllocation.initialExecutors`` is left to the submission, which knows
    ``tasks.max``. Without it, Spark starts with one executor for the first task and doubles their number each second.
    """
    if not master.startswith(CLUSTERS):
        return {}
    chosen = {_DECOMMISSION: "true", _FORCE_KILL: _FORCE_KILL_AFTER}
    if is_elastic(given):
        chosen[DYNAMIC] = "true"
        if _is_true({**chosen, **given}, _DECOMMISSION):
            chosen[_SHUFFLE_TRACKING] = "false"  # connectors have no shuffles; Spark warns if it must track them all the same
        if is_standalone(master):
            # Otherwise an executor takes all cores of its worker, and Spark still counts on one core.
            chosen[_CORES] = given.get(_TASK_CPUS, "1")
    return {key: value for key, value in chosen.items() if key not in given}


def is_standalone(master: str) -> bool:
    """Return whether the master is that of a Spark standalone cluster."""
    return master.startswith("spark://")


def _is_true(settings: Mapping[str, str], key: str) -> bool:
    return settings.get(key, "").strip().lower() == "true"
