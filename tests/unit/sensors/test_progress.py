"""Tests of the progress sensors' conditions after their fields are rendered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.sdk import DAG, BaseOperator
from airflow.utils.types import DagRunType

from sluiceway.provider.triggers.conditions import IntervalCondition
from sluiceway.sensors import ConnectorIntervalSensor, TopicRecordsSensor

START, AFTER, END = (pendulum.datetime(2024, 5, day, tz="UTC") for day in (1, 2, 3))


@pytest.mark.parametrize(
    ("context", "since"),
    [({"data_interval_start": START}, START), ({"data_interval_start": None}, AFTER), ({}, AFTER)],
    ids=["scheduled", "by an asset", "by hand"],
)
def test_since_defaults_to_the_data_intervals_start_or_to_run_after(context: dict[str, Any], since: Any) -> None:
    with DAG("d", schedule=None):
        sensor = TopicRecordsSensor(task_id="t", topic="orders")
    _render(sensor, **context)
    assert sensor.condition().since == since.timestamp() * 1000


def _render(sensor: BaseOperator, *, catchup: bool = False, run_type: str = "scheduled", **context: Any) -> None:
    run = SimpleNamespace(run_after=AFTER, run_type=DagRunType(run_type))
    sensor.render_template_fields({"dag": SimpleNamespace(catchup=catchup), "dag_run": run, **context})  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("catchup", "run_type", "end", "bounded"),
    [
        (False, "scheduled", END, False),
        (True, "scheduled", END, True),
        (False, "backfill", END, True),
        (True, "scheduled", START, False),
        (True, "asset_triggered", None, False),
    ],
)
def test_records_end_with_the_interval_where_a_run_is_exact(catchup: bool, run_type: str, end: Any, bounded: bool) -> None:
    with DAG("d", schedule=None):
        sensor = TopicRecordsSensor(task_id="t", topic="orders")
    _render(sensor, catchup=catchup, run_type=run_type, data_interval_start=START, data_interval_end=end)
    assert sensor.condition().until == (END.timestamp() * 1000 if bounded else None)


def test_an_interval_is_that_of_the_run_unless_it_is_given() -> None:
    with DAG("d", schedule=None):
        sensor = ConnectorIntervalSensor(task_id="t", connector="orders")
        given = ConnectorIntervalSensor(task_id="u", connector="orders", start="2024-05-01T03:00", end="2024-05-01T04:00+01:00")
        empty = ConnectorIntervalSensor(task_id="v", connector="orders")
    for each in sensor, given:
        _render(each, data_interval_start=START, data_interval_end=END)
    assert sensor.condition() == IntervalCondition("orders", START.int_timestamp * 1000, END.int_timestamp * 1000)
    with pytest.raises(ValueError, match="is empty: give start and end"):
        given.condition()
    _render(empty, data_interval_start=START, data_interval_end=START)
    with pytest.raises(ValueError, match="is empty"):
        empty.condition()
