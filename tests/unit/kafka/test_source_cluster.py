from __future__ import annotations

from unittest.mock import Mock

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.clients import consumer_config
from sluiceway.kafka.source_cluster import PartitionReader


def test_records_of_another_cluster_are_read_with_a_consumers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, str]] = []

    def consumer(config: dict[str, str]) -> Mock:
        made.append(config)
        return Mock()

    monkeypatch.setattr("sluiceway.kafka.source_cluster.consumer", consumer)
    PartitionReader({"client.id": "c", "bootstrap.servers": "b:9092"}, {})
    wanted = consumer_config(WorkerConfig.of({"bootstrap.servers": "b:9092"}), "c", "c")
    assert made == [{**wanted, "enable.auto.offset.store": "false"}]
