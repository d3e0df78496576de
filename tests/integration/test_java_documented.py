"""Configs of published Java plugins as their documentation shows them have no key that is said to have no effect.

Those of classes that Python implements stand in ``tests/unit/cli/test_documented_configs.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.cli.findings import findings
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.validation import validate_config
from support.java_plugins import fetch_runtime, forget_plugins, plugin_folder
from support.published_plugins import MONGO

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_SNOWFLAKE = ("com.snowflake:snowflake-kafka-connector:2.5.0",)
_NOT_PUBLISHED = ("io.confluent:*",)  # Maven Central does not have the registry's clients, which no definition needs

_SNOWFLAKE_SINK = {
    "connector.class": "com.snowflake.kafka.connector.SnowflakeSinkConnector",
    "tasks.max": "8",
    "topics": "topic1,topic2",
    "snowflake.topic2table.map": "topic1:table1,topic2:table2",
    "buffer.count.records": "10000",
    "buffer.flush.time": "60",
    "buffer.size.bytes": "5000000",
    "snowflake.url.name": "myorganization-myaccount.snowflakecomputing.com:443",
    "snowflake.user.name": "jane.smith",
    "snowflake.private.key": "xyz123",
    "snowflake.private.key.passphrase": "p",
    "snowflake.database.name": "mydb",
    "snowflake.schema.name": "myschema",
    "snowflake.role.name": "r",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "com.snowflake.kafka.connector.records.SnowflakeAvroConverter",
    "value.converter.schema.registry.url": "http://localhost:8081",
    "value.converter.basic.auth.credentials.source": "USER_INFO",
    "value.converter.basic.auth.user.info": "jane.smith:MyStrongPassword",
    "snowflake.ingestion.method": "SNOWPIPE_STREAMING",
    "snowflake.enable.schematization": "TRUE",
    "snowflake.metadata.createtime": "true",
    "snowflake.metadata.topic": "true",
    "snowflake.metadata.offset.and.partition": "true",
    "snowflake.metadata.all": "true",
    "snowflake.streaming.enable.single.buffer": "true",
    "snowflake.streaming.max.client.lag": "30",
    "enable.streaming.channel.offset.migration": "true",
    "behavior.on.null.values": "IGNORE",
    "errors.tolerance": "all",
    "errors.log.enable": "true",
    "errors.deadletterqueue.topic.name": "DLQ",
    "jvm.proxy.host": "h",
    "jvm.proxy.port": "80",
    "provider": "CONFLUENT",
    "jmx": "true",
    "enable.mdc.logging": "false",
    "snowflake.authenticator": "oauth",
    "snowflake.oauth.client.id": "i",
    "snowflake.oauth.client.secret": "s",
    "snowflake.oauth.refresh.token": "t",
}
_MONGO_SINK = {
    "connector.class": "com.mongodb.kafka.connect.MongoSinkConnector",
    "tasks.max": "1",
    "topics": "orders",
    "connection.uri": "mongodb://mongo1",
    "database": "test",
    "collection": "sink",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "max.num.retries": "1",
    "retries.defer.timeout": "5000",
    "key.projection.type": "none",
    "key.projection.list": "",
    "value.projection.type": "none",
    "value.projection.list": "",
    "field.renamer.mapping": "[]",
    "field.renamer.regexp": "[]",
    "document.id.strategy": "com.mongodb.kafka.connect.sink.processor.id.strategy.BsonOidStrategy",
    "post.processor.chain": "com.mongodb.kafka.connect.sink.processor.DocumentIdAdder",
    "delete.on.null.values": "false",
    "writemodel.strategy": "com.mongodb.kafka.connect.sink.writemodel.strategy.ReplaceOneDefaultStrategy",
    "max.batch.size": "0",
    "rate.limiting.timeout": "0",
    "rate.limiting.every.n": "0",
    "change.data.capture.handler": "com.mongodb.kafka.connect.sink.cdc.mongodb.ChangeStreamHandler",
    "topic.override.orders.collection": "o",
    "topic.override.orders.max.batch.size": "7",
    "namespace.mapper": "com.mongodb.kafka.connect.sink.namespace.mapping.DefaultNamespaceMapper",
    "timeseries.timefield": "ts",
    "mongo.errors.tolerance": "none",
    "mongo.errors.log.enable": "false",
    "errors.deadletterqueue.topic.name": "x",
    "server.api.version": "1",
}
_MONGO_SOURCE = {
    "connector.class": "com.mongodb.kafka.connect.MongoSourceConnector",
    "connection.uri": "mongodb://mongo1",
    "database": "quickstart",
    "collection": "sampleData",
    "topic.prefix": "p",
    "topic.suffix": "s",
    "topic.namespace.map": '{"*":"all"}',
    "pipeline": '[{"$match": {"operationType": "insert"}}]',
    "copy.existing": "true",
    "startup.mode": "copy_existing",
    "startup.mode.copy.existing.max.threads": "1",
    "startup.mode.copy.existing.namespace.regex": ".*",
    "poll.max.batch.size": "1000",
    "poll.await.time.ms": "5000",
    "publish.full.document.only": "true",
    "publish.full.document.only.tombstone.on.delete": "true",
    "change.stream.full.document": "updateLookup",
    "change.stream.full.document.before.change": "off",
    "output.format.key": "json",
    "output.format.value": "schema",
    "output.schema.infer.value": "true",
    "output.schema.key": "{}",
    "output.json.formatter": "com.mongodb.kafka.connect.source.json.formatter.SimplifiedJson",
    "offset.partition.name": "p",
    "heartbeat.interval.ms": "0",
    "heartbeat.topic.name": "__mongodb_heartbeats",
    "batch.size": "0",
    "collation": "",
    "mongo.errors.tolerance": "all",
    "mongo.errors.deadletterqueue.topic.name": "d",
    "change.stream.document.key.as.key": "true",
    "server.api.version": "1",
}
DOCUMENTED = {"snowflake": _SNOWFLAKE_SINK, "mongo sink": _MONGO_SINK, "mongo source": _MONGO_SOURCE}


@pytest.fixture(scope="module", autouse=True)
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "snowflake", _SNOWFLAKE, _NOT_PUBLISHED)
    plugin_folder(folder, "mongo", MONGO)
    use_plugin_path({"plugin.path": str(folder)})
    yield folder
    forget_plugins()


@pytest.mark.parametrize("config", DOCUMENTED.values(), ids=DOCUMENTED)
def test_each_key_of_a_documented_config_may_be_read(config: dict[str, str]) -> None:
    worker = WorkerConfig.of({"bootstrap.servers": "localhost:9092"})
    answer = validate_config({**config, "name": "c"}, worker, offline=True).to_json()
    assert list(findings("c", config, answer, reads_others=True).finding_lines()) == []
    misspelt = {**config, "tasks.maxx": "1"}
    assert [each.key for each in findings("c", misspelt, answer, reads_others=True).warnings] == ["tasks.maxx"]
