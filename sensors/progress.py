"""Sensors that wait for records: a sink's lag, a connector's offsets, a topic's records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pendulum

from sluiceway.provider.driver.run_variables import milliseconds
from sluiceway.provider.triggers.conditions import LagCondition, OffsetsCondition, RecordsCondition
from sluiceway.sensors.base import ConditionSensor


class ConnectorLagSensor(ConditionSensor):
    """Waits until a sink has at most so many records of its topics left to commit; see ``ConditionSensor``.

    A source fails it: Kafka does not know how much its other end has left. What a sink has never read counts from the
    first record that is still there.

    Args:
        connector: the sink's name (templated).
        at_most: records over all partitions (templated).
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "connector", "at_most")

    def __init__(self, *, connector: str, at_most: int | str = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.at_most = at_most

    def condition(self) -> LagCondition:
        return LagCondition(self.connector, int(self.at_most))


class ConnectorOffsetsSensor(ConditionSensor):
    """Waits until a connector's offsets have reached others; see ``ConditionSensor``.

    Args:
        connector: the connector's name (templated).
        offsets: partitions and the offsets that they are to have at least, in the form of ``GET /connectors/<name>/offsets``:
            ``[{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 100}}]``. Partitions and
            fields of an offset that are not named do not count. (templated)
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "connector", "offsets")

    def __init__(self, *, connector: str, offsets: Sequence[Mapping[str, Any]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.offsets = offsets

    def condition(self) -> OffsetsCondition:
        for each in self.offsets:
            if not isinstance(each, Mapping) or set(each) != {"partition", "offset"}:
                raise ValueError(f"Each of a connector's offsets is a dict of 'partition' and 'offset', not {each!r}.")
        return OffsetsCondition(self.connector, tuple(self.offsets))


class TopicRecordsSensor(ConditionSensor):
    """Waits until a topic has records from a time on, by their timestamps; see ``ConditionSensor``.

    Args:
        topic: its name (templated). A topic that does not exist yet is waited for.
        since: a moment, or a text of one, in UTC unless it says otherwise (templated); default is the data interval's start, or
            the moment of a run that has no interval.
        count: how many records there must be. They are counted by offsets, so what was compacted away counts too.
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
            raise ValueError(f"'since' is not a moment: {self.since!r}")
        return RecordsCondition(self.topic, milliseconds(since), self.count)
