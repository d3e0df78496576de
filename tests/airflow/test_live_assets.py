"""Asset events of connectors that run all the time, on a real Airflow: a DAG runs once for each hour that is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.eventually import LIMIT, eventually
from support.live_assets import LiveHours
from support.stack import RunningStack

pytestmark = pytest.mark.airflow


def test_a_dag_runs_once_for_each_hour_of_a_sink_that_runs_all_the_time(stack: RunningStack, folder: Path) -> None:
    with LiveHours(stack, "live-hours", folder) as hours:
        eventually(lambda: hours.done() >= 4, within=3 * LIMIT, what="a run for each of four hours")
        hours.pause()
        eventually(hours.each_hour_had_its_run, within=2 * LIMIT, what="a run for each hour that had an event")
        events = hours.events()
    assert {each["connector"] for each in events} == {"live-hours"}
    assert [each["complete_until"] for each in events] == [each["end"] for each in events]
