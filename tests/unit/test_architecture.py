"""The documents that describe the whole agree with the code: the table of packages, and what README says is connected."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.connectors.jdbc.dialects import DIALECTS
from sluiceway.discovery import java_name
from sluiceway.herder.plugin_classes import SINK, SOURCE, Kind, installed_classes

ROOT = Path(__file__).parents[2]
NAMED = {
    **dict.fromkeys(("Hdfs", "Hdfs3"), "HDFS"),
    **{name: name for name in ("Parquet", "Orc", "Iceberg", "Delta", "Jdbc", "S3", "Gcs", "Csv")},
    **{
        "AvroFile": "Avro",
        "JsonFile": "JSON",
        "Text": "text",
        "FileStream": "lines of a file",
        "Folder": "folders",
        "AzureBlobStorage": "Azure",
    },
    **{"Elasticsearch": "Elasticsearch", **dict.fromkeys(("OpenSearch", "Opensearch"), "OpenSearch")},
    **{"MariaDb": "MariaDB", "MySql": "MySQL", "Postgres": "PostgreSQL", "Mirror": "MirrorSource", "Spark": "Spark"},
    **{"Prometheus": "Prometheus", "Otlp": "OTLP", "Statsd": "StatsD", "HBase": "HBase"},
    "Singer": "Singer",
    "Dlt": "dlt",
    **dict.fromkeys(("Rabbit", "RabbitQueue", "RabbitStream"), "RabbitMQ"),
    **dict.fromkeys(("Redis", "RedisGroup", "RedisStream"), "Redis"),
    "Mqtt": "MQTT",
    **dict.fromkeys(("Nats", "NatsConsumer", "NatsStream"), "NATS"),
    **{"Http": "HTTP", "Webhook": "webhooks"},
    **{"Sqs": "SQS", "Kinesis": "Kinesis"},
}
"""A word of README's table for each connector, by its alias without Source, Sink, or Connector at the end."""
FOR_TESTS_AND_CARE = ("Mock", "Verifiable", "Compaction")


def rows(document: str, heading: str) -> Iterator[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return (line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| Package"))


def test_the_table_of_packages_has_each_package_in_the_order_of_the_layers() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = setup["importlinter:contract:layers"]["layers"].split("\n")
    position = {name.strip(): number for number, layer in enumerate(layers) for name in layer.split("|") if name.strip()}
    table = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in rows("ARCHITECTURE.md", "Source tree")]
    assert sorted(name for row in table for name in row) == sorted(position)
    highest = 0
    for row in table:
        places = [position[name] for name in row]
        assert min(places) >= highest, f"{row} stands below a package that it may import"
        highest = max(places)


@pytest.mark.parametrize("kind", [SOURCE, SINK], ids=lambda kind: kind.type)
def test_readme_names_what_each_connector_connects(kind: Kind) -> None:
    told = "\n".join(rows("README.md", "What it connects")).lower()
    aliases = {java_name(cls).rpartition(".")[2] for cls in installed_classes(kind)}
    for alias in sorted(aliases):
        if not any(part in alias for part in FOR_TESTS_AND_CARE):
            short = re.sub(r"(Source|Sink)?(Connector)?$", "", alias)
            assert NAMED[short].lower() in told, f"README's table does not say what {alias} connects"


def test_readme_names_each_database_of_the_jdbc_connectors() -> None:
    [row] = [row for row in rows("README.md", "What it connects") if row.startswith("| databases ")]
    named = set(re.sub(r"[^a-z,]", "", row.lower().partition("jdbc:")[2].partition("|")[0]).split(","))
    assert named == {dialect.name for dialect in DIALECTS} | {"mariadb"}
