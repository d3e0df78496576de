from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.sink.consumer_settings import sink_consumer
from sluiceway.runtime.task import TaskSpec
from sluiceway.storage.model import TaskId


@pytest.mark.parametrize(
    ("worker", "config", "group"),
    [
        ({}, {}, "connect-c"),
        ({"consumer.group.id": "shared"}, {}, "shared"),
        ({"consumer.group.id": "shared"}, {"consumer.override.group.id": "own"}, "own"),
        ({"consumer.group.id": "shared"}, {"consumer.override.group.id": ""}, "shared"),
    ],
)
def test_a_task_joins_its_connectors_consumer_group(worker: dict[str, str], config: dict[str, str], group: str) -> None:
    spec = TaskSpec(TaskId("c", 0), config, WorkerConfig.of(worker), "h:1", 1, sink=True)
    settings, _ = sink_consumer(spec)
    assert settings["group.id"] == group


@pytest.mark.parametrize(
    ("worker", "config", "bounded", "milliseconds"),
    [
        ({}, {}, False, "500"),
        ({}, {}, True, "100"),
        ({"consumer.fetch.max.wait.ms": "7"}, {}, False, "7"),
        ({"consumer.fetch.max.wait.ms": "7"}, {"consumer.override.fetch.max.wait.ms": "8"}, False, "8"),
    ],
)
def test_a_task_that_waits_for_records_sends_few_requests_and_a_bounded_one_soon_finds_the_end(
    worker: dict[str, str], config: dict[str, str], bounded: bool, milliseconds: str
) -> None:
    spec = TaskSpec(TaskId("c", 0), config, WorkerConfig.of(worker), "h:1", 1, sink=True, bounded=bounded)
    settings, _ = sink_consumer(spec)
    assert settings["fetch.wait.max.ms"] == milliseconds
