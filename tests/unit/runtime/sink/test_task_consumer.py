"""The settings of a sink task's consumer."""

from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.sink.task_consumer import sink_consumer
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
def test_a_task_reads_in_its_sinks_consumer_group(worker: dict[str, str], config: dict[str, str], group: str) -> None:
    spec = TaskSpec(TaskId("c", 0), config, WorkerConfig.of(worker), "h:1", 1, sink=True)
    settings, _ = sink_consumer(spec)
    assert settings["group.id"] == group
