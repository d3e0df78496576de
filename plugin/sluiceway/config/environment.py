"""Chooses the environment variables of processes that run connectors' code, and those that configs may refer to. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

HANDED_OVER = "SLUICEWAY_AIRFLOW_SECRETS"
"""Environment variable with values of Airflow's connections and variables, which an Airflow task passes to its driver.

A JSON object of values by ``provider:path:key``, as text or in Base64. The word SECRETS in its name makes Spark and Airflow hide
it in their logs.
"""

# Airflow's settings (AIRFLOW__API_AUTH__JWT_SECRET), connections, variables, and the first user of its images.
_OF_AIRFLOW = re.compile(r"AIRFLOW__.*|AIRFLOW_(?:CONN|VAR)_.*|_AIRFLOW_.*", re.IGNORECASE | re.DOTALL)


def for_connectors(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a driver: all but Airflow's settings, connections, and variables."""
    return {name: value for name, value in environment.items() if not _OF_AIRFLOW.fullmatch(name)}


def for_configs(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that configs may refer to: those of a driver without what the task handed over."""
    return {name: value for name, value in for_connectors(environment).items() if name != HANDED_OVER}
