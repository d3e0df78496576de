"""Previews of every built-in connector on a real broker: records are shown, and nothing is written anywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from fastapi.testclient import TestClient
from redis import Redis

from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, java_name
from sluiceway.herder import Herder
from sluiceway.rest.app import make_app
from sluiceway.storage.factory import Stores, open_stores
from support.aws_server import AwsServer
from support.database import HOST, POSTGRESQL, SQLITE, DatabaseForTest
from support.dlt_targets import DuckDbTarget
from support.eventually import LIMIT
from support.gcs_server import gcs_server
from support.http_server import HttpServer, ItemList
from support.kafka import Kafka
from support.metric_targets import Answer, answering
from support.nats_server import NatsServer
from support.preview_connectors import SINK
from support.rabbitmq_server import RabbitServer
from support.redis_server import RedisServer
from support.s3_server import s3_server
from support.search import SearchServer
from support.singer_taps import fake_config
from support.table_source import SourceLake, numbers

pytestmark = pytest.mark.kafka

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
NOWHERE = "http://127.0.0.1:9"  # no server: a preview of a file sink does not ask the storage
ROWS = [
    json.dumps(
        {
            "schema": {
                "type": "struct",
                "fields": [{"field": "id", "type": "int64"}, {"field": "name", "type": "string", "optional": True}],
            },
            "payload": {"id": number, "name": f"n{number}"},
        }
    )
    for number in range(1, 4)
]


@dataclass(frozen=True)
class Lab:
    """The broker, a topic with three rows, and a folder for files and databases."""

    kafka: Kafka
    topic: str
    folder: Path
    request: pytest.FixtureRequest
    unique: Callable[[str], str]
    others: frozenset[str]
    """Topics of other modules, which may still change: the broker ends the transactions of tasks that were killed there."""
    servers: list[DatabaseForTest] = field(default_factory=list)

    @property
    def sqlite(self) -> DatabaseForTest:
        file = self.folder / "test.db"
        return DatabaseForTest(SQLITE, str(file), f"jdbc:sqlite:{file}")

    def table(self) -> DatabaseForTest:
        """Return a SQLite database with a table of three rows."""
        self.sqlite.execute("create table orders (id integer primary key, name text)")
        self.sqlite.execute("insert into orders values (1, 'n1'), (2, 'n2'), (3, 'n3')")
        return self.sqlite

    def lake(self, table_format: str) -> SourceLake:
        """Return tables with a table of three rows."""
        lake = SourceLake(table_format, self.folder)
        lake.append(numbers(1, 4))
        return lake

    def server(self, kind: str) -> DatabaseForTest:
        database: DatabaseForTest = self.request.getfixturevalue(kind)
        database.execute("create table orders (id int primary key, name varchar(10))")
        database.execute("insert into orders values (1, 'n1')")
        self.servers.append(database)
        return database

    def file(self, name: str = "in.txt", text: str = "one\ntwo\nthree\n") -> str:
        file = self.folder / name
        file.write_text(text)
        return str(file)


Config = dict[str, str]


def change_capture(lab: Lab, kind: str) -> Config:
    database = lab.server(kind)
    return {
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": database.user,
        "database.password": database.password,
        "topic.prefix": "shop",
    }


def binlog(lab: Lab) -> Config:
    history = {
        "schema.history.internal.kafka.topic": lab.unique("history"),
        "schema.history.internal.kafka.bootstrap.servers": lab.kafka.bootstrap,
    }
    return {**change_capture(lab, "mariadb"), **history, "database.server.id": "7"}


def postgres(lab: Lab) -> Config:
    database = lab.request.getfixturevalue("postgresql")
    return {**change_capture(lab, "postgresql"), "database.dbname": database.name, "slot.name": "preview"}


def mirror(lab: Lab) -> Config:
    return {
        "topics": lab.topic,
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": lab.kafka.bootstrap,
        "target.cluster.bootstrap.servers": lab.kafka.bootstrap,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
    }


def jdbc_source(lab: Lab) -> Config:
    return {**lab.table().config, "mode": "incrementing", "incrementing.column.name": "id", "topic.prefix": "p-"}


def tables(table_format: str) -> Callable[[Lab], Config]:
    def config(lab: Lab) -> Config:
        found = lab.lake(table_format).config(topic="rows")
        return {key: value for key, value in found.items() if key not in ("name", "connector.class")}

    return config


def into_tables(table_format: str) -> Callable[[Lab], Config]:
    def config(lab: Lab) -> Config:
        places = {key: value for key, value in tables(table_format)(lab).items() if "catalog" in key or key.endswith(".path")}
        return {**places, f"{table_format}.tables": "db.t", f"{table_format}.tables.auto-create-enabled": "true"}

    return config


def compaction(table_format: str) -> Callable[[Lab], Config]:
    return lambda lab: {
        key: value for key, value in tables(table_format)(lab).items() if key not in ("topic", "poll.interval.ms")
    }


def search_index(_lab: Lab) -> dict[str, str]:
    return {"connection.url": "http://127.0.0.1:1", "key.ignore": "true"}


def indexed(lab: Lab) -> dict[str, str]:
    server: SearchServer = lab.request.getfixturevalue("search")
    index = lab.unique("preview").lower()
    for number in range(1, 4):
        server.call("PUT", f"/{index}/_doc/{number}?refresh=true", {"id": number})
    return {"connection.url": server.url, "index": index}


def prometheus(lab: Lab) -> dict[str, str]:
    address = lab.request.getfixturevalue("metric_target")
    return {"topic": "metrics", "targets": address, "scrape.interval.ms": "1000", "scrape.timeout.ms": "1000"}


def http_list(lab: Lab) -> dict[str, str]:
    server: HttpServer = lab.request.getfixturevalue("http_items")
    own = {"http.response.list.pointer": "/items", "http.response.record.offset.pointer": "key=/id, timestamp=/updated"}
    schemaless = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    return {"http.request.url": f"{server.url}/none", "kafka.topic": "items", **own, **schemaless}


def rabbit(kind: str) -> Callable[[Lab], Config]:
    """Return the maker of a config that names a queue of a kind with three messages."""

    def config(lab: Lab) -> Config:
        server: RabbitServer = lab.request.getfixturevalue("rabbitmq")
        queue = lab.unique("preview")
        server.declare(queue, kind)
        server.publish(queue, *map(str, range(1, 4)))
        converters = {"value.converter": "ByteArrayConverter", "key.converter": "StringConverter"}
        return {**server.config, "rabbitmq.queue": queue, **converters}

    return config


def nats_stream(lab: Lab) -> Config:
    server: NatsServer = lab.request.getfixturevalue("nats")
    stream = lab.unique("preview")
    server.create(stream)
    server.publish(stream, *map(str, range(1, 4)))
    return {**server.config, "nats.streams": stream, "value.converter": "ByteArrayConverter", "key.converter": "StringConverter"}


def kinesis_stream(lab: Lab) -> Config:
    server: AwsServer = lab.request.getfixturevalue("aws")
    stream = lab.unique("preview")
    server.create_stream(stream)
    server.put(stream, *map(str, range(1, 4)))
    return {
        **server.config("kinesis"),
        "kinesis.stream": stream,
        "value.converter": "ByteArrayConverter",
        "key.converter": "StringConverter",
    }


def rabbit_sink(lab: Lab) -> Config:
    return dict(lab.request.getfixturevalue("rabbitmq").config)


def redis_stream(lab: Lab) -> Config:
    uri = lab.request.getfixturevalue("redis")
    stream = lab.unique("preview")
    with closing(Redis.from_url(uri)) as client:
        for number in range(1, 4):
            client.xadd(stream, {"id": number})
    return {"redis.uri": uri, "redis.stream.name": stream}


def singer(_lab: Lab) -> Config:
    config = fake_config({"streams": {"orders": {"rows": 20}}})
    return {key: config[key] for key in ("singer.tap", "singer.config")}


def redis_sink(lab: Lab) -> Config:
    return {"redis.uri": lab.request.getfixturevalue("redis")}


def local_files(lab: Lab) -> Config:
    return {"path": str(lab.folder / "out"), "flush.size": "3"}


def confluent_files(**keys: str) -> Callable[[Lab], Config]:
    json_format = "io.confluent.connect.{}.format.json.JsonFormat"
    kind = keys.pop("kind")
    common = {"flush.size": "3", "format.class": json_format.format(kind)}
    return lambda _lab: {**common, **{key.replace("__", "-").replace("_", "."): value for key, value in keys.items()}}


@dataclass(frozen=True)
class Case:
    """A connector's config, without name, class and topics of sinks. ``not_started`` is a part of the reason."""

    config: Callable[[Lab], Config]
    records: int = 3
    target: str = ""
    not_started: str = ""
    long: bool = True


