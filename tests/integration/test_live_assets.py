"""The past of real topics: transactions, markers, records from the future, and patterns of topics."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.provider.live_assets.completeness import sink_has_passed
from sluiceway.provider.live_assets.kafka_cluster import KafkaCluster
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.eventually import eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]


@pytest.fixture
def cluster(worker: WorkerConfig) -> KafkaCluster:
    return KafkaCluster(worker, Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore()), dict)


def test_an_open_transaction_holds_an_hour_up_and_its_marker_does_not(kafka: Kafka, unique: Names, cluster: KafkaCluster) -> None:
    topic = kafka.create(unique("hours"), 1)
    partition, now = TopicPartition(topic, 0), int(time.time() * 1000)
    client = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": unique("open")})
    client.init_transactions(30)
    client.begin_transaction()
    client.produce(topic, "in a transaction", timestamp=now - 60_000)
    client.flush(30)
    assert not sink_has_passed(cluster.past([topic], now), {}, cluster.has_records)
    client.commit_transaction(30)
    eventually(lambda: cluster.past([topic], now)[partition].stable == 2, what="the marker of the commit")
    past = cluster.past([topic], now + 3_600_000)  # after the marker, which has a time, too
    assert (past[partition].at, past[partition].end) == (-1, 2)
    assert not sink_has_passed(past, {}, cluster.has_records)
    assert sink_has_passed(past, {partition: 1}, cluster.has_records), "the marker is no record"


def test_a_record_from_the_future_says_nothing_about_those_behind_it(kafka: Kafka, unique: Names, cluster: KafkaCluster) -> None:
    topic = kafka.create(unique("hours"), 1)
    partition, now = TopicPartition(topic, 0), int(time.time() * 1000)
    client = Producer({"bootstrap.servers": kafka.bootstrap})
    for moment in (now - 60_000, now + 3_000_000, now - 50_000):
        client.produce(topic, str(moment), timestamp=moment)
        client.flush(30)
    past = cluster.past([topic], now - 10_000)
    assert (past[partition].at, past[partition].end) == (-1, 3)
    assert not sink_has_passed(past, {partition: 1}, cluster.has_records)
    assert sink_has_passed(past, {partition: 3}, cluster.has_records)


def test_a_pattern_has_topics_that_the_sink_has_not_read_yet(kafka: Kafka, unique: Names, cluster: KafkaCluster) -> None:
    prefix = unique("hours")
    topics = [kafka.create(f"{prefix}.{name}", 1) for name in ("a", "b")]
    config = {"connector.class": "VerifiableSink", "topics.regex": f"{prefix}\\..*"}
    assert sorted(cluster.sink_topics("c", config)) == topics
    assert cluster.past([*topics, f"{prefix}.missing"], 0).keys() == {TopicPartition(each, 0) for each in topics}
