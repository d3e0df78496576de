"""A DAG behind a long-running sink runs once for each of 48 hours, while schedulers, API servers, and the broker are killed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest

from sluiceway.stack.airflow import airflow_process
from sluiceway.stack.broker import BrokerStatus, EmbeddedBroker
from sluiceway.stack.process import ProcessStatus
from support.airflow_home import isolate_airflow
from support.eventually import LIMIT, eventually
from support.faults.rows import NewRow
from support.live_assets import SimulatedHours
from support.stack import RunningStack

isolate_airflow()
pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.timeout(1800)]

HOURS = 48
_AT_A_TIME = 6


def _component(name: str) -> Callable[[RunningStack], ProcessStatus]:
    return lambda stack: airflow_process(name, stack.home).status()


def _broker(stack: RunningStack) -> BrokerStatus:
    return EmbeddedBroker(stack.home / "broker").status()


#: What is killed after the records of so many hours were written, before the DAG has run for them.
_VICTIMS: Mapping[int, Callable[[RunningStack], ProcessStatus | BrokerStatus]] = {
    12: _component("scheduler"),
    18: _component("api-server"),
    24: _broker,
    36: _component("scheduler"),
}


@pytest.mark.parametrize("postgres", [True, False], ids=["PostgreSQL", "SQLite"])
def test_a_dag_runs_once_for_each_of_48_hours(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, row: NewRow, postgres: bool
) -> None:
    stack = RunningStack(tmp_path_factory.mktemp("stack"), postgres=postgres, settings={"API__WORKERS": "2"})
    made = row(f"2 schedulers, an API server, and the broker killed (-9), {HOURS} hours", "each hour's run once")
    try:
        with SimulatedHours(stack, "live-hours", tmp_path) as hours:
            for written in range(_AT_A_TIME, HOURS + _AT_A_TIME, _AT_A_TIME):
                hours.write(_AT_A_TIME + (written == HOURS))  # a record of the hour after completes the last one
                if victim := _VICTIMS.get(written):
                    psutil.Process(victim(stack).pid).kill()
                    eventually(lambda dead=victim: not dead(stack).running, what="the end of what was killed")
                    stack.up()
                eventually(hours.each_hour_ran_once, within=6 * LIMIT, what=f"a run for each of {hours.complete}")
            assert len(hours.complete) == HOURS
            made.seen = f"{HOURS} hours, one run each"
    finally:
        stack.close()
