"""The metrics that are derived from the statuses of connectors."""

from __future__ import annotations

import pytest

from sluiceway.herder.connector_metrics import with_worker
from sluiceway.herder.overview import Overview
from sluiceway.herder.states import Clock
from sluiceway.metrics.beans import CONNECT, OWN, Bean
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import ConnectorStatuses, State, Status, TargetState

NOW = 1_000_000_000
STATUS = Status(State.RUNNING, "w:1", 1, timestamp=NOW - 40_000)


def beans(status: Status, *reported: Bean, target: TargetState = TargetState.STARTED) -> list[Bean]:
    configs = MemoryConfigBackingStore()
    configs.put_connector("c", {"name": "c", "connector.class": "FileStreamSource", "file": "f", "topic": "t"})
    configs.put_task_configs("c", [{}, {}])
    configs.put_target_state("c", target)
    tasks = {0: Status(State.FAILED, "w:1", 1, timestamp=NOW), 1: Status(State.RUNNING, "w:1", 1, timestamp=NOW)}
    overview = Overview(configs.snapshot(), {"c": ConnectorStatuses(status, tasks)}, Clock(NOW, 25_000), "rest:1")
    return with_worker(list(reported), overview, iter(["c"]))


def ages(found: list[Bean]) -> list[object]:
    return [bean.values["heartbeat-age-ms"] for bean in found if (bean.domain, bean.type) == (OWN, "connector-metrics")]


def test_the_age_of_the_last_heartbeat_of_a_connector_that_should_run() -> None:
    assert ages(beans(STATUS)) == [40_000]


@pytest.mark.parametrize("state", [State.PAUSED, State.STOPPED, State.FAILED, State.UNASSIGNED])
def test_a_connector_that_no_driver_needs_to_run_has_no_age(state: State) -> None:
    assert ages(beans(Status(state, "w:1", 1, timestamp=NOW - 40_000))) == []


def test_a_connector_that_is_being_paused_and_one_of_standalone_mode_have_no_age() -> None:
    assert ages(beans(STATUS, target=TargetState.PAUSED)) == []
    assert ages(beans(Status(State.RUNNING, "w:1", 1))) == []


def test_tasks_that_no_process_reports_have_a_status() -> None:
    live = Bean(CONNECT, "connector-task-metrics", {"connector": "c", "task": "1"}, {"status": "running", "batch-size-avg": 1.0})
    found = [
        bean for bean in beans(Status(State.RUNNING, "w:1", 1, timestamp=NOW), live) if bean.type == "connector-task-metrics"
    ]
    assert [(bean.tags["task"], dict(bean.values)) for bean in found] == [("0", {"status": "failed"}), ("1", dict(live.values))]
