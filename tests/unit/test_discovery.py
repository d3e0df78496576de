"""Finding plugins by the names in configs."""

from __future__ import annotations

import pytest

from sluiceway.config.providers.provider import ConfigProvider
from sluiceway.config.variables import Resolver
from sluiceway.connectors.jdbc.debezium.connector import DebeziumJdbcSinkConnector
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.connectors.mirror.classes import known_class
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.converters.simple_header_converter import SimpleHeaderConverter
from sluiceway.discovery import connector_class, converter_class, header_converter_class, plugins
from sluiceway.errors import NotFoundError
from sluiceway.herder.plugin_classes import plugin_class

# Two of our connectors stand in for Java classes whose simple name is JdbcSinkConnector.
CONNECTORS = {
    "JdbcSink": JdbcSinkConnector,
    "JdbcSinkConnector": JdbcSinkConnector,
    "io.confluent.connect.jdbc.JdbcSinkConnector": JdbcSinkConnector,
    "DebeziumJdbcSink": DebeziumJdbcSinkConnector,
    "DebeziumJdbcSinkConnector": DebeziumJdbcSinkConnector,
    "io.debezium.connector.jdbc.JdbcSinkConnector": DebeziumJdbcSinkConnector,
    "sluiceway.connectors.jdbc.debezium.connector.DebeziumJdbcSinkConnector": DebeziumJdbcSinkConnector,
}


@pytest.mark.parametrize(("name", "cls"), CONNECTORS.items())
def test_validation_and_runtime_find_the_same_connector(name: str, cls: type) -> None:
    assert (connector_class(name), plugin_class(name).cls, known_class(name).cls) == (cls, cls, cls)


@pytest.mark.parametrize("name", ["Json", "JsonConverter", "org.apache.kafka.connect.json.JsonConverter"])
def test_validation_and_runtime_find_the_same_converter(name: str) -> None:
    assert (converter_class(name), plugin_class(name).cls, known_class(name).cls) == (JsonConverter,) * 3


def test_validation_and_runtime_find_the_same_header_converter() -> None:
    found = (header_converter_class("Simple"), plugin_class("Simple").cls, known_class("Simple").cls)
    assert found == (SimpleHeaderConverter,) * 3


def test_an_empty_name_finds_no_plugin() -> None:
    with pytest.raises(NotFoundError):
        connector_class("")


def test_every_listed_config_provider_can_be_used_in_worker_properties() -> None:
    listed = plugins("sluiceway.config_providers")
    assert len(listed) >= 4
    for alias, cls in listed.items():
        assert issubclass(cls, ConfigProvider)
        for name in (alias, alias.removesuffix("ConfigProvider"), f"{cls.__module__}.{cls.__qualname__}"):
            Resolver.of({"config.providers": "p", "config.providers.p.class": name}).close()