def dlt_destination(lab: Lab) -> Config:
    import duckdb

    target = DuckDbTarget(lab.folder)
    duckdb.connect(target.path).close()  # a database that is there: DuckDB creates one by connecting
    return {key: value for key, value in target.config.items() if key != "connector.class"}


AZURE = confluent_files(
    kind="azure.blob", azblob_account_name="a", azblob_account_key="a2V5", azblob_container_name="c", store_url=NOWHERE
)
GCS = confluent_files(kind="gcs", gcs_bucket_name="b", store_url=NOWHERE)
S3 = confluent_files(
    kind="s3", s3_bucket_name="b", s3_region="us-east-1", aws_access_key_id="k", aws_secret_access_key="s", store_url=NOWHERE
)
HDFS = confluent_files(kind="hdfs", hdfs_url="hdfs://127.0.0.1:9")
HDFS3 = confluent_files(kind="hdfs3", hdfs_url="hdfs://127.0.0.1:9")

NO_AWS = {"aws.access.key.id": "k", "aws.secret.access.key": "s", "aws.timeout.ms": "1000"}
NO_SQS = {**NO_AWS, "sqs.endpoint.url": "http://127.0.0.1:9", "sqs.url": "q"}
NATS_CONSUMER = {"nats.stream": "S", "nats.consumer": "c"}
NO_NATS = {"nats.servers": "nats://127.0.0.1:9", "nats.timeout.ms": "1000"}
NO_BROKER = {"mqtt.server.uri": "tcp://127.0.0.1:9", "mqtt.connect.timeout.seconds": "1"}

