"""Sensors that wait for progress: a sink's lag, a connector's offsets, a topic's records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pendulum

from sluiceway.provider.driver.run_variables import milliseconds
from sluiceway.provider.triggers.conditions import LagCondition, OffsetsCondition, RecordsCondition
from sluiceway.sensors.base import ConditionSensor


class ConnectorLagSensor(ConditionSensor):
    """Waits until a sink has at most ``at_most`` records of its topics left to commit; see ``ConditionSensor``.

    The lag of a partition without committed offset counts from its first record. The sensor fails for a source, since Kafka does
    not know how many records are left to read.

    Args:
        connector: the sink's name (templated).
        at_most: the number of records over all partitions (templated).
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "connector", "at_most")

    def __init__(self, *, connector: str, at_most: int | str = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.at_most = at_most

    def condition(self) -> LagCondition:
        return LagCondition(self.connector, int(self.at_most))


class ConnectorOffsetsSensor(ConditionSensor):
    """Waits until a connector's offsets have reached given ones; see ``ConditionSensor``.

    Args:
        connector: the connector's name (templated).
        offsets: the minimum offset of each partition, as in ``GET /connectors/<name>/offsets``:
            ``[{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 100}}]``. Other partitions,
            and other fields of an offset, are ignored. (templated)
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "connector", "offsets")

    def __init__(self, *, connector: str, offsets: Sequence[Mapping[str, Any]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.offsets = offsets

    def condition(self) -> OffsetsCondition:
        for each in self.offsets:
            if not isinstance(each, Mapping) or set(each) != {"partition", "offset"}:
                raise ValueError(f"Each element of 'offsets' must be a dict with 'partition' and 'offset', not {each!r}.")
        return OffsetsCondition(self.connector, tuple(self.offsets))


class TopicRecordsSensor(ConditionSensor):
    """Waits until a topic has records with a timestamp of ``since`` or later; see ``ConditionSensor``.

    Args:
        topic: the topic's name (templated). Waits for a topic that does not exist yet.
        since: a datetime, or an ISO 8601 string, in UTC unless it has an offset (templated). Default is the start of the data
            interval; for a run without interval, its ``run_after``.
        count: the minimum number of records. Counted by offsets, so compacted records and transaction markers count too.
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "topic", "since")

    def __init__(
        self,
        *,
        topic: str,
        since: datetime | str = "{{ data_interval_start | default(dag_run.run_after, true) }}",
        count: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.topic = topic
        self.since = since
        self.count = count

    def condition(self) -> RecordsCondition:
        since = self.since if isinstance(self.since, datetime) else pendulum.parse(self.since)
        if not isinstance(since, datetime):
            raise ValueError(f"'since' must be a date and time, not {self.since!r}.")
        return RecordsCondition(self.topic, milliseconds(since), self.count)
