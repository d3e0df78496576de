"""Unknown keys in worker files. Kafka's own files have none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sluiceway.config import worker_keys
from sluiceway.config.properties import parse_properties
from sluiceway.config.worker import _COMMON, VALIDATES_REFERENCES, WorkerConfig
from sluiceway.config.worker_keys import unknown_keys
from sluiceway.rest.credentials import BASIC_FILE, TOKEN_FILE
from sluiceway.stack.worker_file import Readable, worker_properties

# What a server's certificate and clients may have, after ``listeners.https.ssl.``.
_TLS = """
    cipher.suites client.auth enabled.protocols endpoint.identification.algorithm engine.factory.class key.password
    keymanager.algorithm keystore.certificate.chain keystore.key keystore.location keystore.password keystore.type protocol
    provider secure.random.implementation trustmanager.algorithm truststore.certificates truststore.location
    truststore.password truststore.type
"""
# The keys of the files that come with Kafka, those in its comments included.
DISTRIBUTED = b"""
# Brokers of the cluster; both forms of a comment
! and an empty line follow

bootstrap.servers=localhost:9092
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
offset.storage.partitions=25
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
status.storage.partitions=5
offset.flush.interval.ms=10000
listeners=HTTP://:8083
rest.advertised.host.name=
rest.advertised.port=
rest.advertised.listener=
plugin.path=
"""
STANDALONE = b"""
bootstrap.servers=localhost:9092
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.file.filename=/tmp/connect.offsets
offset.flush.interval.ms=10000
plugin.path=/usr/local/share/java,/usr/local/share/kafka/plugins,
"""
SECURED = b"""
bootstrap.servers=b1:9093,\\
    b2:9093
group.id=g
rebalance.timeout.ms=60000
connect.protocol=sessioned
inter.worker.key.ttl.ms=3600000
exactly.once.source.support=enabled
connector.client.config.override.policy=All
metrics.recording.level=INFO
metrics.context.region=eu
config.storage.min.insync.replicas=2
listeners.https.ssl.keystore.location=/k
admin.listeners.https.ssl.key.password=p
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";
producer.security.protocol=SASL_SSL
producer.compression.type=zstd
producer.queue.buffering.max.ms=5
consumer.max.poll.records=500
admin.request.timeout.ms=1000
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.file.param.allowed.paths=/etc
sluiceway.heartbeat.interval.ms=5000
"""


@pytest.mark.parametrize("content", [DISTRIBUTED, STANDALONE, SECURED])
def test_kafkas_own_files_have_no_unknown_keys(content: bytes) -> None:
    properties = parse_properties(content)
    assert unknown_keys(properties) == {}
    assert WorkerConfig.of(properties).bootstrap_servers == properties["bootstrap.servers"].replace(" ", "")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("bootstrap.server", "bootstrap.servers"),
        ("offset.storage.replicaton.factor", "offset.storage.replication.factor"),
        ("producer.compresion.type", "producer.compression.type"),
        ("sasl.jaas.conf", "sasl.jaas.config"),
        ("listener", "listeners"),
        ("sluiceway.rest.basic.auth.fil", "sluiceway.rest.basic.auth.file"),
        ("sluiceway.heartbeat.intervall.ms", "sluiceway.heartbeat.interval.ms"),
        ("listeners.https.ssl.keystore.locaton", "listeners.https.ssl.keystore.location"),
        ("admin.listeners.https.ssl.key.pasword", "admin.listeners.https.ssl.key.password"),
        ("zzz", None),
    ],
)
def test_a_mistyped_key_is_reported_with_a_similar_one(key: str, meant: str | None) -> None:
    assert unknown_keys([key, "group.id"]) == {key: meant}


def test_every_documented_key_of_a_worker_file_is_known() -> None:
    names = [key.name for key in _COMMON] + [BASIC_FILE, TOKEN_FILE]
    tls = [f"{server}.https.ssl.{key}" for server in ("listeners", "admin.listeners") for key in _TLS.split()]
    assert unknown_keys([*names, *tls]) == {}
    for name in (*names, *tls):
        if len(name) > len("plugin.path"):
            assert unknown_keys([name[:-1]]) == {name[:-1]: name}


def test_unknown_keys_are_logged_once_and_without_their_values(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_keys, "_checked", set())
    for _ in range(2):
        with caplog.at_level(logging.WARNING):
            WorkerConfig.of({"sasl.jaas.conf": "hunter2", "zzz": "hunter2", "group.id": "g"})
    assert [record.getMessage() for record in caplog.records] == [
        "Unknown key sasl.jaas.conf in the worker's properties has no effect. Did you mean sasl.jaas.config?",
        "Unknown key zzz in the worker's properties has no effect.",
    ]


def _stacks(user: dict[str, str], listeners: str) -> dict[str, str]:
    readable, plugins = Readable.of(Path("/home/me")), Path("/home/me/plugins")
    return worker_properties(user, bootstrap=None, listeners=listeners, readable=readable, plugins=plugins)


def test_of_a_users_file_the_stack_changes_only_a_port_in_use_and_checks_references() -> None:
    user = parse_properties(DISTRIBUTED)
    assert _stacks(user, "http://127.0.0.1:8083") == {VALIDATES_REFERENCES: "true", "plugin.path": "/home/me/plugins", **user}
    moved = _stacks({**user, "listeners": "https://h:8083,http://i:1"}, "http://127.0.0.1:9")
    assert moved["listeners"] == "https://h:9,http://i:1"
    without = {key: value for key, value in user.items() if key != "listeners"}
    assert _stacks(without, "http://127.0.0.1:9")["listeners"] == "http://127.0.0.1:9"
