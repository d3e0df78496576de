"""Chooses Spark settings of a driver on a cluster, for settings that nobody has given. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

INSTANCES = "spark.executor.instances"
CORES = "spark.executor.cores"
CORES_MAX = "spark.cores.max"
YARN_JARS, YARN_ARCHIVE = "spark.yarn.jars", "spark.yarn.archive"
_TASK_CPUS = "spark.task.cpus"

# Spark ends an application after max(3, 2 * executors) lost executors in its whole life, which is right for a job of minutes. A
# connector runs for months, and loses executors to maintenance and preemption. So only losses of the last ten minutes count, and
# more of them are allowed than a restart of every host, one after another, can cause. Executors that fail at their start still
# end the application: YARN replaces each within seconds, so 40 failures take a few minutes.
_FAILURE_WINDOW = "10m"
_MIN_FAILURES, _FAILURES_PER_EXECUTOR = 40, 4
_MAX_FAILURES = "spark.executor.maxNumFailures"
_FAILURES_INTERVAL = "spark.executor.failuresValidityInterval"
_AM_FAILURES_INTERVAL = "spark.yarn.am.attemptFailuresValidityInterval"

# Spark 3's names. Spark 4 reads them too, but prefers the new ones.
_FORMER_NAMES = {
    _MAX_FAILURES: "spark.yarn.max.executor.failures",
    _FAILURES_INTERVAL: "spark.yarn.executor.failuresValidityInterval",
}


def cluster_conf(master: str, tasks: int | None, given: Mapping[str, str]) -> dict[str, str]:
    """Return settings that are missing in ``given``: enough executors for the tasks, and patience with lost executors.

    Args:
        master: the Spark master. Local masters and unknown ones get no settings.
        tasks: the number of tasks; None for a shared application, whose connectors are not known at its start.
        given: all settings that connector, operator, connection and administrator have given.
    """
    if master.startswith("spark://"):
        chosen = {} if tasks is None else _standalone_size(tasks, given)
    elif is_yarn(master) or master.startswith("k8s://"):
        chosen = {} if tasks is None else _executors(tasks, given)
        executors = _count({**chosen, **given}, INSTANCES, 1)
        chosen |= {
            _MAX_FAILURES: str(max(_MIN_FAILURES, _FAILURES_PER_EXECUTOR * executors)),
            _FAILURES_INTERVAL: _FAILURE_WINDOW,
        }
        if is_yarn(master):
            chosen[_AM_FAILURES_INTERVAL] = _FAILURE_WINDOW
    else:
        chosen = {}
    return {key: value for key, value in chosen.items() if key not in given and _FORMER_NAMES.get(key) not in given}


def is_yarn(master: str) -> bool:
    """Return whether the master is YARN, also in Airflow's form ``yarn://...``."""
    return master.startswith("yarn")


def uploads_spark_jars(master: str, given: Mapping[str, str]) -> bool:
    """Return whether each submission uploads Spark's jars to the cluster's file system."""
    return is_yarn(master) and not (given.get(YARN_JARS) or given.get(YARN_ARCHIVE))


def _standalone_size(tasks: int, given: Mapping[str, str]) -> dict[str, str]:
    """Limit the application's cores, because without a limit the first connector takes those of the whole cluster."""
    cores = tasks * _count(given, _TASK_CPUS, 1)
    per_executor = _count(given, CORES, 1)
    return {CORES_MAX: str(_divided(cores, per_executor) * per_executor)}


def _executors(tasks: int, given: Mapping[str, str]) -> dict[str, str]:
    """Return executor count and cores, of which the given one determines the other. The default is an executor for each task."""
    cpus = _count(given, _TASK_CPUS, 1)
    if INSTANCES in given and CORES not in given:
        return {CORES: str(_divided(tasks, _count(given, INSTANCES, 1)) * cpus)}
    cores = _count(given, CORES, cpus)
    return {CORES: str(cores), INSTANCES: str(_divided(tasks, max(cores // cpus, 1)))}


def _count(settings: Mapping[str, str], key: str, default: int) -> int:
    """Return a setting that is a positive number; the default for anything else, which Spark itself rejects."""
    text = str(settings.get(key, "")).strip()
    return max(int(text), 1) if text.isdecimal() else default


def _divided(amount: int, by: int) -> int:
    """Divide and round up."""
    return -(-amount // by)
