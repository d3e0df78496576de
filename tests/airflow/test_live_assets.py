"""Asset events of connectors that run all the time, on a real Airflow: a DAG runs once for each hour that is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.provider.lineage.assets import connector_uri
from support.eventually import LIMIT, eventually
from support.live_assets import SimulatedHours
from support.stack import RunningStack

pytestmark = pytest.mark.airflow


def test_a_dag_runs_once_for_each_hour_of_a_sink_that_runs_all_the_time(stack: RunningStack, folder: Path) -> None:
    with SimulatedHours(stack, "live-hours", folder) as hours:
        for _ in range(3):
            hours.write(2)
            eventually(hours.each_hour_ran_once, within=3 * LIMIT, what=f"a run for each of {hours.complete}")
        answer = stack.airflow.get("/assets/events", params={"limit": 100}).json()
        events = [each for each in answer["asset_events"] if each["uri"] == connector_uri("live-hours")]
        complete = [each["extra"] for each in events if each["partition_key"] in hours.complete]
        assert sorted(each["partition_key"] for each in complete) == hours.complete
        assert {each["connector"] for each in complete} == {"live-hours"}
