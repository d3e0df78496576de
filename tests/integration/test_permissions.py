"""Source tasks whose principal lacks permissions, on a real Kafka with an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from sluiceway.api import SourceRecord, TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.kafka.committed_offsets import CommittedOffsets
from sluiceway.kafka.producer_transactions import Check, ProducerTransactions
from sluiceway.kafka.topic_writer import ProducerRecord
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from support.engine import Commands, Offsets, Reports, RunningTask, spec_of
from support.engine_connectors import SOURCE, script
from support.eventually import eventually

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECONDS = 30


class Guarded:
    """A broker that allows its own listener everything, and alice only what ACLs allow."""

    def __init__(self, folder: Path) -> None:
        ports = {name: free_port() for name in ("PLAINTEXT", "SASL_PLAINTEXT", "CONTROLLER")}
        listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
        self._broker = EmbeddedBroker(
            folder,
            port=ports["PLAINTEXT"],
            properties={
                "listeners": ",".join(listeners),
                "advertised.listeners": ",".join(listeners[:2]),
                "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} required user_alice="hunter2";',
            },
        )
        self.admin = AdminClient({"bootstrap.servers": self._broker.start()})
        self.worker = {
            "bootstrap.servers": f"127.0.0.1:{ports['SASL_PLAINTEXT']}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{LOGIN} required username="alice" password="hunter2";',
            "value.converter": "StringConverter",
            "key.converter": "StringConverter",
            "offset.storage.replication.factor": "1",
        }

    def topic(self, name: str, **settings: str) -> str:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(SECONDS)
        return name

    def allow(self, kind: ResourceType, name: str, *operations: AclOperation) -> None:
        acls = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW)
            for operation in operations
        ]
        for future in self.admin.create_acls(acls).values():
            future.result(SECONDS)
        wanted = AclBindingFilter(
            kind, name, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.ANY, AclPermissionType.ALLOW
        )
        eventually(lambda: len(self.admin.describe_acls(wanted).result(SECONDS)) >= len(acls), what="the broker to know them")

    def forbid(self, topic: str) -> None:
        """Delete alice's ACLs for a topic."""
        held = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.ANY, AclPermissionType.ALLOW
        )
        for future in self.admin.delete_acls([held]).values():
            future.result(SECONDS)
        eventually(lambda: not self.admin.describe_acls(held).result(SECONDS), what="the broker to know")

    def close(self) -> None:
        del self.admin  # it would report each second that the broker is away
        self._broker.stop()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    made = Guarded(tmp_path_factory.mktemp("guarded"))
    try:
        yield made
    finally:
        made.close()


def source(name: str, topic: str, **more: str) -> dict[str, str]:
    script(name, [SourceRecord({"p": 0}, {"o": 1}, topic, "a", STRING_SCHEMA)])
    return {"name": name, "connector.class": SOURCE, **{key.replace("_", "."): value for key, value in more.items()}}


def first_line(result: TaskResult) -> str:
    assert result.failed
    return (result.trace or "").splitlines()[0]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["nowhere", "elsewhere"])
@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_source_without_write_access_fails_and_names_topic_and_permission(
    guarded: Guarded, unique: Names, tolerance: str, elsewhere: bool
) -> None:
    """``elsewhere``: write access to any topic implies, in Kafka, permission for an idempotent producer."""
    topic, other, name = guarded.topic(unique("topic")), guarded.topic(unique("topic")), unique("connector")
    guarded.allow(ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
    guarded.allow(ResourceType.TOPIC, other, AclOperation.WRITE if elsewhere else AclOperation.DESCRIBE)
    offsets = Offsets()
    with RunningTask(source(name, topic, errors_tolerance=tolerance), guarded.worker, offsets=offsets) as task:
        said = first_line(task.join())
    assert f"topic {topic}" in said
    assert ("TOPIC_AUTHORIZATION_FAILED" if elsewhere else "CLUSTER_AUTHORIZATION_FAILED") in said
    assert "needs WRITE on the topic" in said
    assert offsets.puts == []
    if elsewhere:
        guarded.forbid(other)


def exactly_once(guarded: Guarded, unique: Names, config: dict[str, str], group: str) -> str:
    """Run an exactly-once source until it fails; return its trace."""
    offsets = guarded.topic(unique("offsets"), cleanup_policy="compact")
    guarded.allow(ResourceType.TOPIC, offsets, AclOperation.ALL)
    guarded.allow(ResourceType.GROUP, group, AclOperation.ALL)
    worker = {**guarded.worker, "group.id": group, "offset.storage.topic": offsets, "exactly.once.source.support": "enabled"}
    store = KafkaOffsetBackingStore(WorkerConfig.of(worker))
    store.start()
    try:
        from sluiceway.runtime.source.worker_source_task import run_source

        commands = Commands(lambda asked: TaskCommand.STOP if asked > 10_000 else None)
        return first_line(run_source(spec_of(config, worker), TaskServices(commands, Reports(), store)))
    finally:
        store.stop()
        guarded.forbid(offsets)


def test_an_exactly_once_source_without_access_to_its_transactional_id_fails_and_names_it(
    guarded: Guarded, unique: Names
) -> None:
    topic, name, group = guarded.topic(unique("topic")), unique("connector"), unique("group")
    guarded.allow(ResourceType.TOPIC, topic, AclOperation.WRITE)
    said = exactly_once(guarded, unique, source(name, topic), group)
    guarded.forbid(topic)
    assert f"{group}-{name}-0" in said
    assert "needs WRITE and DESCRIBE on the transactional id" in said


@pytest.mark.parametrize("late", [False, True], ids=["at-the-commit", "before-the-offsets"])
def test_an_exactly_once_source_without_write_access_fails_and_names_topic_and_permission(
    guarded: Guarded, unique: Names, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """``late``: the broker has refused the transaction before its offsets are written, which then fail for that."""
    topic, name, group = guarded.topic(unique("topic")), unique("connector"), unique("group")
    guarded.allow(ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
    guarded.allow(ResourceType.TRANSACTIONAL_ID, f"{group}-{name}-0", AclOperation.WRITE, AclOperation.DESCRIBE)
    send = ProducerTransactions.send

    def send_late(self: ProducerTransactions, records: Sequence[ProducerRecord], check: Check) -> None:
        eventually(lambda: "TOPIC_AUTHORIZATION_FAILED" in str(self.error(ConnectError("none"))), what="the broker to refuse it")
        send(self, records, check)

    if late:
        monkeypatch.setattr(ProducerTransactions, "send", send_late)
    said = exactly_once(guarded, unique, source(name, topic), group)
    assert f"topic {topic}" in said
    assert "needs WRITE on the topic" in said


def test_the_offsets_of_a_group_that_may_not_be_described_are_refused_by_that_name(guarded: Guarded, unique: Names) -> None:
    topic, group = guarded.topic(unique("topic")), unique("group")
    guarded.allow(ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
    offsets, partitions = CommittedOffsets(WorkerConfig.of(guarded.worker)), [TopicPartition(topic, 0)]
    with pytest.raises(KafkaClientError) as refused:
        offsets.read(group, partitions)
    assert refused.value.code == "GROUP_AUTHORIZATION_FAILED"
    guarded.allow(ResourceType.GROUP, group, AclOperation.DESCRIBE)
    assert offsets.read(group, partitions) == {}
