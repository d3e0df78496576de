"""Chooses options with which the JVMs of drivers and executors start sooner and use less processor time. No I/O.

Records do not pass through these JVMs: tasks are Python processes that talk to Kafka themselves. So the optimizing compiler and
a parallel garbage collector would cost more than they could ever save.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

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


def _chooses_own(options: str) -> bool:
    """Return whether Java options choose a garbage collector or a compiler."""
    return any(part in options for part in ("GC", "-XX:TieredStopAtLevel", "-XX:+TieredCompilation", "-XX:-TieredCompilation"))