CASES: Mapping[str, Case] = {
    "AvroFileSink": Case(local_files, target="+0+0000000000+0000000000"),
    "AzureBlobStorageSink": Case(AZURE, target='{"id":1,"name":"n1"}'),
    "CsvSink": Case(local_files, target="+0+0000000000+0000000000.csv"),
    "DebeziumJdbcSink": Case(lambda lab: {**lab.sqlite.config, "schema.evolution": "basic"}, target="INSERT INTO"),
    "DeltaCompaction": Case(compaction("delta"), 0, not_started="rewrites small files"),
    "DeltaSink": Case(into_tables("delta")),
    "DeltaSource": Case(tables("delta")),
    "DltSink": Case(dlt_destination),
    "DltSource": Case(lambda _lab: {"dlt.source": "support.dlt_sources.numbers", "dlt.args": '{"rows": 20}'}),
    "ElasticsearchSink": Case(search_index, target='{"id":1,"name":"n1"}'),
    "ElasticsearchSource": Case(indexed),
    "FileStreamSink": Case(lambda lab: {"file": str(lab.folder / "out.txt")}, target="out.txt: Struct{id=1,name=n1}"),
    "FileStreamSource": Case(lambda lab: {"file": lab.file(), "topic": "lines"}, long=False),
    "FolderSource": Case(lambda lab: {"paths": lab.file(), "topic": "lines", "mode": "logs"}, long=False),
    "GcsSink": Case(GCS, target='{"id":1,"name":"n1"}'),
    "HBaseSink": Case(lambda _lab: {"hbase.thrift.servers": "127.0.0.1:9", "hbase.rowkey.fields": "id"}, target="cf:name = n1"),
    "HBaseSource": Case(
        lambda _lab: {"hbase.thrift.servers": "127.0.0.1:9", "hbase.table": "t"}, 0, not_started="has no tasks now"
    ),
    "Hdfs3Sink": Case(HDFS3, target='{"id":1,"name":"n1"}'),
    "HdfsSink": Case(HDFS, target='{"id":1,"name":"n1"}'),
    "HttpSink": Case(
        lambda _lab: {"http.url": "http://127.0.0.1:9/x"}, target='POST http://127.0.0.1:9/x {"id":1,"name":"n1"}', long=False
    ),
    "HttpSource": Case(http_list),
    "IcebergCompaction": Case(compaction("iceberg"), 0, not_started="rewrites small files"),
    "IcebergSink": Case(into_tables("iceberg")),
    "IcebergSource": Case(tables("iceberg")),
    "JdbcSink": Case(lambda lab: {**lab.sqlite.config, "auto.create": "true"}, target="CREATE TABLE"),
    "JdbcSource": Case(jdbc_source),
    "JsonFileSink": Case(local_files, target='{"id":1,"name":"n1"}'),
    "KinesisSink": Case(lambda _lab: {**NO_AWS, "kinesis.endpoint.url": "http://127.0.0.1:9", "kinesis.stream": "s"}),
    "KinesisSource": Case(kinesis_stream),
    "MariaDbConnector": Case(binlog, 0, not_started="it writes the schema history topic"),
    "MirrorSource": Case(mirror),
    "MockSink": Case(lambda _lab: {}),
    "MockSource": Case(lambda _lab: {"topic": "mock"}),
    "MqttSink": Case(lambda _lab: NO_BROKER),
    "MqttSource": Case(lambda _lab: {**NO_BROKER, "mqtt.topics": "a", "kafka.topic": "t"}, 0, not_started="begins a session"),
    "MySqlConnector": Case(binlog, 0, not_started="it writes the schema history topic"),
    "NatsConsumerSource": Case(lambda _lab: {**NO_NATS, **NATS_CONSUMER}, 0, not_started="takes messages"),
    "NatsSink": Case(lambda _lab: NO_NATS),
    "NatsStreamSource": Case(nats_stream),
    "OpenSearchSink": Case(search_index, target='{"id":1,"name":"n1"}'),
    "OpenSearchSource": Case(indexed),
    "OrcSink": Case(local_files, target="+0+0000000000+0000000000"),
    "OtlpSink": Case(lambda _lab: {"otlp.endpoints": "http://127.0.0.1:1/v1/metrics"}, long=False),
    "OtlpSource": Case(lambda _lab: {"topic": "t"}, 0, not_started="it listens on a port", long=False),
    "ParquetSink": Case(local_files, target="+0+0000000000+0000000000"),
    "PostgresConnector": Case(postgres, 1, not_started="replication slot"),
    "PrometheusSource": Case(prometheus),
    "RabbitQueueSource": Case(rabbit("classic"), 0, not_started="takes messages"),
    "RabbitSink": Case(rabbit_sink),
    "RabbitStreamSource": Case(rabbit("stream")),
    "RedisGroupSource": Case(redis_stream, 0, not_started="takes entries"),
    "RedisSink": Case(redis_sink),
    "RedisStreamSource": Case(redis_stream),
    "S3Sink": Case(S3, target='{"id":1,"name":"n1"}'),
    "SingerSink": Case(lambda _lab: {"singer.target": "target-absent"}, target='"record":{"id":1,"name":"n1"}', long=False),
    "SingerSource": Case(singer),
    "SparkSink": Case(lambda lab: {"format": "parquet", "path": str(lab.folder / "out")}),
    "SparkSource": Case(lambda lab: {"format": "parquet", "path": str(lab.folder), "topic": "t"}, 0, not_started="Spark driver"),
    "SqsSink": Case(lambda _lab: NO_SQS),
    "SqsSource": Case(lambda _lab: NO_SQS, 0, not_started="takes messages"),
    "StatsdSource": Case(lambda _lab: {"topic": "t"}, 0, not_started="it listens on a port", long=False),
    "TabularIcebergSink": Case(into_tables("iceberg")),
    "TextSink": Case(local_files, target="Struct{id=1,name=n1}"),
    "VerifiableSink": Case(lambda _lab: {}),
    "WebhookSource": Case(lambda _lab: {"topic": "t"}, 0, not_started="it listens on a port", long=False),
    "VerifiableSource": Case(lambda _lab: {"topic": "verifiable"}),
}


