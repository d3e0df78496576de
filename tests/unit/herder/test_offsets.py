"""The consumer group in which the REST API reads and changes a sink's offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.herder.offsets import ConnectorOffsets
from sluiceway.kafka.lag import PartitionBounds
from sluiceway.storage.model import ConnectorEntry

T0 = TopicPartition("t", 0)
SINK = {"connector.class": "FileStreamSink", "name": "c", "topics": "t", "file": "/f"}
SHARED, OWN = {"consumer.group.id": "shared"}, {"consumer.override.group.id": "own"}


class Groups:
    """Consumer groups in memory. ``asked`` records the calls by group."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def offsets(self, group: str) -> dict[TopicPartition, int]:
        self.asked.append(("offsets", group))
        return {T0: 7}

    def missing(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        return []

    def counts(self) -> dict[str, int]:
        return {"t": 1}

    def bounds(self, partitions: Sequence[TopicPartition], milliseconds: int | None) -> dict[TopicPartition, PartitionBounds]:
        return dict.fromkeys(partitions, PartitionBounds(0, 9))

    def alter(self, group: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        self.asked.append(("alter", group))

    def delete(self, group: str) -> None:
        self.asked.append(("delete", group))


@pytest.mark.parametrize(
    ("worker", "config", "group"), [({}, {}, "connect-c"), (SHARED, {}, "shared"), ({}, OWN, "own"), (SHARED, OWN, "own")]
)
def test_a_sinks_offsets_are_those_of_the_group_that_its_tasks_read_in(
    worker: dict[str, str], config: dict[str, Any], group: str
) -> None:
    groups = Groups()
    offsets = ConnectorOffsets(
        ConnectorEntry("c", {**SINK, **config}), WorkerConfig.of(worker), None, lambda _worker, _overrides: groups
    )
    offsets.read()
    offsets.alter([({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 3})])
    offsets.reset()
    assert groups.asked == [("offsets", group), ("alter", group), ("offsets", group), ("delete", group)]


PROVIDERS = {
    "config.providers": "airflow,file",
    "config.providers.airflow.class": "AirflowConfigProvider",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
ELSEWHERE = ["${airflow:run:ds}", "x-${airflow:run:data_interval_start_ms}", "${file:/nowhere:key}"]
"""References that only the connector's own run or machine resolves."""


@pytest.mark.parametrize("reference", ELSEWHERE)
@pytest.mark.parametrize("key", ["file", "topics", "transforms.t.static.value", "errors.deadletterqueue.topic.name"])
def test_what_tells_not_where_the_offsets_are_need_not_be_resolved(key: str, reference: str) -> None:
    groups = Groups()
    entry = ConnectorEntry("c", {**SINK, key: reference})
    offsets = ConnectorOffsets(entry, WorkerConfig.of(PROVIDERS), None, lambda _worker, _overrides: groups)
    assert offsets.read()
    offsets.reset()
    assert ("delete", "connect-c") in groups.asked


@pytest.mark.parametrize("reference", ELSEWHERE)
@pytest.mark.parametrize("key", ["consumer.override.group.id", "admin.override.bootstrap.servers", "offsets.storage.topic"])
def test_what_tells_where_the_offsets_are_must_be_resolved(key: str, reference: str) -> None:
    entry = ConnectorEntry("c", {**SINK, key: reference})
    with pytest.raises(ConfigError, match=r"run:|/nowhere"):
        ConnectorOffsets(entry, WorkerConfig.of(PROVIDERS), None, lambda _worker, _overrides: Groups())
