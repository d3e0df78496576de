"""Imports the operators in Airflow's scheduler, so that tasks start a third of a second sooner.

LocalExecutor forks the processes of tasks from the scheduler, and what is imported there is neither imported nor kept in memory
again by each task. Other executors start tasks elsewhere. An Airflow listener: see "Listeners" in Airflow's documentation.
"""

from __future__ import annotations

import importlib
import logging
import sys
from typing import Any

from airflow.configuration import conf
from airflow.listeners import hookimpl

log = logging.getLogger(__name__)

_OPERATORS = "sluiceway.operators.connector"


@hookimpl
def on_starting(component: Any) -> None:
    """Implement Airflow's hook, which is called in each component and task."""
    # A component does not know its type yet.
    if sys.argv[1:2] != ["scheduler"] or "LocalExecutor" not in conf.get("core", "executor", fallback=""):
        return
    try:
        importlib.import_module(_OPERATORS)
    except Exception as error:  # noqa: BLE001 (Airflow must start even if this cannot be imported: the task will say why)
        log.warning("The operators could not be imported ahead of tasks: %s", error)
