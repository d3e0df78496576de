"""Decides whether the records' times bound the runs of a source connector (``airflow.interval.time``). No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Connector, DataFrameSourceTask, SourceConnector
from sluiceway.config.intervals import FIELD, RECORD, TIME
from sluiceway.runtime.source.exactly_once import BOUNDARY


def by_record_time(connector: type[Connector], config: Mapping[str, str]) -> bool:
    """Return whether a run of an exact interval ends in each source partition by the timestamps of the records, or a field.

    False for a connector that reads intervals by itself.
    """
    return wants_record_time(connector, config) and not record_time_refusal(connector, config)


def wants_record_time(connector: type[Connector], config: Mapping[str, str]) -> bool:
    """Return whether the connector's class or the config asks for that, possible or not."""
    if not issubclass(connector, SourceConnector) or has_own_intervals(connector, config):
        return False
    if connector.interval_by_timestamp is None or config.get(FIELD):
        return config.get(TIME) == RECORD
    return connector.interval_by_timestamp


def has_own_intervals(connector: type[SourceConnector], config: Mapping[str, str]) -> bool:
    """Return whether a source connector itself reads the records of an interval only."""
    return connector.interval_in_order or not connector.interval_refusal(config)


def record_time_refusal(connector: type[Connector], config: Mapping[str, str]) -> str:
    """Return why a run must not hold back records of a source, to be read again by the next run; empty if it may."""
    if not issubclass(connector, SourceConnector) or (connector.interval_by_timestamp is False and not config.get(FIELD)):
        return f"records of {connector.__name__} have no timestamps by which a run could end"
    if issubclass(connector.task_class, DataFrameSourceTask):
        return f"tasks of {connector.__name__} return DataFrames, which are sent as a whole"
    if connector.position_elsewhere(config):
        return f"the position of {connector.__name__} is not in Kafka's offsets, from which the next run must read again"
    if config.get(BOUNDARY, "").strip().lower() == "connector":
        return f"{BOUNDARY}=connector ends transactions at records, and a run may hold these back: set {BOUNDARY}=poll"
    return ""
