"""Decisions over the three internal topics: what a connector is, how it fares, and what may be asked of it.

No process of its own: REST, command line, driver and Airflow plugin each make a ``Herder`` over their stores.
"""

from sluiceway.herder.herder import Herder
from sluiceway.herder.model import ConnectorInfo, ConnectorStatus, ConnectorType, TaskInfo

__all__ = ["ConnectorInfo", "ConnectorStatus", "ConnectorType", "Herder", "TaskInfo"]
