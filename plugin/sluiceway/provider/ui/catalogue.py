"""Describes the installed plugins for the page: what each connects, and what it does in a line. Imports them; no other I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sluiceway.config.plugin_keys import IN_JAVA
from sluiceway.discovery import UNDEFINED_VERSION, java_name, language_of, version_of
from sluiceway.herder.plugin_classes import KINDS, SINK, SOURCE, Kind, installed_classes, used_languages

_KIND = re.compile(r"(Source|Sink|Compaction)?(Connector)?$")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FILES, _TEST_DATA, _SEARCH = "Files", "Test data", "OpenSearch and Elasticsearch"
_SYSTEMS = {
    "AvroFile": _FILES,
    "AzureBlobStorage": "Azure Blob Storage",
    "Csv": _FILES,
    "Datagen": _TEST_DATA,
    "DebeziumJdbc": "Databases by JDBC",
    "Delta": "Delta Lake",
    "Dlt": "dlt",
    "Elasticsearch": _SEARCH,
    "FileStream": _FILES,
    "Folder": _FILES,
    "Gcs": "Google Cloud Storage",
    "HBase": "Apache HBase",
    "Hdfs": "HDFS",
    "Hdfs3": "HDFS",
    "Http": "HTTP",
    "Iceberg": "Apache Iceberg",
    "Jdbc": "Databases by JDBC",
    "JsonFile": _FILES,
    "Kinesis": "Amazon Kinesis",
    "MariaDb": "MariaDB",
    "Mirror": "Apache Kafka",
    "MirrorCheckpoint": "Apache Kafka",
    "MirrorHeartbeat": "Apache Kafka",
    "Mock": _TEST_DATA,
    "Mongo": "MongoDB",
    "MongoDb": "MongoDB",
    "Mqtt": "MQTT",
    "MySql": "MySQL",
    "Nats": "NATS",
    "NatsConsumer": "NATS",
    "NatsStream": "NATS",
    "OpenSearch": _SEARCH,
    "Opensearch": _SEARCH,
    "Orc": _FILES,
    "Otlp": "OpenTelemetry",
    "Parquet": _FILES,
    "Postgres": "PostgreSQL",
    "Prometheus": "Prometheus",
    "Rabbit": "RabbitMQ",
    "RabbitQueue": "RabbitMQ",
    "RabbitStream": "RabbitMQ",
    "Redis": "Redis",
    "RedisGroup": "Redis",
    "RedisStream": "Redis",
    "S3": "Amazon S3",
    "Schema": _TEST_DATA,
    "Singer": "Singer taps and targets",
    "Spark": "Apache Spark",
    "SqlServer": "SQL Server",
    "Sqs": "Amazon SQS",
    "Statsd": "StatsD",
    "Text": _FILES,
    "Verifiable": _TEST_DATA,
    "Webhook": "HTTP",
}
"""Systems by the names of classes without their kind. Other classes are named after theirs: ElasticsearchSinkConnector."""


def catalogue() -> list[dict[str, Any]]:
    """Return all installed plugins as JSON, those of each type sorted by class; null stands for what is not known."""
    return [_entry(kind, cls, used) for kind in KINDS for used in (used_languages(kind),) for cls in installed_classes(kind)]


def system_of(name: str) -> str:
    """Return the system that a connector's class connects to, by its name."""
    simple = name.rpartition(".")[2]
    own = _KIND.sub("", simple) or simple
    return _SYSTEMS.get(own) or _WORDS.sub(" ", own)


def _entry(kind: Kind, cls: type, used: Mapping[str, str]) -> dict[str, Any]:
    name, version = java_name(cls), version_of(cls)
    return {
        "class": name,
        "type": kind.type,
        "version": None if version == UNDEFINED_VERSION else version,
        "system": system_of(name) if kind in (SOURCE, SINK) else None,
        "language": language_of(cls),
        "used": used.get(name),  # null unless it is installed in two languages
        "about": _about(cls),
    }


def _about(cls: type) -> str | None:
    """Return the first sentence of a class's docstring. A Java class has none, and that of an interface says nothing about it."""
    if language_of(cls) == IN_JAVA:
        return None
    own = (base for base in cls.__mro__ if base is not object and not base.__module__.startswith("sluiceway.api"))
    text = next((text for base in own if (text := vars(base).get("__doc__"))), "")
    return " ".join(text.split("\n\n")[0].split()).replace("``", "").partition(". ")[0].rstrip(".") or None