@pytest.fixture(scope="module")
def http_items() -> Iterator[HttpServer]:
    with HttpServer(ItemList(3)) as server:
        yield server


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsServer]:
    with AwsServer() as server:
        yield server


@pytest.fixture(scope="module")
def nats() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


@pytest.fixture(scope="module")
def rabbitmq() -> Iterator[RabbitServer]:
    with closing(RabbitServer()) as server:
        server.start()
        yield server


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    with closing(RedisServer()) as server:
        server.start()
        yield server.url


@pytest.fixture(scope="module")
def search() -> Iterator[SearchServer]:
    with SearchServer() as server:
        yield server


@pytest.fixture
def metric_target() -> Iterator[str]:
    with answering(lambda _request: Answer("a 1\n")) as address:
        yield address


@pytest.fixture
def stores(worker: WorkerConfig) -> Iterator[Stores]:
    with open_stores(worker) as stores:
        yield stores


@pytest.fixture
def herder(worker: WorkerConfig, stores: Stores) -> Herder:
    return Herder(worker, stores.config, stores.status, stores.offsets)


@pytest.fixture
def http(herder: Herder) -> TestClient:
    return TestClient(make_app(lambda: herder))


@pytest.fixture(scope="module", autouse=True)
def others(kafka_bootstrap: str) -> frozenset[str]:
    """The topics and groups of earlier tests, of which some end only now."""
    admin = Kafka(kafka_bootstrap).admin
    groups = admin.list_consumer_groups().result(LIMIT).valid
    return frozenset((*admin.list_topics(timeout=30).topics, *(each.group_id for each in groups)))


