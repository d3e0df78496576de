"""Reads and changes connectors through the three internal topics, as Kafka Connect's herder does.

Runs in no process of its own: the REST API, command line, driver and Airflow plugin each create a ``Herder`` over their
stores.
"""

from sluiceway.herder.herder import Herder
from sluiceway.herder.model import ConnectorInfo, ConnectorStatus, ConnectorType, TaskInfo

__all__ = ["ConnectorInfo", "ConnectorStatus", "ConnectorType", "Herder", "TaskInfo"]
