"""Published Java plugins on a real broker: Iceberg's sink, MirrorMaker, MongoDB's sink, and Apicurio's Avro converter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from sluiceway.config.worker import WorkerConfig
from sluiceway.converters.registry.avro import AvroConverter
from sluiceway.discovery import connector_class
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.validation import validate_config
from support.apicurio import apicurio_api
from support.engine import Offsets, RunningTask
from support.eventually import LIMIT, eventually
from support.java_plugins import CONNECT_FILE, fetch_runtime, first_task_config, forget_plugins, java_processes, plugin_folder
from support.kafka import Kafka
from support.published_plugins import APICURIO, MIRROR, MONGO, iceberg_folder
from support.schema_registry import schema_registry
from support.sink_bench import IcebergTable

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

Names = Callable[[str], str]

_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_ICEBERG = "org.apache.iceberg.connect.IcebergSinkConnector"
_MIRROR = "org.apache.kafka.connect.mirror.Mirror"
_FILE = "org.apache.kafka.connect.file.FileStream"
_MONGO = "com.mongodb.kafka.connect.MongoSinkConnector"


@pytest.fixture(scope="module", autouse=True)
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    iceberg_folder(folder)
    plugin_folder(folder, "mirror", MIRROR)
    plugin_folder(folder, "mongo", MONGO)
    plugin_folder(folder, "file", CONNECT_FILE)
    plugin_folder(folder, "apicurio", APICURIO)
    use_plugin_path({"plugin.path": str(folder), "plugin.java": "prefer"})
    yield folder
    forget_plugins()


def iceberg_sink(kafka: Kafka, name: str, topic: str, control: str, warehouse: Path) -> dict[str, str]:
    config = {"name": name, "connector.class": _ICEBERG, "topics": topic, "iceberg.tables": "db.orders"}
    config |= {"key.converter": _STRINGS, "value.converter": _JSON, "value.converter.schemas.enable": "false"}
    config |= {"iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": warehouse.as_uri()}
    config |= {f"iceberg.tables.{key}-enabled": "true" for key in ("auto-create", "evolve-schema")}
    config |= {"iceberg.control.topic": control, "iceberg.control.commit.interval-ms": "2000"}
    config |= {"iceberg.control.commit.timeout-ms": "5000"}
    config |= {"iceberg.kafka.bootstrap.servers": kafka.bootstrap}
    return first_task_config(config)


def test_icebergs_sink_writes_each_record_once_and_commits_its_offsets_itself(
    kafka: Kafka, topic: str, unique: Names, tmp_path: Path
) -> None:
    name, control, table = unique("iceberg"), kafka.create(unique("control")), IcebergTable(tmp_path)
    config = iceberg_sink(kafka, name, topic, control, tmp_path)
    for run in range(2):
        ids = range(run * 500, run * 500 + 500)
        kafka.produce(topic, *(json.dumps({"id": number, "name": f"n{number}"}) for number in ids))
        with RunningTask(config, kafka.worker(task_shutdown_graceful_timeout_ms="20000")) as task:
            eventually(lambda run=run: task.result is not None or table() >= 500 * (run + 1), what="the rows")
            result = task.stop()
        assert not result.failed, result.trace
    assert table() == 1000
    rows = StaticTable.from_metadata(str(table._newest())).scan(selected_fields=("id",)).to_arrow()
    assert sorted(rows.column("id").to_numpy().tolist()) == list(range(1000))
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1000}
    assert java_processes() == []


def mirror(kafka: Kafka, kind: str, name: str, **more: str) -> dict[str, str]:
    """Return the config of a MirrorMaker connector from a cluster to itself."""
    clusters = {"source.cluster.alias": "a", "target.cluster.alias": "b"}
    clusters |= {f"{each}.cluster.bootstrap.servers": kafka.bootstrap for each in ("source", "target")}
    converters = dict.fromkeys(("key.converter", "value.converter", "header.converter"), _BYTES)
    given = {key.replace("_", "."): value for key, value in more.items()}
    config = {"name": name, "connector.class": f"{_MIRROR}{kind}Connector", **clusters, **converters, **given}
    return {**first_task_config(config), **converters}


def test_mirrormakers_three_connectors_copy_records_offsets_and_heartbeats(kafka: Kafka, topic: str, unique: Names) -> None:
    group, replication = unique("group"), {"replication_factor": "1", "checkpoints_topic_replication_factor": "1"}
    replication |= {f"{each}.topic.replication.factor": "1" for each in ("heartbeats", "offset-syncs")}
    kafka.produce(topic, *(f"v{number}" for number in range(50)), key=b"k", headers=[("h", b"1")])
    source = mirror(kafka, "Source", unique("mirror"), topics=topic, offset_lag_max="0", **replication)
    stored = Offsets()
    with RunningTask(source, kafka.worker(offset_flush_interval_ms="500"), offsets=stored, sink=False) as task:
        eventually(lambda: kafka_end(kafka, f"a.{topic}") == 50, what="the copies")
        eventually(lambda: bool(stored.stored), what="the offsets")
        result = task.stop()
    assert not result.failed, result.trace
    copy = kafka.read(f"a.{topic}", 50)[7]
    assert (copy.key(), copy.value(), copy.headers()) == (b"k", b"v7", [("h", b"1")])
    found = [(json.loads(key), offset) for (_, key), offset in stored.stored.items()]
    # MirrorMaker copies other tests' heartbeats, too.
    copied = [each for each in found if not each[0]["topic"].endswith("heartbeats")]
    assert copied == [({"cluster": "a", "partition": 0, "topic": topic}, {"offset": 49})]
    assert kafka_end(kafka, "mm2-offset-syncs.b.internal") > 0, "commitRecord gets the offset in Kafka"

    kafka.set_offsets(group, {(topic, 0): 50})
    intervals = {"emit_checkpoints_interval_seconds": "1", "refresh_groups_interval_seconds": "5"}
    checkpoints = mirror(kafka, "Checkpoint", unique("checkpoint"), groups=group, topics=topic, **intervals, **replication)
    heartbeats = mirror(kafka, "Heartbeat", unique("heartbeat"), emit_heartbeats_interval_seconds="1", **replication)
    for config, written in ((checkpoints, "a.checkpoints.internal"), (heartbeats, "heartbeats")):
        with RunningTask(config, kafka.worker(), sink=False) as task:
            eventually(lambda written=written: kafka_end(kafka, written) > 0, what=written)
            assert not task.stop().failed
    assert java_processes() == []


def kafka_end(kafka: Kafka, topic: str) -> int:
    """Return the number of records in a topic, 0 if there is no such topic."""
    known = kafka.admin.list_topics(timeout=10).topics
    return kafka.end(topic) if topic in known else 0


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({}, []),
        ({"connection.uri": "http://wrong"}, ["The connection string is invalid"]),
        ({"delete.on.null.values": "perhaps"}, ["Expected value to be either true or false"]),
    ],
)
def test_mongodbs_sink_is_validated_by_its_own_definition(more: Mapping[str, str], wanted: list[str]) -> None:
    config = {"name": "c", "connector.class": _MONGO, "topics": "t", "database": "d", **more}
    errors = validate_config(config, WorkerConfig.of({"bootstrap.servers": "localhost:1"})).errors
    connection = [each for each in errors if "Unable to connect to the server" not in each]
    assert len(connection) == len(wanted), errors
    assert all(text in error for text, error in zip(wanted, connection, strict=True))


def test_mongodbs_sink_fails_with_its_own_error_for_a_record_it_cannot_write(kafka: Kafka, topic: str, name: str) -> None:
    assert connector_class(_MONGO).version() == "2.0.1"
    uri = "mongodb://localhost:1/?serverSelectionTimeoutMS=500"
    config = {"name": name, "connector.class": _MONGO, "topics": topic, "database": "d", "connection.uri": uri}
    config |= {"task.class": "com.mongodb.kafka.connect.sink.MongoSinkTask", "key.converter": _STRINGS}
    kafka.produce(topic, "no document")
    with RunningTask({**config, "value.converter": _STRINGS}, kafka.worker()) as task:
        result = task.join(LIMIT)
    assert "com.mongodb.kafka.connect.sink" in (result.trace or ""), result.trace
    assert "DataException" in (result.trace or "") or "MongoTimeoutException" in (result.trace or ""), result.trace
    assert java_processes() == []


@pytest.mark.parametrize("stages", [{}, {"same": "support.java_plugins.Same"}], ids=["java", "mixed"])
def test_apicurios_avro_converter_writes_and_reads_with_a_registry(
    kafka: Kafka, topic: str, name: str, tmp_path: Path, stages: Mapping[str, str]
) -> None:
    (tmp_path / "in").write_text("".join(f"line {number}\n" for number in range(40)))
    with schema_registry() as registry, apicurio_api(registry) as url:
        avro = {"value.converter": "io.apicurio.registry.utils.converter.AvroConverter", "key.converter": _STRINGS}
        options = {"url": url, "auto-register": "true", "as-confluent": "true", "headers.enabled": "false"}
        avro |= {f"value.converter.apicurio.registry.{key}": value for key, value in options.items()}
        chain = {"hoist": "org.apache.kafka.connect.transforms.HoistField$Value", **stages}
        source = {"name": name, "connector.class": f"{_FILE}SourceConnector", "task.class": f"{_FILE}SourceTask"}
        source |= {"file": str(tmp_path / "in"), "topic": topic, "transforms": ",".join(chain), "transforms.hoist.field": "text"}
        source |= {f"transforms.{alias}.type": each for alias, each in chain.items()}
        with RunningTask({**source, **avro}, kafka.worker(), bounded=True) as task:
            result = task.join()
        assert not result.failed, result.trace

        converter = AvroConverter()  # ours reads what Apicurio's has written
        converter.configure({"schema.registry.url": registry.url})
        found = [converter.to_connect_data(topic, message.value()).value["text"] for message in kafka.read(topic, 40)]
        assert found == [f"line {number}" for number in range(40)]

        sink = {"name": name, "connector.class": f"{_FILE}SinkConnector", "task.class": f"{_FILE}SinkTask", "topics": topic}
        more = {f"transforms.{alias}.type": each for alias, each in stages.items()} | {"transforms": ",".join(stages)}
        with RunningTask({**sink, **avro, **more, "file": str(tmp_path / "out")}, kafka.worker(), bounded=True) as task:
            result = task.join()
        assert not result.failed, result.trace
    assert (tmp_path / "out").read_text().splitlines() == [f"Struct{{text=line {number}}}" for number in range(40)]
    assert java_processes() == []