@pytest.fixture
def lab(
    kafka: Kafka,
    topic: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    others: frozenset[str],
) -> Lab:
    kafka.produce(topic, *ROWS)
    return Lab(kafka, topic, tmp_path, request, unique, others)


def state(lab: Lab) -> dict[str, Any]:
    """Return what a preview might change: topics with their ends, consumer groups, files, and databases."""
    found = lab.kafka.admin.list_topics(timeout=30).topics
    topics = {name: topic for name, topic in found.items() if name not in lab.others and not name.startswith("__")}
    reader = Consumer({"bootstrap.servers": lab.kafka.bootstrap, "group.id": "unused"})
    try:
        ends = {
            (name, number): reader.get_watermark_offsets(TopicPartition(name, number), timeout=30)
            for name, topic in topics.items()
            for number in topic.partitions
        }
    finally:
        reader.close()
    listed = lab.kafka.admin.list_consumer_groups().result(LIMIT).valid
    groups = sorted(each.group_id for each in listed if each.group_id not in lab.others)
    files = {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in lab.folder.rglob("*") if each.is_file()}
    return {"ends": ends, "groups": groups, "files": files, "databases": [_contents(each) for each in lab.servers]}


def _contents(database: DatabaseForTest) -> list[Any]:
    names = "select table_schema, table_name from information_schema.tables order by 1, 2"
    statements = ["select * from orders", names]
    if database.dialect == POSTGRESQL:
        statements += ["select slot_name from pg_replication_slots", "select pubname from pg_publication"]
    return [database.execute(each) for each in statements]


def ask(http: TestClient, name: str, config: Mapping[str, str], query: str = "records=3&seconds=30") -> dict[str, Any]:
    answer = http.post(f"/connector-plugins/{name}/config/preview?{query}", json=dict(config))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_there_is_a_case_for_every_built_in_connector() -> None:
    listed = TestClient(make_app(lambda: pytest.fail("no herder is needed"))).get("/connector-plugins").json()
    built_in = {each["class"] for each in listed if connector_class(each["class"]).__module__.startswith("sluiceway.")}
    assert {java_name(connector_class(alias)) for alias in CASES} == built_in


