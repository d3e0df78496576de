"""Chooses the Spark settings with which a cluster's executors follow the number of tasks and drain before they leave. No I/O.

Spark's dynamic allocation counts waiting and running tasks, which are the connector's tasks: it requests executors for tasks that
wait for a slot, and returns those that have run no task for ``spark.dynamicAllocation.executorIdleTimeout``. The administrator
limits it with ``spark.dynamicAllocation.maxExecutors`` or ``spark.cores.max``.
"""

from __future__ import annotations

from collections.abc import Mapping

INSTANCES = "spark.executor.instances"
DYNAMIC = "spark.dynamicAllocation.enabled"
DECOMMISSION = "spark.decommission.enabled"
_EXECUTOR_CORES, _TASK_CPUS = "spark.executor.cores", "spark.task.cpus"
_INITIAL, _MINIMUM = "spark.dynamicAllocation.initialExecutors", "spark.dynamicAllocation.minExecutors"
_SHUFFLE_TRACKING = "spark.dynamicAllocation.shuffleTracking.enabled"
_FORCE_KILL = "spark.executor.decommission.forceKillTimeout"

_CLUSTERS = ("spark://", "yarn", "k8s://")

# An executor that is decommissioned ends with its last task, and the driver kills a task that does not drain within
# task.shutdown.graceful.timeout.ms. This timeout is for an executor that hangs nevertheless.
_FORCE_KILL_AFTER = "2m"


def elastic_conf(master: str, given: Mapping[str, str], executors: int | None = None) -> dict[str, str]:
    """Return settings that are missing in ``given``: dynamic allocation and decommissioning of executors.

    The number of executors is fixed if ``given`` has ``spark.executor.instances`` or ``spark.dynamicAllocation.enabled=false``.

    Args:
        master: the Spark master. Local masters get no settings.
        given: the settings that are already chosen.
        executors: how many executors to request at the start. None leaves that to Spark, which then requests them for the
            first tasks, one after another at first.
    """
    if not master.startswith(_CLUSTERS):
        return {}
    chosen = {DECOMMISSION: "true", _FORCE_KILL: _FORCE_KILL_AFTER}
    if INSTANCES not in given or DYNAMIC in given:
        chosen[DYNAMIC] = "true"
    settings = {**chosen, **given}
    if _is_true(settings, DYNAMIC):
        chosen.update(_allocation(master, settings, executors))
    return {key: value for key, value in chosen.items() if key not in given}


def _allocation(master: str, settings: Mapping[str, str], executors: int | None) -> dict[str, str]:
    chosen = {}
    if _is_true(settings, DECOMMISSION):
        chosen[_SHUFFLE_TRACKING] = "false"  # there are no shuffles, and Spark warns of tracking them besides decommissioning
    if master.startswith("spark://"):
        # Otherwise an executor takes all cores of its worker, and dynamic allocation still counts it as one slot.
        chosen[_EXECUTOR_CORES] = settings.get(_TASK_CPUS, "1")
    if executors is not None and _MINIMUM not in settings:
        chosen[_INITIAL] = str(executors)
    return chosen


def _is_true(settings: Mapping[str, str], key: str) -> bool:
    return settings.get(key, "").strip().lower() == "true"
