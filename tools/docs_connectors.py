"""A page for each connector: what it does, a config that validation accepts, and its options in groups."""

from __future__ import annotations

import json
from collections.abc import Iterable

_JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
_FILES = {"topics": "orders", **_JSON, "path": "/data/lake", "partitioner.class": "DailyPartitioner", "flush.size": "100000"}
_POSTGRES = {
    "connection.url": "jdbc:postgresql://db:5432/shop",
    "connection.user": "shop",
    "connection.password": "${file:/run/secrets/db:password}",
}
_LOG = {
    "database.hostname": "db",
    "database.user": "capture",
    "database.password": "${file:/run/secrets/db:password}",
    "topic.prefix": "shop",
}
_MYSQL = {
    **_LOG,
    "database.server.id": "5401",
    "table.include.list": "shop.orders",
    "schema.history.internal.kafka.topic": "shop-schema-history",
    "schema.history.internal.kafka.bootstrap.servers": "kafka:9092",
}
_CATALOG = {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": "https://catalog:8181", "iceberg.tables": "shop.orders"}
_DELTA = {"delta.path": "s3://lake", "delta.tables": "shop.orders"}

_SEARCH = {
    **_JSON,
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "connection.url": "https://search:9200",
    "connection.username": "kafka",
    "connection.password": "${file:/run/secrets/search:password}",
}

_INDEX = {**_SEARCH, "index": "orders-*", "topic.prefix": "search-"}

#: The class and options of an example, by the connector's page.
EXAMPLES: dict[str, dict[str, str]] = {
    "AvroFileSink": {"connector.class": "AvroFileSink", **_FILES},
    "AzureBlobStorageSinkConnector": {
        "connector.class": "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector",
        "topics": "orders",
        "azblob.account.name": "lake",
        "azblob.container.name": "orders",
        "format.class": "io.confluent.connect.azure.blob.format.avro.AvroFormat",
        "flush.size": "100000",
    },
    "CsvSink": {"connector.class": "CsvSink", **_FILES},
    "DeltaCompaction": {"connector.class": "DeltaCompaction", **_DELTA},
    "DeltaSink": {"connector.class": "DeltaSink", "topics": "orders", **_DELTA, "delta.tables.auto-create-enabled": "true"},
    "DeltaSource": {"connector.class": "DeltaSource", **_DELTA},
    "DltSink": {
        "connector.class": "DltSink",
        "topics": "orders",
        "dlt.destination": "snowflake",
        "dlt.destination.args": '{"credentials": "dlt.secret.url"}',
        "dlt.secret.url": "${file:/run/secrets/shop.properties:snowflake.url}",
        "dlt.dataset": "shop",
    },
    "DltSource": {
        "connector.class": "DltSource",
        "dlt.source": "shop.events",
        "dlt.args": '{"url": "https://api.example.com", "token": "dlt.secret.token"}',
        "dlt.secret.token": "${file:/run/secrets/shop.properties:token}",
        "topic.prefix": "shop.",
    },
    "ElasticsearchSinkConnector": {
        "connector.class": "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        "topics": "products",
        **_SEARCH,
        "behavior.on.null.values": "delete",
        "write.method": "upsert",
    },
    "ElasticsearchSource": {"connector.class": "ElasticsearchSource", **_INDEX},
    "FileStreamSinkConnector": {"connector.class": "FileStreamSink", "topics": "orders", "file": "/data/orders.txt"},
    "FileStreamSourceConnector": {"connector.class": "FileStreamSource", "topic": "app-log", "file": "/var/log/app.log"},
    "FolderSource": {
        "connector.class": "FolderSource",
        "topic": "app-log",
        "paths": "/var/log/app/*.log",
        "mode": "logs",
    },
    "GcsSinkConnector": {
        "connector.class": "io.confluent.connect.gcs.GcsSinkConnector",
        "topics": "orders",
        "gcs.bucket.name": "lake",
        "format.class": "io.confluent.connect.gcs.format.avro.AvroFormat",
        "flush.size": "100000",
    },
    "HBaseSink": {
        "connector.class": "HBaseSink",
        "topics": "orders",
        "hbase.thrift.servers": "hbase-thrift:9090",
        "hbase.table": "orders",
        "hbase.family": "d",
    },
    "HBaseSource": {
        "connector.class": "HBaseSource",
        "tasks.max": "4",
        "hbase.thrift.servers": "hbase-thrift:9090",
        "hbase.table": "orders",
        "hbase.columns": "d:customer=string,d:total=float64",
        "topic": "orders",
    },
    "Hdfs3SinkConnector": {
        "connector.class": "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
        "topics": "orders",
        "hdfs.url": "hdfs://namenode:8020",
        "format.class": "io.confluent.connect.hdfs3.parquet.ParquetFormat",
        "flush.size": "100000",
    },
    "HdfsSinkConnector": {
        "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
        "topics": "orders",
        "hdfs.url": "hdfs://namenode:8020",
        "format.class": "io.confluent.connect.hdfs.parquet.ParquetFormat",
        "flush.size": "100000",
    },
    "IcebergCompaction": {"connector.class": "IcebergCompaction", **_CATALOG},
    "IcebergSinkConnector": {
        "connector.class": "IcebergSink",
        "topics": "orders",
        **_CATALOG,
        "iceberg.tables.auto-create-enabled": "true",
    },
    "IcebergSource": {"connector.class": "IcebergSource", **_CATALOG},
    "JdbcSinkConnector": {
        "connector.class": "JdbcSink",
        "topics": "orders",
        **_JSON,
        **_POSTGRES,
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "auto.create": "true",
    },
    "JdbcSourceConnector": {
        "connector.class": "JdbcSource",
        **_POSTGRES,
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": "orders",
        "topic.prefix": "shop-",
    },
    "JsonFileSink": {"connector.class": "JsonFileSink", **_FILES},
    "MariaDbConnector": {"connector.class": "io.debezium.connector.mariadb.MariaDbConnector", **_MYSQL},
    "MirrorSourceConnector": {
        "connector.class": "MirrorSource",
        "source.cluster.alias": "west",
        "target.cluster.alias": "east",
        "source.cluster.bootstrap.servers": "west:9092",
        "target.cluster.bootstrap.servers": "east:9092",
        "topics": "orders",
    },
    "MockSinkConnector": {"connector.class": "MockSink", "topics": "orders"},
    "MockSourceConnector": {"connector.class": "MockSource"},
    "MySqlConnector": {"connector.class": "io.debezium.connector.mysql.MySqlConnector", **_MYSQL},
    "OpenSearchSource": {"connector.class": "OpenSearchSource", **_INDEX},
    "OpensearchSinkConnector": {
        "connector.class": "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector",
        "topics": "products",
        **_SEARCH,
        "behavior.on.null.values": "delete",
    },
    "OrcSink": {"connector.class": "OrcSink", **_FILES},
    "ParquetSink": {"connector.class": "ParquetSink", **_FILES},
    "PostgresConnector": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        **_LOG,
        "database.dbname": "shop",
        "slot.name": "shop",
        "publication.autocreate.mode": "filtered",
        "table.include.list": "public.orders",
    },
    "S3SinkConnector": {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "orders",
        "s3.bucket.name": "lake",
        "s3.region": "eu-central-1",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
        "flush.size": "100000",
    },
    "SparkSink": {
        "connector.class": "SparkSink",
        "topics": "orders",
        **_JSON,
        "format": "parquet",
        "option.path": "/data/orders",
    },
    "OtlpSink": {
        "connector.class": "OtlpSink",
        "topics": "app-metrics",
        **_JSON,
        "otlp.endpoints": "http://prometheus:9090/api/v1/otlp/v1/metrics",
        "otlp.headers": "${file:/etc/sluiceway/secrets.properties:otlp.headers}",
    },
    "OtlpSource": {
        "connector.class": "OtlpSource",
        "topic": "app-metrics",
        "otlp.host": "0.0.0.0",  # noqa: S104 (shown, not bound)
        "otlp.bearer.token": "${file:/etc/sluiceway/secrets.properties:otlp.token}",
        "otlp.acknowledge": "delivered",
    },
    "StatsdSource": {
        "connector.class": "StatsdSource",
        "topic": "app-metrics",
        "statsd.host": "0.0.0.0",  # noqa: S104
        "statsd.flush.ms": "10000",
        "errors.tolerance": "all",
    },
    "PrometheusSource": {
        "connector.class": "PrometheusSource",
        "topic": "app-metrics",
        "targets": "shop:8000,stock:8000",
        "scrape.interval.ms": "15000",
        "labels.env": "production",
    },
    "MqttSink": {
        "connector.class": "MqttSink",
        "topics": "states",
        "mqtt.server.uri": "tcp://mqtt:1883",
        "mqtt.topic": "plant/${key}/state",
    },
    "KinesisSink": {
        "connector.class": "KinesisSink",
        "topics": "orders",
        "kinesis.region": "eu-central-1",
        "kinesis.stream": "orders",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "KinesisSource": {
        "connector.class": "KinesisSource",
        "kinesis.region": "eu-central-1",
        "kinesis.stream": "clicks",
        "kafka.topic": "clicks",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "MqttSource": {
        "connector.class": "MqttSource",
        "mqtt.server.uri": "tcp://mqtt:1883",
        "mqtt.topics": "plant/+/temperature",
        "kafka.topic": "plant",
    },
    "HttpSinkConnector": {
        "connector.class": "HttpSink",
        "topics": "orders",
        "http.url": "https://api.example.com/orders/${key}",
        "http.method": "PUT",
        "http.values": "json",
        "http.authorization.type": "bearer",
        "http.auth.token": "${file:/etc/sluiceway/secrets.properties:http.token}",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    },
    "HttpSourceConnector": {
        "connector.class": "HttpSource",
        "http.request.url": "https://api.example.com/orders",
        "http.request.params": "since=${offset.timestamp}&page=${page.number}",
        "http.response.list.pointer": "/items",
        "http.response.record.offset.pointer": "key=/id, timestamp=/updated_at",
        "http.paging": "page",
        "kafka.topic": "orders",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    },
    "WebhookSource": {
        "connector.class": "WebhookSource",
        "topic": "github",
        "webhook.authorization": "github",
        "webhook.secret": "${file:/etc/sluiceway/secrets.properties:webhook.secret}",
        "webhook.id.header": "X-GitHub-Delivery",
        "webhook.headers": "X-GitHub-Event",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    },
    "NatsConsumerSource": {
        "connector.class": "NatsConsumerSource",
        "nats.servers": "nats://nats:4222",
        "nats.credentials.file": "/etc/sluiceway/shop.creds",
        "nats.stream": "ORDERS",
        "nats.consumer": "to-kafka",
        "kafka.topic": "orders",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "NatsSink": {
        "connector.class": "NatsSink",
        "topics": "orders",
        "nats.servers": "tls://nats:4222",
        "nats.user": "sluiceway",
        "nats.password": "${file:/etc/sluiceway/secrets.properties:nats.password}",
        "nats.subject": "orders.${key}",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "NatsStreamSource": {
        "connector.class": "NatsStreamSource",
        "nats.servers": "nats://nats-1:4222,nats://nats-2:4222",
        "nats.streams": "EVENTS,AUDIT",
        "kafka.topic": "nats.${stream}",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "SqsSink": {
        "connector.class": "SqsSink",
        "topics": "orders",
        "sqs.url": "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    },
    "SqsSource": {
        "connector.class": "SqsSource",
        "sqs.url": "https://sqs.eu-central-1.amazonaws.com/123456789012/orders",
        "aws.role.arn": "arn:aws:iam::123456789012:role/orders-to-kafka",
        "kafka.topic": "orders",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    },
    "RabbitQueueSource": {
        "connector.class": "RabbitQueueSource",
        "rabbitmq.host": "rabbitmq",
        "rabbitmq.username": "sluiceway",
        "rabbitmq.password": "${file:/etc/sluiceway/secrets.properties:rabbitmq.password}",
        "rabbitmq.queue": "orders",
        "kafka.topic": "orders",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "RabbitSink": {
        "connector.class": "RabbitSink",
        "topics": "orders",
        "rabbitmq.host": "rabbitmq",
        "rabbitmq.exchange": "shop",
        "rabbitmq.routing.key": "orders.new",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "RabbitStreamSource": {
        "connector.class": "RabbitStreamSource",
        "rabbitmq.host": "rabbitmq",
        "rabbitmq.queue": "events,audit",
        "kafka.topic": "rabbitmq.${queue}",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "RedisGroupSource": {
        "connector.class": "RedisGroupSource",
        "redis.uri": "redis://redis:6379/0",
        "redis.password": "${file:/etc/sluiceway/secrets.properties:redis.password}",
        "redis.stream.name": "orders",
        "redis.stream.consumer.group": "to-kafka",
    },
    "RedisSink": {
        "connector.class": "RedisSink",
        "topics": "customers",
        "redis.uri": "redis://redis:6379/0",
        "redis.command": "HSET",
        "redis.key": "customer",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    },
    "RedisStreamSource": {
        "connector.class": "RedisStreamSource",
        "redis.uri": "redis://redis:6379/0",
        "redis.stream.name": "orders,payments",
        "topic": "redis.${stream}",
    },
    "SingerSink": {
        "connector.class": "SingerSink",
        "topics": "orders",
        "singer.target": "target-postgres",
        "singer.config": '{"host": "db", "port": 5432, "user": "writer", "database": "shop", "default_target_schema": "public"}',
        "singer.config.password": "${file:/etc/sluiceway/secrets.properties:shop.password}",
        "pk.mode": "record_key",
    },
    "SingerSource": {
        "connector.class": "SingerSource",
        "singer.tap": "tap-postgres",
        "singer.config": '{"host": "db", "port": 5432, "user": "reader", "database": "shop", "filter_schemas": ["public"]}',
        "singer.config.password": "${file:/etc/sluiceway/secrets.properties:shop.password}",
        "singer.select": "public-orders.*,!public-orders.note",
        "singer.metadata": '{"*": {"replication-method": "INCREMENTAL", "replication-key": "updated_at"}}',
        "topic.prefix": "shop.",
    },
    "SparkSource": {"connector.class": "SparkSource", "topic": "orders", "format": "parquet", "option.path": "/data/orders"},
    "TextSink": {"connector.class": "TextSink", **_FILES},
    "VerifiableSinkConnector": {"connector.class": "VerifiableSink", "topics": "orders"},
    "VerifiableSourceConnector": {"connector.class": "VerifiableSource", "topic": "orders", "throughput": "10"},
}


def example(page: str) -> str:
    """Return the section with the example of a connector's page."""
    config = {"name": "my-connector", **EXAMPLES[page]}
    return f"## Example\n\n```json\n{json.dumps(config, indent=2, ensure_ascii=False)}\n```\n"


def index(described: Iterable[tuple[str, str]]) -> str:
    """Return the table of the pages, from their names and what each connector does."""
    rows = "".join(f"| [{name}](connectors/{name}.md) | {text.partition('. ')[0].rstrip('.')} |\n" for name, text in described)
    return f"## All connectors\n\n| Connector | What it does |\n| --- | --- |\n{rows}"
