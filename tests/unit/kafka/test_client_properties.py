"""The Java clients' properties as librdkafka's."""

from __future__ import annotations

import pytest

from sluiceway.config.client_keys import CLIENT_KEYS
from sluiceway.config.parsing import Type
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.kafka import clients
from sluiceway.kafka.client_properties import REFUSED
from sluiceway.kafka.clients import consumer, consumer_config, producer, producer_config, to_librdkafka

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
SAMPLES = {Type.BOOLEAN: "false", Type.INT: "20000", Type.LONG: "20000", Type.SHORT: "30", Type.DOUBLE: "0.5"}
VALUES = {
    "acks": "all",
    "auto.offset.reset": "latest",
    "batch.size": "16384",
    "bootstrap.servers": "b:9092",
    "client.dns.lookup": "use_all_dns_ips",
    "compression.type": "lz4",
    "fetch.max.bytes": "52428800",
    "fetch.max.wait.ms": "500",
    "fetch.min.bytes": "1",
    "group.protocol": "classic",
    "isolation.level": "read_committed",
    "linger.ms": "5",
    "max.in.flight.requests.per.connection": "5",
    "max.poll.interval.ms": "300000",
    "retries": "2147483647",
    "session.timeout.ms": "45000",
    "heartbeat.interval.ms": "3000",
    "security.protocol": "PLAINTEXT",
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor,"
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    "retry.backoff.ms": "100",
    "retry.backoff.max.ms": "1000",
    "reconnect.backoff.ms": "50",
    "delivery.timeout.ms": "120000",
    "enable.idempotence": "true",
    "transaction.timeout.ms": "60000",
    "send.buffer.bytes": "131072",
    "receive.buffer.bytes": "65536",
}
NOT_WITH_EACH_OTHER = {"group.remote.assignor", "group.instance.id", "transactional.id"}


@pytest.mark.parametrize("kind", ["producer", "consumer", "admin"])
def test_librdkafka_takes_every_key_of_the_java_client(kind: str) -> None:
    keys = {key: type_ for key, type_ in CLIENT_KEYS[kind].items() if key not in REFUSED and key not in NOT_WITH_EACH_OTHER}
    java = {key: VALUES.get(key, SAMPLES.get(type_, "x")) for key, type_ in keys.items()}
    mapped = to_librdkafka(java)
    made = consumer({**mapped, "group.id": "g"}) if kind == "consumer" else producer(mapped)
    if kind == "consumer":
        made.close()


@pytest.mark.parametrize(
    ("java", "refresh"),
    [
        ({"metadata.max.age.ms": "2000"}, "2000"),
        ({"metadata.max.age.ms": "0"}, "1"),
        ({"metadata.max.age.ms": "7200000"}, "3600000"),
        ({"topic.metadata.refresh.interval.ms": "9", "metadata.max.age.ms": "2000"}, "9"),
        ({"metadata.max.age.ms": "2000", "topic.metadata.refresh.interval.ms": "9"}, "9"),
    ],
)
def test_metadata_max_age_sets_the_refresh_interval(java: dict[str, str], refresh: str) -> None:
    config = consumer_config(WorkerConfig.of({}), "id", "group", java)
    assert config["topic.metadata.refresh.interval.ms"] == refresh
    consumer({**config, "bootstrap.servers": "b:9092"}).close()


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_properties_that_require_java_are_refused_with_a_reason(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        to_librdkafka({"security.protocol": "SASL_SSL", key: "com.example.Thing"})


def test_renamed_and_converted_keys_keep_their_meaning() -> None:
    java = {
        "fetch.max.wait.ms": "1",
        "max.request.size": "2000",
        "request.timeout.ms": "3000",
        "send.buffer.bytes": "4",
        "max.partition.fetch.bytes": "5",
        "buffer.memory": "33554432",
        "auto.offset.reset": "None",
        "max.poll.records": "7",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    }
    assert to_librdkafka(java) == {
        "fetch.wait.max.ms": "1",
        "message.max.bytes": "2000",
        "socket.timeout.ms": "3000",
        "socket.send.buffer.bytes": "4",
        "fetch.message.max.bytes": "5",
        "queue.buffering.max.kbytes": "32768",
        "auto.offset.reset": "error",
        "partition.assignment.strategy": "cooperative-sticky",
    }


def test_eager_assignors_win_over_cooperative_ones() -> None:
    names = "org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert to_librdkafka({"partition.assignment.strategy": names}) == {"partition.assignment.strategy": "range"}
    assert to_librdkafka({"partition.assignment.strategy": "com.example.Mine"}) == {}


def test_librdkafkas_own_keys_are_kept() -> None:
    own = {
        "linger.ms": "3",
        "statistics.interval.ms": "1000",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
        "ssl.ca.location": "/ca.pem",
    }
    assert to_librdkafka(own) == own


def test_security_settings_that_the_protocol_does_not_use_are_dropped() -> None:
    rests = {"ssl.keystore.location": "/no/such.jks", "ssl.client.auth": "required", "sasl.jaas.config": "broken"}
    assert to_librdkafka(rests) == {}
    assert to_librdkafka({**rests, "security.protocol": "plaintext"}) == {"security.protocol": "PLAINTEXT"}


def test_the_last_layer_with_a_login_wins() -> None:
    def jaas(user: str) -> str:
        return f'{PLAIN} required username="{user}" password="secret-{user}";'

    worker = WorkerConfig.of({**SASL, "sasl.jaas.config": jaas("w"), "producer.sasl.jaas.config": jaas("p")})
    assert producer_config(worker, "c")["sasl.username"] == "p"
    assert consumer_config(worker, "c", "g")["sasl.username"] == "w"
    overridden = producer_config(worker, "c", {"sasl.jaas.config": jaas("o"), "sasl.mechanism": "SCRAM-SHA-512"})
    assert (overridden["sasl.username"], overridden["sasl.mechanism"]) == ("o", "SCRAM-SHA-512")
    assert overridden["sasl.password"] == "secret-o"
    assert "sasl.jaas.config" not in overridden
    assert clients.internal_producer_config(worker, "c")["sasl.username"] == "w"


def test_an_override_disables_security_for_one_client() -> None:
    worker = WorkerConfig.of({**SASL, "sasl.jaas.config": f'{PLAIN} required username="u" password="p";'})
    config = consumer_config(worker, "c", "g", {"security.protocol": "PLAINTEXT"})
    assert not [key for key in config if key.startswith("sasl.")]


def test_an_admin_client_uses_a_connectors_overrides() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.controllers"):
        clients.admin_client(WorkerConfig.of({}), {"bootstrap.controllers": "c:9093"})
