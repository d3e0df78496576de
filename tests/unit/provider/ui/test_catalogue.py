"""The catalogue of plugins, by what they connect."""

from __future__ import annotations

import pytest

from sluiceway.api import SinkConnector
from sluiceway.herder.validation import installed
from sluiceway.provider.ui import catalogue as module
from sluiceway.provider.ui.catalogue import catalogue, system_of


def test_the_catalogue_holds_what_the_rest_api_lists() -> None:
    listed = [(each.name, each.type, each.version) for each in installed(connectors_only=False)]
    assert [(each["class"], each["type"], each["version"]) for each in catalogue()] == listed


@pytest.mark.parametrize("plugin", catalogue(), ids=lambda plugin: f"{plugin['type']}-{plugin['class']}")
def test_every_built_in_plugin_has_a_line_and_each_connector_a_system(plugin: dict[str, str | None]) -> None:
    assert plugin["language"] == "python"
    assert plugin["used"] is None
    assert plugin["about"]
    assert "`" not in plugin["about"]
    assert not plugin["about"].endswith(".")
    if plugin["type"] in ("source", "sink"):
        assert plugin["system"] in module._SYSTEMS.values(), "A new connector is grouped by its system. Add it to the table."
    else:
        assert plugin["system"] is None


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("io.confluent.connect.elasticsearch.ElasticsearchSinkConnector", "OpenSearch and Elasticsearch"),
        ("sluiceway.connectors.search.source.connector.OpenSearchSourceConnector", "OpenSearch and Elasticsearch"),
        ("com.snowflake.kafka.connector.SnowflakeSinkConnector", "Snowflake"),
        ("io.example.BigTableSource", "Big Table"),
        ("io.debezium.connector.sqlserver.SqlServerConnector", "SQL Server"),
        ("com.mongodb.kafka.connect.MongoSourceConnector", "MongoDB"),
        ("com.mongodb.kafka.connect.MongoSinkConnector", "MongoDB"),
        ("org.apache.kafka.connect.mirror.MirrorHeartbeatConnector", "Apache Kafka"),
        ("SourceConnector", "Source Connector"),
    ],
)
def test_source_and_sink_of_a_system_stand_together(name: str, system: str) -> None:
    assert system_of(name) == system


def test_a_java_plugin_has_a_system_and_no_line_of_another_class(monkeypatch: pytest.MonkeyPatch) -> None:
    class Base(SinkConnector):
        """Runs any sink of a jar."""

    common = {"java_class": "com.example.RedisSinkConnector", "plugin": object(), "plugin_version": "undefined"}
    found = type("RedisSinkConnector", (Base,), common)
    monkeypatch.setattr(module, "installed_classes", lambda kind: [found] if kind.type == "sink" else [])
    assert catalogue() == [
        {
            "class": "com.example.RedisSinkConnector",
            "type": "sink",
            "version": None,
            "system": "Redis",
            "language": "java",
            "used": None,
            "about": None,
        }
    ]
