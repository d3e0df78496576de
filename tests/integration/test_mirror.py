"""MirrorSourceConnector between two real brokers: records, stored offsets, topics, settings and ACLs."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from sluiceway.connectors.mirror.source import MirrorSourceConnector
from sluiceway.herder import Herder
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.testing import SourceConnectorContract
from sluiceway.worker.connector_runner import ConnectorRunner, RunnerOutcome
from sluiceway.worker.driver import Driver
from sluiceway.worker.kafka_channel import KafkaChannels
from sluiceway.worker.task_launcher import ThreadLauncher
from support.driver import worker_of, worker_properties
from support.eventually import LIMIT, eventually

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]

_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "false",
}


class Kafka:
    """A client for one of the two brokers."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(LIMIT)
        eventually(lambda: self.partitions(topic) == partitions, what=f"topic {topic}")
        return topic

    def partitions(self, topic: str) -> int:
        found = self.admin.list_topics(timeout=10).topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def produce(self, topic: str, *values: bytes | None, partition: int = 0, **more: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            producer.produce(topic, value, partition=partition, **more)
        assert producer.flush(30) == 0

    def read(self, topic: str, count: int) -> list[Message]:
        """Return the ``count`` messages of a topic, and fail if there are more."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": uuid.uuid4().hex, "isolation.level": "read_committed"}
        )
        eventually(lambda: self.partitions(topic), what=f"topic {topic} at {self.bootstrap}")
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(self.partitions(topic))])
            messages: list[Message] = []
            eventually(lambda: messages.extend(consumer.consume(1000, 0.2)) or len(messages) >= count, what=f"{count} records")
            messages += consumer.consume(10, 0.3)
            assert len(messages) == count
            return messages
        finally:
            consumer.close()

    def values(self, topic: str, count: int) -> list[bytes | None]:
        return [message.value() for message in self.read(topic, count)]

    def settings(self, topic: str) -> dict[str, str | None]:
        (future,) = self.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        return {name: entry.value for name, entry in future.result(LIMIT).items()}

    def alter(self, topic: str, name: str, value: str | None) -> None:
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        (future,) = self.admin.incremental_alter_configs([resource]).values()
        future.result(LIMIT)

    def acls(self, topic: str) -> set[tuple[str, str, str]]:
        anyone: Any = None  # the client's stub asks for a str, but only None matches every principal and host
        found = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, anyone, anyone, AclOperation.ANY, AclPermissionType.ANY
        )
        acls = self.admin.describe_acls(found).result(LIMIT)
        return {(acl.principal, acl.operation.name, acl.permission_type.name) for acl in acls}

    def allow(self, topic: str, principal: str, operation: AclOperation) -> None:
        acl = AclBinding(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW
        )
        for future in self.admin.create_acls([acl]).values():
            future.result(LIMIT)


def mirror_config(source: Kafka, target: Kafka, topics: str, **more: str) -> dict[str, str]:
    """Return a config that refreshes topics every second."""
    return {
        "connector.class": "MirrorSource",
        "tasks.max": "2",
        "topics": topics,
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        "header.converter": _BYTES,
        "refresh.topics.interval.seconds": "1",
        "sync.topic.configs.interval.seconds": "1",
        "sync.topic.acls.interval.seconds": "1",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


class Bench:
    """Two clusters, and a driver whose tasks are threads; the worker's topics are on the target cluster."""

    def __init__(self, source: Kafka, target: Kafka, stores: Stores, properties: Mapping[str, str]) -> None:
        self.source, self.target, self.stores = source, target, stores
        self.worker = worker_of(properties)
        self.herder = Herder(self.worker, stores.config, stores.status, stores.offsets)
        self._drivers: list[tuple[Driver, Future[list[RunnerOutcome]]]] = []

    def drive(self, name: str) -> Driver:
        def runner(connector: str) -> ConnectorRunner:
            return ConnectorRunner(
                connector,
                worker=self.worker,
                config_store=self.stores.config,
                channel=KafkaChannels(self.worker, "one:1", self.stores, name).channel(connector),
                launcher=ThreadLauncher(),
                worker_id="one:1",
                exit_when_idle=True,
            )

        driver = Driver(self.stores.config, runner, only=[name])
        pool = ThreadPoolExecutor(1)
        self._drivers.append((driver, pool.submit(driver.run)))
        pool.shutdown(wait=False)
        return driver

    def mirror(self, name: str, topics: str, **more: str) -> str:
        """Start a MirrorSourceConnector and return its name."""
        self.herder.create(name, mirror_config(self.source, self.target, topics, **more))
        self.drive(name)
        return name

    def stop(self) -> None:
        while self._drivers:
            driver, outcome = self._drivers.pop()
            driver.stop("end of test")
            outcome.result(timeout=LIMIT)

    def status(self, name: str) -> Any:
        return self.herder.status(name).connector


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    broker = EmbeddedBroker(tmp_path_factory.mktemp("source-broker"), properties=_AUTHORIZER)
    yield Kafka(broker.start())
    broker.stop()


@pytest.fixture
def bench(source: Kafka, kafka_bootstrap: str, unique: Names) -> Iterator[Bench]:
    properties = {**worker_properties(kafka_bootstrap, unique("mirror")), "offset.flush.interval.ms": "200"}
    with open_stores(worker_of(properties)) as stores:
        made = Bench(source, Kafka(kafka_bootstrap), stores, properties)
        yield made
        made.stop()


def test_records_are_copied_byte_for_byte_to_the_same_partitions(bench: Bench, unique: Names) -> None:
    topic = bench.source.create(unique("orders"), 3)
    headers = [("trace", b"\x00\xff"), ("trace", b""), ("none", None)]
    bench.source.produce(topic, b"\xfe\x00", partition=2, key=b"\xff", headers=headers, timestamp=1_234_567_890_123)
    bench.source.produce(topic, None, partition=1, key=b"gone")
    bench.source.produce(topic, b"", partition=0)
    name = bench.mirror(unique("m"), topic)
    copies = {message.partition(): message for message in bench.target.read(f"A.{topic}", 3)}
    full, tombstone, empty = copies[2], copies[1], copies[0]
    assert (full.key(), full.value(), full.headers()) == (b"\xff", b"\xfe\x00", headers)
    assert full.timestamp()[1] == 1_234_567_890_123
    assert (tombstone.key(), tombstone.value(), tombstone.headers()) == (b"gone", None, None)
    assert (empty.key(), empty.value()) == (None, b"")
    assert bench.target.partitions(f"A.{topic}") == 3
    partitions = [{"cluster": "A", "partition": number, "topic": topic} for number in range(3)]
    eventually(lambda: all(bench.stores.offsets.get(name, partitions)), what="stored offsets")
    assert bench.stores.offsets.get(name, partitions) == [{"offset": 0}] * 3


def test_a_restarted_connector_continues_after_the_last_record(bench: Bench, unique: Names) -> None:
    topic = bench.source.create(unique("orders"))
    bench.source.produce(topic, b"1", b"2")
    name = bench.mirror(unique("m"), topic)
    assert bench.target.values(f"A.{topic}", 2) == [b"1", b"2"]
    bench.stop()
    bench.source.produce(topic, b"3", b"4")
    bench.drive(name)
    assert bench.target.values(f"A.{topic}", 4) == [b"1", b"2", b"3", b"4"]


def test_new_topics_and_partitions_are_found(bench: Bench, unique: Names) -> None:
    prefix = unique("orders")
    first = bench.source.create(f"{prefix}.first")
    bench.source.produce(first, b"1")
    bench.mirror(unique("m"), f"{prefix}.*")
    assert bench.target.values(f"A.{first}", 1) == [b"1"]
    second = bench.source.create(f"{prefix}.second")
    bench.source.produce(second, b"2")
    assert bench.target.values(f"A.{second}", 1) == [b"2"]
    bench.source.admin.create_partitions([NewPartitions(first, 2)])[first].result(LIMIT)
    eventually(lambda: bench.target.partitions(f"A.{first}") == 2, what="the new partition")
    bench.source.produce(first, b"3", partition=1)
    assert set(bench.target.values(f"A.{first}", 2)) == {b"1", b"3"}


@pytest.mark.long
def test_the_identity_policy_keeps_names(bench: Bench, unique: Names) -> None:
    topic = bench.source.create(unique("orders"))
    bench.source.produce(topic, b"1")
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    bench.mirror(unique("m"), topic, replication_policy_class=policy)
    assert bench.target.values(topic, 1) == [b"1"]


def test_topics_from_the_target_cluster_and_excluded_ones_are_not_copied(bench: Bench, unique: Names) -> None:
    prefix = unique("orders")
    topic, circle, excluded = bench.source.create(prefix), bench.source.create(f"B.{prefix}"), bench.source.create(f"{prefix}.no")
    for each in (topic, circle, excluded):
        bench.source.produce(each, b"1")
    bench.mirror(unique("m"), f".*{prefix}.*", topics_exclude=r".*\.no")
    assert bench.target.values(f"A.{topic}", 1) == [b"1"]
    assert not bench.target.partitions(f"A.{circle}")
    assert not bench.target.partitions(f"A.{excluded}")


@pytest.mark.long
def test_remote_topics_have_their_source_topics_settings(bench: Bench, unique: Names) -> None:
    topic = bench.source.create(unique("orders"), retention_ms="1234567", cleanup_policy="compact", min_insync_replicas="2")
    bench.mirror(unique("m"), topic)
    eventually(lambda: bench.target.partitions(f"A.{topic}"), what="the remote topic")
    settings = bench.target.settings(f"A.{topic}")
    wanted = {"retention.ms": "1234567", "cleanup.policy": "compact", "min.insync.replicas": "1"}
    assert {name: settings[name] for name in wanted} == wanted
    bench.source.alter(topic, "segment.bytes", "2000000")
    eventually(lambda: bench.target.settings(f"A.{topic}")["segment.bytes"] == "2000000", what="the changed setting")
    bench.source.alter(topic, "retention.ms", None)
    eventually(lambda: bench.target.settings(f"A.{topic}")["retention.ms"] == "604800000", what="the default again")


def test_read_acls_are_copied_to_remote_topics_and_write_acls_are_not(kafka_bootstrap: str, source: Kafka, unique: Names) -> None:
    """Source and target are the broker with ACLs: the shared broker has none."""
    properties = worker_properties(source.bootstrap, unique("mirror"))
    topic = source.create(unique("orders"))
    source.allow(topic, "User:reader", AclOperation.READ)
    source.allow(topic, "User:writer", AclOperation.WRITE)
    source.allow(topic, "User:all", AclOperation.ALL)
    with open_stores(worker_of(properties)) as stores:
        bench = Bench(source, source, stores, properties)
        try:
            bench.mirror(unique("m"), topic)
            eventually(lambda: len(source.acls(f"A.{topic}")) >= 2, what="ACLs of the remote topic")
        finally:
            bench.stop()
    assert source.acls(f"A.{topic}") == {("User:reader", "READ", "ALLOW"), ("User:all", "READ", "ALLOW")}


def test_offset_syncs_map_source_offsets_to_target_offsets(bench: Bench, unique: Names) -> None:
    topic, alias = bench.source.create(unique("orders"), 2), unique("B")
    bench.target.create(f"A.{topic}", 2)
    bench.target.produce(f"A.{topic}", b"there already", partition=1)
    bench.source.produce(topic, b"1", b"2", b"3", partition=1)
    bench.mirror(unique("m"), topic, target_cluster_alias=alias)
    syncs = bench.source.read(f"mm2-offset-syncs.{alias}.internal", 2)
    length = len(topic)
    keys = {struct.unpack(f">h{length}si", sync.key() or b"") for sync in syncs}
    assert keys == {(length, topic.encode(), 1)}
    assert [struct.unpack(">qq", sync.value() or b"") for sync in syncs] == [(0, 1), (2, 3)]
    assert bench.source.settings(f"mm2-offset-syncs.{alias}.internal")["cleanup.policy"] == "compact"


@pytest.mark.long
def test_an_impossible_replication_factor_is_explained(bench: Bench, unique: Names) -> None:
    topic = bench.source.create(unique("orders"))
    name = bench.mirror(unique("m"), topic, replication_factor="2")
    eventually(lambda: bench.status(name).state.value == "FAILED", what="FAILED")
    assert "Set 'replication.factor' (2) to at most the number of brokers of the target cluster" in bench.status(name).trace


class TestMirrorSourceContract(SourceConnectorContract):
    connector_class = MirrorSourceConnector
    record_count: ClassVar[int] = 5
    tasks_max: ClassVar[int] = 2

    @pytest.fixture
    def config(self, source: Kafka, kafka_bootstrap: str, unique: Names) -> dict[str, str]:
        topic = source.create(unique("contract"), 2)
        source.produce(topic, b"1", b"2", b"3", partition=0)
        source.produce(topic, b"4", None, partition=1, key=b"k", headers=[("h", b"1")])
        target = Kafka(kafka_bootstrap)
        return {"name": "contract", **mirror_config(source, target, topic)}

    def bad_configs(self, config: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
        required = ("source.cluster.alias", "source.cluster.bootstrap.servers", "target.cluster.bootstrap.servers")
        for missing in required:
            yield {name: value for name, value in config.items() if name != missing}
        yield {**config, "topics": "["}
        yield {**config, "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultTopicFilter"}
