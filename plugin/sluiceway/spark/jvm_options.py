"""Chooses options with which the JVMs of drivers and executors start sooner and use less processor time. No I/O.

Records do not pass through these JVMs: tasks are Python processes that talk to Kafka themselves. So the optimizing compiler and
a parallel garbage collector would cost more than they could ever save.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_LOCAL_DIRS, _LOCAL_DIR_CONF = "SPARK_LOCAL_DIRS", "spark.local.dir"
_SUBMIT, _TEMPORARY = "SPARK_SUBMIT_OPTS", "-Djava.io.tmpdir="
_ROLES = ("driver", "executor")
_YARN_AM = "spark.yarn.am.extraJavaOptions"


def light_jvms(given: Mapping[str, str], *, yarn_client: bool) -> dict[str, str]:
    """Return default Java options of driver and executors on a cluster, and of the application master of YARN's client mode.

    Options that ``given`` has stay: a JVM does not start with two garbage collectors.
    """
    defaults = {
        f"spark.{role}.defaultJavaOptions": LIGHT
        for role in _ROLES
        if not _chooses_own(given.get(f"spark.{role}.extraJavaOptions", ""))
    }
    if yarn_client:
        defaults[_YARN_AM] = LIGHT
    return {key: value for key, value in defaults.items() if key not in given}


def folder_variables(folder: Path, environment: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which a driver's JVM has its temporary files in a folder, also those of Spark's blocks.

    A JVM that is killed leaves them behind. Folders that ``environment`` or the Spark settings ``conf`` choose stay.
    """
    options = environment.get(_SUBMIT, "")
    chosen = {_SUBMIT: f'{options} "{_TEMPORARY}{folder}"'.lstrip(), _LOCAL_DIRS: str(folder)}
    given = {_SUBMIT: _TEMPORARY in options, _LOCAL_DIRS: _LOCAL_DIRS in environment or _LOCAL_DIR_CONF in conf}
    return {name: value for name, value in chosen.items() if not given[name]}


def _chooses_own(options: str) -> bool:
    """Return whether Java options choose a garbage collector or a compiler."""
    return any(part in options for part in ("GC", "-XX:TieredStopAtLevel", "-XX:+TieredCompilation", "-XX:-TieredCompilation"))
