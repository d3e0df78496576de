"""Decides by Airflow's executor whether a task waits for its driver in the triggerer. Reads Airflow's configuration only."""

from __future__ import annotations

from sluiceway.provider.compat import conf

IN_CLIENT_MODE = (
    "Not deferred: Spark runs in client mode, where the driver is the child of this task, keeps its slot, and ends with its "
    "worker. Set deploy-mode=cluster in the Spark connection, or sluiceway.application in the connector's config"
)
"""Why a deferrable task waits in its slot."""

_ON_THE_SCHEDULERS_MACHINE = ("LocalExecutor", "SequentialExecutor")


def defers_by_default(executor: str | None) -> bool:
    """Return whether a task that can wait in the triggerer does, unless its DAG says otherwise.

    It does by Airflow's setting, and if its worker may be on another machine than the scheduler, as with CeleryExecutor: such
    workers are replaced while connectors run, and limit how long a task may last.

    Args:
        executor: the task's ``executor``: the name, the alias or the class of one that ``[core] executor`` names; None for the
            first of them.
    """
    return conf.getboolean("operators", "default_deferrable", fallback=False) or _runs_elsewhere(executor)


def _runs_elsewhere(executor: str | None) -> bool:
    configured = [each.strip() for each in str(conf.get("core", "executor", fallback="")).split(",")]
    chosen = next((each for each in configured if executor in (None, each, *each.split(":"))), executor or "")
    return chosen.rpartition(":")[2].rpartition(".")[2] not in ("", *_ON_THE_SCHEDULERS_MACHINE)
