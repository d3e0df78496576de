"""Names that Airflow's versions keep in different modules. The provider and the operators import them from here only.

Names that all versions from 3.0 on have in the same place are imported from there. A name is looked up when it is imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the places in the newest version
    from airflow.sdk import BaseHook as BaseHook
    from airflow.sdk import CronDataIntervalTimetable as CronDataIntervalTimetable
    from airflow.sdk.configuration import conf as conf
    from airflow.sdk.exceptions import AirflowException as AirflowException
    from airflow.sdk.exceptions import AirflowFailException as AirflowFailException
    from airflow.sdk.exceptions import AirflowNotFoundException as AirflowNotFoundException
    from airflow.sdk.exceptions import AirflowRescheduleException as AirflowRescheduleException
    from airflow.sdk.exceptions import TaskDeferred as TaskDeferred
    from airflow.sdk.observability.stats import Stats as Stats

_EXCEPTIONS = ("airflow.sdk.exceptions", "airflow.exceptions")
_PLACES = {
    "AirflowException": _EXCEPTIONS,
    "AirflowFailException": _EXCEPTIONS,
    "AirflowNotFoundException": _EXCEPTIONS,
    "AirflowRescheduleException": _EXCEPTIONS,
    "BaseHook": ("airflow.sdk", "airflow.hooks.base"),
    "CronDataIntervalTimetable": ("airflow.sdk", "airflow.timetables.interval"),
    "Stats": ("airflow.sdk.observability.stats", "airflow.stats"),
    "TaskDeferred": _EXCEPTIONS,
    "conf": ("airflow.sdk.configuration", "airflow.configuration"),
}
"""The modules that may have a name, the newest version's first."""


def backoff(factor: float) -> float:
    """Return a factor as ``retry_exponential_backoff``, which before Airflow 3.2 was a flag that stood for a factor of 2."""
    from airflow.sdk import BaseOperator

    return bool(factor) if isinstance(BaseOperator.retry_exponential_backoff, bool) else factor


def __getattr__(name: str) -> Any:
    for place in _PLACES.get(name, ()):
        try:
            return getattr(importlib.import_module(place), name)
        except (AttributeError, ModuleNotFoundError):
            continue
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
