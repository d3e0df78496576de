"""Sensors that wait for progress: a sink's lag, a connector's offsets, a topic's records, an interval that was moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pendulum

from sluiceway.provider.driver.run_variables import milliseconds
from sluiceway.provider.triggers.conditions import IntervalCondition, LagCondition, OffsetsCondition, RecordsCondition
from sluiceway.sensors.base import ConditionSensor

_UNTIL = "{{ data_interval_end or '' if dag.catchup or dag_run.run_type == 'backfill' else '' }}"


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
        until: likewise, where records do not count any more; None or empty for no end (templated). Default is the end of the
            data interval where the DAG catches up and in backfills, as these move the records of their interval.
        count: the minimum number of records. Counted by offsets, so compacted records and transaction markers count too.
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "topic", "since", "until")

    def __init__(
        self,
        *,
        topic: str,
        since: datetime | str = "{{ data_interval_start | default(dag_run.run_after, true) }}",
        until: datetime | str | None = _UNTIL,
        count: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.topic = topic
        self.since = since
        self.until = until
        self.count = count

    def condition(self) -> RecordsCondition:
        since = _moment("since", self.since)
        until = _moment("until", self.until) if self.until else since
        return RecordsCondition(self.topic, since, self.count, until if until > since else None)


class ConnectorIntervalSensor(ConditionSensor):
    """Waits until runs of a connector have moved all records of an interval; see ``ConditionSensor``.

    For a DAG that needs what the exact runs of a connector's DAG have moved (``airflow.interval``). While a run moves it again,
    because somebody has cleared it, the sensor waits.

    Args:
        connector: the connector's name (templated).
        start: a datetime, or an ISO 8601 string, in UTC unless it has an offset (templated). Default is the start of the data
            interval.
        end: likewise, its end.
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "connector", "start", "end")

    def __init__(
        self,
        *,
        connector: str,
        start: datetime | str = "{{ data_interval_start }}",
        end: datetime | str = "{{ data_interval_end }}",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.start = start
        self.end = end

    def condition(self) -> IntervalCondition:
        start, end = _moment("start", self.start), _moment("end", self.end)
        if start >= end:
            raise ValueError(f"The interval from {self.start} to {self.end} is empty: give start and end.")
        return IntervalCondition(self.connector, start, end)


def _moment(name: str, given: datetime | str) -> int:
    """Return a time in milliseconds since the epoch. Raises ValueError."""
    found = given if isinstance(given, datetime) else pendulum.parse(given)
    if not isinstance(found, datetime):
        raise ValueError(f"'{name}' must be a date and time, not {given!r}.")
    return milliseconds(found)
