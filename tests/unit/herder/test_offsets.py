"""The consumer group in which the REST API reads and changes a sink's offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
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
