"""Replication between two clusters as in the guide: Python's MirrorSource with Kafka's own checkpoints and heartbeats."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions

from integration.test_mirror import Bench, Kafka, mirror_config
from sluiceway.cli.main import main
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.java_plugins import finder
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import State
from support.driver import worker_of, worker_properties
from support.eventually import LIMIT, eventually
from support.java_plugins import fetch_runtime, forget_plugins

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

Names = Callable[[str], str]

_OFTEN = {
    "emit_checkpoints_interval_seconds": "1",
    "sync_group_offsets_interval_seconds": "1",
    "refresh_groups_interval_seconds": "1",
    "emit_heartbeats_interval_seconds": "1",
    "checkpoints_topic_replication_factor": "1",
    "heartbeats_topic_replication_factor": "1",
}


@pytest.fixture(scope="module", autouse=True)
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install Kafka's connectors with the guide's one command."""
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    assert main(["plugins", "install", "org.apache.kafka:connect-mirror:4.3.0", "--no-java", "--to", str(folder)]) == 0
    finder._folders.clear()
    use_plugin_path({"plugin.path": str(folder)})
    yield
    forget_plugins()


@pytest.fixture
def west(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker(tmp_path / "west")
    broker.start()
    yield broker
    broker.stop()


@contextmanager
def replication(source: Kafka, target: Kafka, aliases: str, topic: str, groups: str, unique: Names) -> Iterator[Bench]:
    """Run the guide's three connectors from one cluster to the other. ``aliases`` is a character for each cluster."""
    name = unique(f"to-{aliases[1].lower()}")
    properties = {**worker_properties(target.bootstrap, name), "offset.flush.interval.ms": "200"}
    more = {"source_cluster_alias": aliases[0], "target_cluster_alias": aliases[1], **_OFTEN}
    with open_stores(worker_of(properties)) as stores, ExitStack() as stack:
        bench = Bench(source, target, stores, properties)
        stack.callback(bench.stop)
        bench.mirror(f"{name}-source", topic, offset_lag_max="0", **more)
        for kind, keys in (("Checkpoint", {"groups": groups, "sync_group_offsets_enabled": "true"}), ("Heartbeat", {})):
            config = mirror_config(source, target, topic, **more, **keys)
            bench.herder.create(
                f"{name}-{kind}", {**config, "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector"}
            )
            bench.drive(f"{name}-{kind}")
        yield bench
        assert all(bench.status(each).state is State.RUNNING for each in bench.herder.connectors())


def consume(kafka: Kafka, group: str, topics: list[str], count: int) -> list[str]:
    """Read and commit records as a member of a group, which ends then.

    The topics must exist: with another one the group would begin again at what it committed last.
    """
    eventually(lambda: all(map(kafka.partitions, topics)), what=f"{topics} at {kafka.bootstrap}")
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "topic.metadata.refresh.interval.ms": 500})
    found: list[str] = []

    def all_read() -> bool:
        messages = consumer.consume(count - len(found), 0.5)
        found.extend((message.value() or b"").decode() for message in messages if message.error() is None)
        return len(found) >= count

    try:
        consumer.subscribe(topics)
        eventually(all_read, what=f"{count} records of {topics} at {kafka.bootstrap}")
        consumer.commit(asynchronous=False)
        return found
    finally:
        consumer.close()


def committed(kafka: Kafka, group: str) -> dict[str, int]:
    """Return the sum of a group's offsets by topic."""
    (future,) = kafka.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    found: dict[str, int] = {}
    for place in future.result(LIMIT).topic_partitions:
        found[place.topic] = found.get(place.topic, 0) + place.offset
    return found


def write(kafka: Kafka, topic: str, values: list[str]) -> list[str]:
    for number, value in enumerate(values):
        kafka.produce(topic, value.encode(), partition=number % 2)
    return values


def test_a_consumer_fails_over_to_the_passive_cluster(kafka_bootstrap: str, west: EmbeddedBroker, unique: Names) -> None:
    source, target = Kafka(str(west.status().bootstrap)), Kafka(kafka_bootstrap)
    topic, group = source.create(unique("orders"), 2), unique("shop")
    remote = f"A.{topic}"
    first = write(source, topic, [f"first-{number}" for number in range(10)])
    with replication(source, target, "AB", topic, group, unique):
        assert sorted(consume(source, group, [topic], 10)) == sorted(first)
        second = write(source, topic, [f"second-{number}" for number in range(40)])
        before = consume(source, group, [topic], 20)
        eventually(lambda: committed(target, group).get(remote, 0) > 10, what="translated offsets of the second batch")
        eventually(lambda: len(target.read(remote, 50)) == 50, what="copies")
        assert committed(target, group)[remote] <= 30, "never beyond what was read"
        eventually(lambda: target.partitions("heartbeats") and target.partitions("A.checkpoints.internal"), what="heartbeats")
    west.stop()
    left = 50 - committed(target, group)[remote]
    after = consume(target, group, [remote], left)
    assert {*first, *before, *after} == {*first, *second}, "no record is missed"
    assert len(after) < 50, "it does not begin again"


def test_two_active_clusters_have_each_others_records_once_and_translate_both_ways(
    kafka_bootstrap: str, west: EmbeddedBroker, unique: Names
) -> None:
    clusters = {"A": Kafka(str(west.status().bootstrap)), "B": Kafka(kafka_bootstrap)}
    topic, group = unique("orders"), unique("shop")
    for kafka in clusters.values():
        kafka.create(topic, 2)
    written = {alias: write(kafka, topic, [f"{alias}{number}" for number in range(20)]) for alias, kafka in clusters.items()}
    with (
        replication(clusters["A"], clusters["B"], "AB", topic, f"{group}.*", unique),
        replication(clusters["B"], clusters["A"], "BA", topic, f"{group}.*", unique),
    ):
        for alias, other in (("A", "B"), ("B", "A")):
            read = consume(clusters[alias], f"{group}-{alias}", [topic, f"{other}.{topic}"], 40)
            assert sorted(read) == sorted([*written["A"], *written["B"]])
        for alias, other in (("A", "B"), ("B", "A")):
            translated = functools.partial(committed, clusters[other], f"{group}-{alias}")
            eventually(lambda translated=translated, alias=alias: translated().get(f"{alias}.{topic}") == 20, what="offsets")
        names = {alias: set(kafka.admin.list_topics(timeout=10).topics) for alias, kafka in clusters.items()}
    assert {name for name in names["B"] if name.endswith(topic)} == {topic, f"A.{topic}"}, "no copies of copies"
    assert {name for name in names["A"] if name.endswith(topic)} == {topic, f"B.{topic}"}
