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
from support.live_assets import LiveHours
from support.stack import RunningStack

isolate_airflow()
pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.timeout(1800)]

HOURS = 48


def _component(name: str) -> Callable[[RunningStack], ProcessStatus]:
    return lambda stack: airflow_process(name, stack.home).status()


def _broker(stack: RunningStack) -> BrokerStatus:
    return EmbeddedBroker(stack.home / "broker").status()


#: What is killed after the DAG has run for so many hours, while the next ones pass.
_VICTIMS: Mapping[int, Callable[[RunningStack], ProcessStatus | BrokerStatus]] = {
    8: _component("scheduler"),
    16: _component("api-server"),
    24: _broker,
    32: _component("scheduler"),
}


@pytest.mark.parametrize("postgres", [True, False], ids=["PostgreSQL", "SQLite"])
def test_a_dag_runs_once_for_each_of_48_hours(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, row: NewRow, postgres: bool
) -> None:
    settings = {"API__WORKERS": "2"}
    stack = RunningStack(tmp_path_factory.mktemp("stack"), postgres=postgres, settings=settings)
    made = row(f"2 schedulers, an API server, and the broker killed (-9), {HOURS} hours", "each hour's run once")
    try:
        with LiveHours(stack, "live-hours", tmp_path) as hours:
            for ran, victim in _VICTIMS.items():
                eventually(lambda ran=ran: hours.done() >= ran, within=4 * LIMIT, what=f"runs for {ran} hours")
                psutil.Process(victim(stack).pid).kill()
                eventually(lambda dead=victim: not dead(stack).running, what="the end of what was killed")
                stack.up()
            eventually(lambda: hours.done() >= HOURS, within=4 * LIMIT, what=f"runs for {HOURS} hours")
            hours.pause()
            eventually(hours.each_hour_had_its_run, within=2 * LIMIT, what="a run for each hour that had an event")
            made.seen = f"{hours.done()} hours, one run each"
    finally:
        stack.close()
