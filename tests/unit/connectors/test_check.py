"""What Airflow's API server validates by itself: without a connection, a file, or a program."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

import sluiceway
from sluiceway.config.providers import ConfigData, ConfigProvider
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, is_sink, plugins
from sluiceway.herder.validation import validate_config

_DATABASE = {"connection.url": "jdbc:postgresql://127.0.0.1:1/shop", "connection.user": "u", "connection.password": "p"}
_CAPTURED = {"database.hostname": "127.0.0.1", "database.port": "1", "database.user": "u", "database.password": "p"}
_HISTORY = {
    "schema.history.internal.kafka.topic": "h",
    "schema.history.internal.kafka.bootstrap.servers": "127.0.0.1:1",
    "database.server.id": "7",
}
_CATALOG = {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://127.0.0.1:1", "iceberg.tables": "a.b"}
_LAKE = {"delta.path": "{}/lake", "delta.tables": "b"}
_FILES = {"path": "{}/files"}
_S3 = {"s3.bucket.name": "b", "store.url": "http://127.0.0.1:1", "aws.access.key.id": "i", "aws.secret.access.key": "s"}
_REDIS = {"redis.uri": "redis://127.0.0.1:1", "redis.stream.name": "s"}
_RABBIT = {"rabbitmq.host": "127.0.0.1", "rabbitmq.port": "1", "rabbitmq.queue": "q"}
_NATS = {"nats.servers": "tls://127.0.0.1:1", "nats.ssl.truststore.location": "{}/ca.pem"}
_AWS = {"aws.access.key.id": "i", "aws.secret.access.key": "s"}
_SQS = {**_AWS, "sqs.endpoint.url": "http://127.0.0.1:1", "sqs.url": "q"}
_KINESIS = {**_AWS, "kinesis.endpoint.url": "http://127.0.0.1:1", "kinesis.stream": "s"}
_MIRROR = {
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
}

_HDFS = {"hdfs.url": "hdfs://127.0.0.1:1", "flush.size": "3"}
_HDFS["format.class"] = "io.confluent.connect.hdfs.json.JsonFormat"
_SEARCH = {"connection.url": "http://127.0.0.1:1"}
_INDEX = {**_SEARCH, "index": "orders"}
#: Valid configs of all connectors, with which ``validate`` of most connects, or reads files.
CONFIGS: Mapping[str, Mapping[str, str]] = {
    "JdbcSource": {**_DATABASE, "topic.prefix": "p", "mode": "bulk"},
    "JdbcSink": _DATABASE,
    "DebeziumJdbcSink": {"connection.url": "jdbc:postgresql://127.0.0.1:1/shop"},
    "PostgresConnector": {**_CAPTURED, "database.dbname": "d", "topic.prefix": "p"},
    "MySqlConnector": {**_CAPTURED, **_HISTORY, "topic.prefix": "p"},
    "MariaDbConnector": {**_CAPTURED, **_HISTORY, "topic.prefix": "p"},
    "IcebergSink": _CATALOG,
    "IcebergSource": {"topic": "t", **_CATALOG},
    "IcebergCompaction": _CATALOG,
    "TabularIcebergSink": _CATALOG,
    "DeltaSink": _LAKE,
    "DeltaSource": {"topic": "t", **_LAKE},
    "DeltaCompaction": _LAKE,
    **dict.fromkeys(("AvroFileSink", "CsvSink", "JsonFileSink", "OrcSink", "ParquetSink", "TextSink"), _FILES),
    "S3Sink": {**_S3, "format.class": "io.confluent.connect.s3.format.json.JsonFormat", "flush.size": "3"},
    "GcsSink": {"gcs.bucket.name": "b", "format.class": "io.confluent.connect.gcs.format.json.JsonFormat", "flush.size": "3"},
    "AzureBlobStorageSink": {
        "azblob.account.name": "a",
        "azblob.account.key": "YWJj",
        "azblob.container.name": "c",
        "format.class": "io.confluent.connect.azure.blob.format.json.JsonFormat",
        "flush.size": "3",
    },
    **dict.fromkeys(("HdfsSink", "Hdfs3Sink"), _HDFS),
    "FileStreamSource": {"file": "{}/a", "topic": "t"},
    "FolderSource": {"paths": "{}/a", "topic": "t", "mode": "logs"},
    "FileStreamSink": {"file": "{}/a"},
    "SparkSource": {"topic": "t", "format": "parquet", "path": "{}/rows"},
    "SparkSink": {"format": "parquet", "path": "{}/rows"},
    **dict.fromkeys(("ElasticsearchSink", "OpenSearchSink"), _SEARCH),
    **dict.fromkeys(("ElasticsearchSource", "OpenSearchSource"), _INDEX),
    "MirrorSource": _MIRROR,
    "PrometheusSource": {"topic": "t", "targets": "127.0.0.1:1", "file.sd.files": "{}/targets.json"},
    "OtlpSource": {"topic": "t", "otlp.ssl.certificate.location": "{}/a.pem", "otlp.ssl.key.location": "{}/b.pem"},
    "OtlpSink": {"otlp.endpoints": "https://127.0.0.1:1/v1/metrics", "otlp.ssl.truststore.location": "{}/ca.pem"},
    "StatsdSource": {"topic": "t", "statsd.protocol": "both"},
    "MqttSource": {"mqtt.server.uri": "ssl://127.0.0.1:1", "mqtt.cacert": "{}/ca.pem", "mqtt.topics": "a", "kafka.topic": "t"},
    "MqttSink": {"mqtt.server.uri": "ssl://127.0.0.1:1", "mqtt.cacert": "{}/ca.pem"},
    "SingerSink": {"singer.target": "{}/target", "singer.config": "{{}}", "pk.mode": "kafka"},
    "SingerSource": {"singer.tap": "{}/tap", "singer.config": "{{}}"},
    "DltSink": {"dlt.destination": "postgres", "dlt.destination.args": '{{"credentials": "postgresql://u:p@127.0.0.1:1/d"}}'},
    "DltSource": {"dlt.source": "no.such.module.function"},
    "HttpSink": {"http.url": "https://127.0.0.1:1/x", "http.ssl.truststore.location": "{}/ca.pem"},
    "HttpSource": {
        "http.request.url": "https://127.0.0.1:1/x",
        "kafka.topic": "t",
        "http.ssl.truststore.location": "{}/ca.pem",
    },
    "WebhookSource": {
        "topic": "t",
        "webhook.ssl.certificate.location": "{}/a.pem",
        "webhook.ssl.key.location": "{}/b.pem",
    },
    "NatsConsumerSource": {**_NATS, "nats.stream": "S", "nats.consumer": "c", "nats.credentials.file": "{}/me.creds"},
    "NatsStreamSource": {**_NATS, "nats.streams": "S"},
    "NatsSink": _NATS,
    **dict.fromkeys(("SqsSource", "SqsSink"), _SQS),
    **dict.fromkeys(("KinesisSource", "KinesisSink"), _KINESIS),
    "RabbitQueueSource": _RABBIT,
    "RabbitStreamSource": _RABBIT,
    "RabbitSink": {
        "rabbitmq.port": "1",
        "rabbitmq.security.protocol": "SSL",
        "rabbitmq.https.ssl.truststore.location": "{}/ca.pem",
    },
    "RedisGroupSource": _REDIS,
    "RedisStreamSource": _REDIS,
    "RedisSink": {"redis.uri": "rediss://127.0.0.1:1", "redis.cacert": "{}/ca.pem"},
    "HBaseSource": {
        "hbase.table": "t",
        "hbase.thrift.servers": "127.0.0.1:1",
        "hbase.thrift.tls": "true",
        "hbase.thrift.cacert": "{}/a",
    },
    "HBaseSink": {"hbase.thrift.servers": "127.0.0.1:1", "hbase.thrift.tls": "true", "hbase.thrift.cacert": "{}/a"},
    "MockSource": {},
    "MockSink": {},
    "VerifiableSource": {"topic": "t"},
    "VerifiableSink": {},
}
_REACHING = ("open", "socket.connect", "socket.getaddrinfo", "sqlite3.connect", "subprocess.Popen", "os.posix_spawn")
_INSTALLED = ("/usr/share/zoneinfo", sys.prefix, sys.base_prefix, str(Path(sluiceway.__file__).parent))
_listening: list[list[str]] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    path = str(args[0]) if event == "open" else ""
    installed = path.startswith(_INSTALLED) or path in sys.path  # modules, time zones, lists of plugins
    was_open = event == "open" and isinstance(args[0], int)  # a descriptor, as other threads open it for its end
    if _listening and event in _REACHING and not installed and not was_open:
        _listening[-1].append(f"{event} {args[:2]}")


sys.addaudithook(_hook)  # for good: Python removes none


@contextmanager
def reached() -> Iterator[list[str]]:
    """Yield what this process opens, connects to, and starts."""
    found: list[str] = []
    _listening.append(found)
    try:
        yield found
    finally:
        _listening.remove(found)


def config_of(name: str, folder: Path) -> dict[str, str]:
    own = {key: value.format(folder) for key, value in CONFIGS[name].items()}
    return {"name": "n", "connector.class": name, "topics" if is_sink(connector_class(name, None)) else "tasks.max": "1", **own}


def test_every_connector_has_a_config_here() -> None:
    assert set(CONFIGS) == set(plugins("sluiceway.connectors"))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_check_reaches_nothing(name: str, tmp_path: Path) -> None:
    config, worker = config_of(name, tmp_path), WorkerConfig.of({"bootstrap.servers": "127.0.0.1:1"})
    assert validate_config(config, worker, offline=True).errors == []  # imports what it needs
    with reached() as found:
        validate_config(config, worker, offline=True)
    assert found == []


class Vault(ConfigProvider):
    """Notes what it is asked for."""

    asked: ClassVar[list[str]] = []

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        self.asked.extend(keys)
        return ConfigData(dict.fromkeys(keys, "hunter2"))


PROVIDERS = {
    "config.providers": "vault,file,env,directory,airflow",
    "config.providers.vault.class": f"{__name__}.Vault",
    **{f"config.providers.{name.lower()}.class": f"{name}ConfigProvider" for name in ("File", "Directory", "Airflow")},
    "config.providers.env.class": "EnvVarConfigProvider",
    "sluiceway.validate.references": "true",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_check_resolves_no_reference(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTOR_PASS", "hunter2")
    (tmp_path / "secrets").write_text("pass=hunter2")
    here = [f"${{file:{tmp_path}/secrets:pass}}", f"${{directory:{tmp_path}:secrets}}"]
    references = ["${vault:db:pass}", "${env:CONNECTOR_PASS}", "${airflow:db:password}", "${airflow:variable:CODE}", *here]
    config, worker = config_of(name, tmp_path), WorkerConfig.of({**PROVIDERS, "bootstrap.servers": "127.0.0.1:1"})
    for key in (*config.keys() - {"name", "connector.class", "topics"}, "not.known"):
        for reference in references:
            with reached() as found:
                shown = str(validate_config({**config, key: reference}, worker, offline=True).to_json())
            assert "hunter2" not in shown
            assert found == []
    assert Vault.asked == []


def test_a_reference_that_nobody_can_resolve_is_an_error_of_a_check_too() -> None:
    config = {"name": "n", "connector.class": "FileStreamSource", "topic": "t", "file": "${nobody:a:b}"}
    first, second = validate_config({**config, "tasks.max": "${file:/a}"}, WorkerConfig.of(PROVIDERS), offline=True).errors
    assert "write ${file:/path/to/file.properties:key}" in first
    assert "refers to an unknown config provider" in second
