"""Tests of the progress sensors' conditions after their fields are rendered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.sdk import DAG

from sluiceway.sensors import TopicRecordsSensor

START, AFTER = pendulum.datetime(2024, 5, 1, tz="UTC"), pendulum.datetime(2024, 5, 2, tz="UTC")


@pytest.mark.parametrize(
    ("context", "since"),
    [({"data_interval_start": START}, START), ({"data_interval_start": None}, AFTER), ({}, AFTER)],
    ids=["scheduled", "by an asset", "by hand"],
)
def test_since_defaults_to_the_data_intervals_start_or_to_run_after(context: dict[str, Any], since: Any) -> None:
    with DAG("d", schedule=None):
        sensor = TopicRecordsSensor(task_id="t", topic="orders")
    sensor.render_template_fields({"dag_run": SimpleNamespace(run_after=AFTER), **context})  # type: ignore[typeddict-item]
    assert sensor.condition().since == since.timestamp() * 1000
