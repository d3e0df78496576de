"""Airflow triggers on connectors. They run in the triggerer, and share one set of Kafka clients for each Connect cluster.

Airflow stores the paths ``sluiceway.provider.triggers.ConditionTrigger``, ``.LagTrigger`` and ``.ChangeTrigger`` with each
deferred task and each asset watcher, so these names must stay importable from here.
"""

from __future__ import annotations

from sluiceway.provider.triggers.change_trigger import ChangeTrigger
from sluiceway.provider.triggers.condition_trigger import ConditionTrigger
from sluiceway.provider.triggers.lag_trigger import LagTrigger

__all__ = ["ChangeTrigger", "ConditionTrigger", "LagTrigger"]
