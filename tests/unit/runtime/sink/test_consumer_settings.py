from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.sink.consumer_settings import java_sink_consumer, sink_consumer
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


WORKER = {"bootstrap.servers": "b:9092", "security.protocol": "SASL_SSL", "sasl.jaas.config": "secret"}
OWN = {
    "consumer.override.fetch.wait.max.ms": "7",
    "consumer.override.group.instance.id": "me",
    "consumer.override.client.rack": "r",
}


def java(worker: dict[str, str], config: dict[str, str], *, bounded: bool = False) -> dict[str, str] | None:
    return java_sink_consumer(
        TaskSpec(TaskId("c", 0), config, WorkerConfig.of(worker), "h:1", 1, sink=True, bounded=bounded), 500
    )


def test_the_java_consumer_of_a_task_has_the_same_settings_but_is_no_member_of_the_group() -> None:
    assert java({**WORKER, "consumer.auto.offset.reset": "latest", "other": "x"}, OWN) == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": "secret",
        "client.id": "connector-consumer-c-0",
        "group.id": "connect-c",
        "auto.offset.reset": "latest",
        "fetch.max.wait.ms": "7",
        "client.rack": "r",
        "enable.auto.commit": "false",
        "max.poll.records": "500",
    }
    assert (java({}, {}) or {})["auto.offset.reset"] == "earliest"


@pytest.mark.parametrize(
    ("worker", "config"),
    [
        ({"ssl.ca.location": "/ca.pem"}, {}),
        ({"consumer.sasl.username": "u"}, {}),
        ({}, {"consumer.override.auto.offset.reset": "beginning"}),
    ],
)
def test_python_reads_with_settings_that_only_librdkafka_has(worker: dict[str, str], config: dict[str, str]) -> None:
    assert java(worker, config) is None


def test_python_reads_for_a_task_that_ends_with_the_records() -> None:
    assert java({}, {}, bounded=True) is None
