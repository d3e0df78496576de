"""Chooses the environment variables of processes that run connectors' code, and those that configs may refer to. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

HANDED_OVER = "SLUICEWAY_AIRFLOW_SECRETS"
"""Environment variable with values of Airflow's connections and variables, which an Airflow task passes to its driver.

A JSON object of values by ``provider:path:key``, as text or in Base64. The word SECRETS in its name makes Spark and Airflow hide
it in their logs.
"""

ISOLATED = "SLUICEWAY_ISOLATED"
"""Environment variable of a process that has no access to Airflow, although it runs on a machine of Airflow."""

STANDARD_INPUT = "SLUICEWAY_STANDARD_INPUT"
"""Environment variable of tasks in standalone mode: a named pipe with the standard input of the process that was started."""

# What a program needs to run as it does elsewhere. Proxies are missing, because their URLs may hold passwords.
_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_.*|TZ|LD_LIBRARY_PATH|PYTHON.*|SSL_CERT_(?:FILE|DIR)|KRB5_CONFIG"
    r"|(?:JAVA|KAFKA|SPARK|HADOOP|SLUICEWAY|XDG_CACHE)_HOME|(?:SPARK|HADOOP)_CONF_DIR"
)
# Airflow's settings (AIRFLOW__API_AUTH__JWT_SECRET), connections, variables, and the first user of its images.
_OF_AIRFLOW = re.compile(r"AIRFLOW__.*|AIRFLOW_(?:CONN|VAR)_.*|_AIRFLOW_.*", re.IGNORECASE | re.DOTALL)


def for_connectors(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a driver: all but Airflow's settings, connections, and variables."""
    return {name: value for name, value in environment.items() if not _OF_AIRFLOW.fullmatch(name)}


def for_configs(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that configs may refer to: those of a driver without what the task handed over."""
    return {name: value for name, value in for_connectors(environment).items() if name != HANDED_OVER}


def isolated(environment: Mapping[str, str], allowed: Callable[[str], bool]) -> dict[str, str]:
    """Return the variables of a process that runs connectors' code beside a server with secrets of its own.

    They are those that every program needs, and those that configs may refer to by the worker's allow lists.
    """
    found = for_configs(environment).items()
    return {**{name: value for name, value in found if _NEEDED.fullmatch(name) or allowed(name)}, ISOLATED: "1"}
