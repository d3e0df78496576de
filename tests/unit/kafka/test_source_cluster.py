from __future__ import annotations

from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.clients import consumer_config
from sluiceway.kafka.source_cluster import SourcePartitionReader
from sluiceway.stack.ports import free_port
from support.eventually import eventually


def test_records_of_another_cluster_are_read_with_a_consumers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, str]] = []

    def consumer(config: dict[str, str]) -> Mock:
        made.append({key: value for key, value in config.items() if key != "error_cb"})
        return Mock()

    monkeypatch.setattr("sluiceway.kafka.source_cluster.consumer", consumer)
    SourcePartitionReader({"client.id": "c", "bootstrap.servers": "b:9092"}, {})
    wanted = consumer_config(WorkerConfig.of({"bootstrap.servers": "b:9092"}), "c", "c")
    assert made == [{**wanted, "enable.auto.offset.store": "false"}]


def test_a_cluster_whose_brokers_do_not_answer_is_shown() -> None:
    shown: list[object] = []
    properties = {"client.id": "c", "bootstrap.servers": f"127.0.0.1:{free_port('127.0.0.1')}"}
    reader = SourcePartitionReader(properties, {TopicPartition("t", 0): 0}, lambda *reason: shown.append(reason[0]))
    eventually(lambda: not reader.poll(0.1) and bool(shown), what="a wait for the source cluster")
    assert str(shown[0]).startswith("No broker of the source cluster answers: ")
    reader.close()


@pytest.mark.parametrize("answer", ["records", "offsets"])
def test_a_cluster_that_answers_again_ends_the_wait(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    shown: list[object] = []
    client = Mock()
    client.poll.return_value = None
    client.consume.return_value = []
    client.get_watermark_offsets.side_effect = KafkaException("away")
    monkeypatch.setattr("sluiceway.kafka.source_cluster.consumer", lambda config: client)
    properties = {"client.id": "c", "bootstrap.servers": "b:9092"}
    reader = SourcePartitionReader(properties, {TopicPartition("t", 0): 0}, lambda *reason: shown.append(reason[:1]))
    reader.poll(0)
    assert shown == []
    reader._client_error(KafkaError(KafkaError._TRANSPORT))
    reader._client_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    reader.poll(0)
    assert len(shown) == 1
    if answer == "offsets":
        client.get_watermark_offsets.side_effect = None
        reader._next_look = 0.0
    else:
        client.poll.return_value = Mock(error=lambda: None)
    reader.poll(0)
    reader.poll(0)
    assert shown[1:] == [()]
