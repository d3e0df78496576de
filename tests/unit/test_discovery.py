"""Which plugin a name in a config means."""

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
def test_a_config_is_checked_against_the_connector_that_runs(name: str, cls: type) -> None:
    assert (connector_class(name), plugin_class(name).cls, known_class(name).cls) == (cls, cls, cls)


@pytest.mark.parametrize("name", ["Json", "JsonConverter", "org.apache.kafka.connect.json.JsonConverter"])
def test_a_converter_is_found_alike(name: str) -> None:
    assert (converter_class(name), plugin_class(name).cls, known_class(name).cls) == (JsonConverter,) * 3


def test_a_header_converter_is_found_alike() -> None:
    found = (header_converter_class("Simple"), plugin_class("Simple").cls, known_class("Simple").cls)
    assert found == (SimpleHeaderConverter,) * 3


def test_nothing_is_found_by_an_empty_name() -> None:
    with pytest.raises(NotFoundError):
        connector_class("")


def test_every_config_provider_that_is_listed_can_be_named_in_a_workers_properties() -> None:
    listed = plugins("sluiceway.config_providers")
    assert len(listed) >= 4
    for alias, cls in listed.items():
        assert issubclass(cls, ConfigProvider)
        for name in (alias, alias.removesuffix("ConfigProvider"), f"{cls.__module__}.{cls.__qualname__}"):
            Resolver.of({"config.providers": "p", "config.providers.p.class": name}).close()
