"""Airflow triggers on connectors. They run in the triggerer, and share one set of Kafka clients for each Connect cluster.

Airflow stores the paths ``sluiceway.provider.triggers.ConditionTrigger`` and ``.LagTrigger`` with each deferred task and each
asset watcher, so both names must stay importable from here.
"""

from __future__ import annotations

from sluiceway.provider.triggers.condition_trigger import ConditionTrigger
from sluiceway.provider.triggers.lag_trigger import LagTrigger

__all__ = ["ConditionTrigger", "LagTrigger"]
