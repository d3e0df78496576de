"""The consumer group of a replay of a dead letter queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka import dead_letter_topic
from sluiceway.kafka.committed_offsets import CommittedOffsets
from sluiceway.kafka.dead_letter_topic import DeadLetterTopic


class _Reader:
    def assign(self, partitions: list[Any]) -> None: ...

    def close(self) -> None: ...


def test_a_replay_reads_and_commits_offsets_in_the_same_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Mapping[str, Any]] = []
    asked: list[str] = []

    def reader(config: Mapping[str, Any]) -> _Reader:
        made.append(config)
        return _Reader()

    def offsets(_self: object, group: str, _partitions: object) -> dict[Any, int]:
        asked.append(group)
        return {}

    monkeypatch.setattr(dead_letter_topic, "admin_client", lambda _worker: object())
    monkeypatch.setattr(dead_letter_topic, "partition_count", lambda _admin, _topic: 1)
    monkeypatch.setattr(dead_letter_topic, "beginning_offsets", lambda _admin, places: dict.fromkeys(places, 0))
    monkeypatch.setattr(dead_letter_topic, "end_offsets", lambda _admin, places: dict.fromkeys(places, 0))
    monkeypatch.setattr(CommittedOffsets, "read", offsets)
    monkeypatch.setattr(dead_letter_topic, "consumer", reader)
    monkeypatch.setattr(dead_letter_topic, "producer", lambda _config: object())
    worker = WorkerConfig.of({"consumer.group.id": "shared"})
    DeadLetterTopic(worker, "dead").replay("replays-of-c", dry_run=True)
    assert asked == ["replays-of-c"]
    assert [config["group.id"] for config in made] == asked
