"""Java source connectors write the same bytes as in a real Kafka Connect worker, and move from it and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.validation import plugin_config
from sluiceway.storage.factory import open_source_offsets
from support.engine import RunningTask
from support.eventually import eventually
from support.java_plugins import (
    CONNECT_FILE,
    SCRIPTED,
    compiled_plugin,
    fetch_runtime,
    first_task_config,
    forget_plugins,
    plugin_folder,
)
from support.kafka import Kafka, worker_for
from support.peer import FILE_SOURCE, PeerDistributed, change_state, put_config, wait_for_state

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.peer]

_COUNT = 1000


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    compiled_plugin(folder, "mixed", SCRIPTED)
    plugin_folder(folder, "connect-file", CONNECT_FILE)
    use_plugin_path({"plugin.path": str(folder), "plugin.java": "prefer"})
    yield folder
    forget_plugins()


def connect(worker: WorkerConfig, folder: Path, plugin_path: Path, discovery: str = "service_load") -> PeerDistributed:
    """Return a real worker on the same internal topics. A scan takes longer, but also finds plugins without manifests."""
    topics = (worker.config_topic, worker.offset_topic, worker.status_topic)
    extra = {"plugin.path": str(plugin_path), "plugin.discovery": discovery}
    return PeerDistributed(str(worker.raw["bootstrap.servers"]), worker.group_id, folder, topics, extra)


def run_here(worker: WorkerConfig, config: Mapping[str, str], until: Callable[[], object]) -> None:
    """Run the connector's task on the worker's offsets until a condition holds."""
    store = open_source_offsets(worker, config)
    store.start()
    try:
        with RunningTask(first_task_config(config), dict(worker.raw), store=store) as task:
            eventually(until)
            assert not task.stop().failed
    finally:
        store.stop()


def written(kafka: Kafka, topic: str) -> list[Any]:
    """Return the records, without the timestamps that the producer chose."""
    found = [(each.key(), each.value(), each.headers(), each.timestamp()[1]) for each in kafka.read(topic, _COUNT)]
    return [(*each[:3], each[3] if each[3] < 1_000_000 else None) for each in found]


def stored(kafka: Kafka, worker: WorkerConfig) -> dict[bytes, bytes]:
    """Return the newest value of each key of the offsets topic."""
    topic = worker.offset_topic
    count = sum(kafka.end(topic, partition) for partition in range(5))
    return {message.key(): message.value() for message in kafka.read(topic, count)}


def test_records_and_stored_offsets_are_those_of_kafka_connect(
    plugin_path: Path, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name = unique("mixed")
    workers = [worker_for(kafka.bootstrap, unique, **{"offset.flush.interval.ms": "300"}) for _ in range(2)]
    configs = [{"name": name, "connector.class": "test.MixedSource", "topic": kafka.create(unique("mixed"))} for _ in workers]
    for config in configs:
        config |= {f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")}

    run_here(workers[0], configs[0], lambda: kafka.end(configs[0]["topic"]) == _COUNT)
    with connect(workers[1], tmp_path / "peer", plugin_path, "only_scan") as peer:
        put_config(peer.rest, name, configs[1])
        eventually(lambda: kafka.end(configs[1]["topic"]) == _COUNT)
    assert written(kafka, configs[0]["topic"]) == written(kafka, configs[1]["topic"])
    ours = stored(kafka, workers[0])
    assert len(ours) == 6
    assert ours == stored(kafka, workers[1])


def test_a_java_connector_moves_from_kafka_connect_and_back(
    plugin_path: Path, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name, topic, source = unique("lines"), kafka.create(unique("lines")), tmp_path / "lines.txt"
    worker = worker_for(kafka.bootstrap, unique, **{"offset.flush.interval.ms": "300"})
    config = {"name": name, "connector.class": FILE_SOURCE, "file": str(source), "topic": topic}
    config |= {f"{part}.converter": "org.apache.kafka.connect.storage.StringConverter" for part in ("key", "value")}
    lines = [f"line {number}" for number in range(300)]

    def append(part: int) -> Callable[[], bool]:
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines[part * 100 : (part + 1) * 100])
        return lambda: kafka.end(topic) >= (part + 1) * 100

    arrived = append(0)
    with connect(worker, tmp_path / "peer", plugin_path) as peer:
        put_config(peer.rest, name, config)
        eventually(arrived)
        change_state(peer.rest, name, "stop")
        wait_for_state(peer.rest, name, "STOPPED", tasks=0)
    run_here(worker, config, append(1))
    arrived = append(2)
    with connect(worker, tmp_path / "again", plugin_path) as peer:
        change_state(peer.rest, name, "resume")
        eventually(arrived)
    assert kafka.values(topic, 300) == lines


def test_two_versions_of_a_plugin_run_in_one_process(tmp_path: Path) -> None:
    for name, artifact in (("old", "jdbc:3.3.1.Final"), ("new", "postgres:3.7.0.Final")):
        plugin_folder(tmp_path / "plugins", name, (f"io.debezium:debezium-connector-{artifact}",))
    use_plugin_path({"plugin.path": str(tmp_path / "plugins")})
    try:
        for name, key in (("jdbc.JdbcSinkConnector", "connection.url"), ("postgresql.PostgresConnector", "slot.name")):
            assert key in {each.name for each in plugin_config(f"io.debezium.connector.{name}")}
    finally:
        forget_plugins()