@pytest.mark.parametrize(
    "alias", [pytest.param(alias, marks=pytest.mark.long if case.long else ()) for alias, case in CASES.items()]
)
def test_a_preview_writes_nothing(alias: str, lab: Lab, http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[alias]
    if case in (CASES["AzureBlobStorageSink"], CASES["GcsSink"], CASES["HdfsSink"], CASES["Hdfs3Sink"], CASES["S3Sink"]):
        monkeypatch.setattr("sluiceway.connectors.files.connector.refusals", lambda *_: [])
    plugin = java_name(connector_class(alias))
    config = {"connector.class": plugin, "name": lab.unique("preview"), **case.config(lab)}
    if "Sink" in alias:
        config["topics"] = lab.topic
    before = state(lab)
    answer = ask(http, plugin, config)
    assert state(lab) == before
    print(json.dumps(answer, indent=1)[:4000])
    assert (answer["validation"], answer["error"]) == (None, None)
    assert len(answer["records"]) == case.records, answer["note"]
    assert all(record["error"] is None for record in answer["records"])
    assert case.not_started in answer["note"]
    texts = "\n".join((answer["target"] or {}).get("target") or ())
    assert case.target in texts


@contextmanager
def store(alias: str) -> Iterator[tuple[Any, Config]]:
    """Start a server with the protocol of a sink's storage; yield its file system, and the keys of the sink that name it."""
    if alias == "S3Sink":
        with s3_server() as server:
            yield server.files(), server.config
    else:
        with gcs_server("lake") as files:
            yield files, {"gcs.bucket.name": "lake", "gcs.credentials.path": "anon"}


@pytest.mark.long
@pytest.mark.parametrize("alias", ["S3Sink", "GcsSink"])
def test_a_preview_writes_nothing_into_a_store(alias: str, lab: Lab, http: TestClient) -> None:
    plugin = java_name(connector_class(alias))
    with store(alias) as (files, keys):
        files.pipe_file("lake/kept.txt", b"kept")
        before = files.find("lake", detail=True)
        config = {key: value for key, value in CASES[alias].config(lab).items() if key != "store.url"}
        config = {**config, **keys, "connector.class": plugin, "name": lab.unique("preview"), "topics": lab.topic}
        answer = ask(http, plugin, config)
        assert files.find("lake", detail=True) == before
        assert (answer["validation"], answer["error"]) == (None, None)
        assert CASES[alias].target in "\n".join(answer["target"]["target"])
        wrong = ask(http, plugin, {**config, next(key for key in keys if key.endswith("bucket.name")): "missing"})
        assert "there is no bucket missing" in json.dumps(wrong["validation"]), "the storage itself was asked"


def test_existing_connectors_continue_at_their_stored_offsets(herder: Herder, stores: Stores, lab: Lab, http: TestClient) -> None:
    source = {"name": lab.unique("source"), "connector.class": "FileStreamSource", "file": lab.file(), "topic": "lines"}
    sink = {"name": lab.unique("sink"), "connector.class": "FileStreamSink", "topics": lab.topic}
    for config in (source, sink):
        herder.create(config["name"], config)
    stores.offsets.put(source["name"], [({"filename": source["file"]}, {"position": 4})])
    lab.kafka.set_offsets(f"connect-{sink['name']}", {(lab.topic, 0): 2})
    before = state(lab)

    answer = ask(http, "FileStreamSource", source)
    assert answer["start"] == "stored offsets"
    assert [each["written"][0]["value"]["text"] for each in answer["records"]] == [
        json.dumps({"schema": {"type": "string", "optional": False}, "payload": line}, separators=(",", ":"))
        for line in ("two", "three")
    ]
    assert answer["note"] == "The source had no more records for 3 s."

    answer = ask(http, "FileStreamSink", sink)
    assert [each["message"]["offset"] for each in answer["records"]] == [2]
    assert answer["note"] == "The topics have no more records from there on."
    assert len(ask(http, "FileStreamSink", sink, "fromBeginning=true")["records"]) == 3
    assert state(lab) == before
    assert lab.kafka.committed(f"connect-{sink['name']}") == {(lab.topic, 0): 2}
    assert stores.offsets.get(source["name"], [{"filename": source["file"]}]) == [{"position": 4}]


@pytest.mark.long
def test_bad_records_of_a_sink_are_told_with_their_outcome(lab: Lab, http: TestClient) -> None:
    lab.kafka.produce(lab.topic, "not JSON")
    dlq = lab.unique("dlq")
    config = {
        "name": "s",
        "connector.class": SINK,
        "topics": f"{lab.topic},{lab.unique('missing')}",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dlq,
        "transforms": "id",
        "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.id.field": "id",
        "behavior": "tells",
    }
    before = state(lab)
    answer = ask(http, SINK, config, "records=10")
    assert state(lab) == before  # the dead letter queue's topic among others
    *good, bad = answer["records"]
    assert [[image["value"]["data"] for image in record["put"]] for record in good] == [[1], [2], [3]]
    assert (bad["before"], bad["put"], bad["error"]["stage"]) == (None, [], "VALUE_CONVERTER")
    assert bad["error"]["outcome"] == (
        f"The record is skipped, because errors.tolerance=all, and written to the dead letter queue topic {dlq}."
    )
    assert answer["target"]["target"] == ["row 1", "row 2", "row 3"]
    assert "These topics do not exist: missing" in answer["note"]

    answer = ask(http, SINK, {**config, "behavior": "bad preview"})
    assert (len(answer["records"]), answer["target"]["target"]) == (3, None)
    assert answer["target"]["error"].endswith("cannot tell")
