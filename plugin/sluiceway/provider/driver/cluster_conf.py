"""Chooses Spark settings of a driver on a cluster, for settings that nobody has given. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sluiceway.java.numbers import whole_number
from sluiceway.spark.elastic import CLUSTERS, INITIAL, INSTANCES, elastic_conf, is_elastic, is_standalone
from sluiceway.spark.jvm_options import light_jvms

CORES = "spark.executor.cores"
CORES_MAX = "spark.cores.max"
YARN_JARS, YARN_ARCHIVE = "spark.yarn.jars", "spark.yarn.archive"
_TASK_CPUS = "spark.task.cpus"
_MINIMUM, _MAXIMUM = "spark.dynamicAllocation.minExecutors", "spark.dynamicAllocation.maxExecutors"

# Spark ends an application after max(3, 2 * executors) lost executors in its whole life, which is right for a job of minutes. A
# connector runs for months, and loses executors to maintenance and preemption. So only losses of the last ten minutes count, and
# more of them are allowed than a restart of every host, one after another, can cause. Executors that fail at their start still
# end the application: YARN replaces each within seconds, so 40 failures take a few minutes.
_FAILURE_WINDOW = "10m"
_MIN_FAILURES, _FAILURES_PER_EXECUTOR = 40, 4
_MAX_FAILURES = "spark.executor.maxNumFailures"
_FAILURES_INTERVAL = "spark.executor.failuresValidityInterval"
_AM_FAILURES_INTERVAL = "spark.yarn.am.attemptFailuresValidityInterval"

_LEAST_OVERHEAD_MB = 384
_SIZE = re.compile(r"(\d+)([kmgt]?)b?")
_UNIT_MB = {"": 1, "k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}

# Spark 3's names. Spark 4 reads them too, but prefers the new ones.
_FORMER_NAMES = {
    _MAX_FAILURES: "spark.yarn.max.executor.failures",
    _FAILURES_INTERVAL: "spark.yarn.executor.failuresValidityInterval",
}


def cluster_conf(
    master: str,
    tasks: int | None,
    given: Mapping[str, str],
    *,
    client_mode: bool = False,
    data_frames: bool = False,
    java_memory: int = 0,
) -> dict[str, str]:
    """Return settings that are missing in ``given``: executors that follow the tasks, patience with lost executors, light JVMs.

    Args:
        master: the Spark master. Local masters and unknown ones get no settings.
        tasks: the number of tasks; None for a shared application, whose connectors are not known at its start.
        given: all settings that connector, operator, connection and administrator have given.
        client_mode: whether the driver runs on this machine.
        java_memory: the megabytes of the Java process beside each task; 0 without Java plugins.
        data_frames: whether records pass through Spark's JVMs, which then need their optimizing compiler.
    """
    if not master.startswith(CLUSTERS):
        return {}
    chosen = {} if tasks is None else _size(master, tasks, given)
    chosen |= elastic_conf(master, {**chosen, **given})
    if not is_standalone(master):
        settings = {**chosen, **given}
        executors = _count(settings, INSTANCES, _count(settings, INITIAL, 1))
        chosen |= {
            _MAX_FAILURES: str(max(_MIN_FAILURES, _FAILURES_PER_EXECUTOR * executors)),
            _FAILURES_INTERVAL: _FAILURE_WINDOW,
        }
        chosen |= _overheads(master, settings, java_memory, client_mode=client_mode)
    if not data_frames:
        chosen |= light_jvms(given, yarn_client=client_mode and is_yarn(master))
    if is_yarn(master):
        chosen[_AM_FAILURES_INTERVAL] = _FAILURE_WINDOW
    return {key: value for key, value in chosen.items() if key not in given and _FORMER_NAMES.get(key) not in given}


def is_yarn(master: str) -> bool:
    """Return whether the master is YARN, also in Airflow's form ``yarn://...``."""
    return master.startswith("yarn")


def uploads_spark_jars(master: str, given: Mapping[str, str]) -> bool:
    """Return whether each submission uploads Spark's jars to the cluster's file system."""
    return is_yarn(master) and not (given.get(YARN_JARS) or given.get(YARN_ARCHIVE))


def _size(master: str, tasks: int, given: Mapping[str, str]) -> dict[str, str]:
    """Return executors at the start and cores, of which the given one determines the other. The default is one for each task.

    If dynamic allocation is off, this is the application's size until its end.
    """
    cpus = _count(given, _TASK_CPUS, 1)
    if INSTANCES in given and CORES not in given and not is_standalone(master):
        return {CORES: str(_divided(tasks, _count(given, INSTANCES, 1)) * cpus)}
    cores = _count(given, CORES, cpus)
    executors = _divided(tasks, max(cores // cpus, 1))
    if is_elastic(given):
        most = max(_count(given, _MAXIMUM, executors), _count(given, _MINIMUM, 1))
        return {CORES: str(cores), INITIAL: str(min(max(executors, _count(given, _MINIMUM, 1)), most))}
    if is_standalone(master):  # without a limit the first connector takes the cores of the whole cluster
        return {CORES_MAX: str(executors * cores)}
    return {CORES: str(cores), INSTANCES: str(executors)}


def _overheads(master: str, settings: Mapping[str, str], java_memory: int, *, client_mode: bool) -> dict[str, str]:
    """Return the memory of containers beside Spark's JVMs, if Java processes of plugins need more than Spark's default."""
    if not java_memory:
        return {}
    slots = max(_count(settings, CORES, 1) // _count(settings, _TASK_CPUS, 1), 1)
    chosen = _overhead("executor", master, settings, slots * java_memory)
    return chosen if client_mode else chosen | _overhead("driver", master, settings, java_memory)


def _overhead(part: str, master: str, settings: Mapping[str, str], more: int) -> dict[str, str]:
    """Return Spark's default of ``memoryOverhead`` plus some megabytes, unless a factor sets it."""
    factors = (f"spark.{part}.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
    memory = _megabytes(settings.get(f"spark.{part}.memory", "1g"))
    if memory is None or any(key in settings for key in factors):
        return {}
    default = max(int(memory * (0.1 if is_yarn(master) else 0.4)), _LEAST_OVERHEAD_MB)
    return {f"spark.{part}.memoryOverhead": f"{default + more}m"}


def _megabytes(text: str) -> int | None:
    """Return a size in Spark's notation in megabytes, its default unit; None for one that it rejects."""
    found = _SIZE.fullmatch(text.strip().lower())
    return None if found is None else int(int(found[1]) * _UNIT_MB[found[2]])


def _count(settings: Mapping[str, str], key: str, default: int) -> int:
    """Return a setting that is a positive number; the default for anything else, which Spark itself rejects."""
    number = whole_number(str(settings.get(key, "")).strip())
    return default if number is None else max(number, 1)


def _divided(amount: int, by: int) -> int:
    """Divide and round up."""
    return -(-amount // by)
