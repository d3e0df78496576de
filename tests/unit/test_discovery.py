"""Finding plugins by the names in configs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sluiceway import discovery
from sluiceway.config.providers.provider import ConfigProvider
from sluiceway.config.variables import Resolver
from sluiceway.connectors.jdbc.debezium.connector import DebeziumJdbcSinkConnector
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.connectors.mirror.classes import known_class
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.converters.simple_header_converter import SimpleHeaderConverter
from sluiceway.discovery import connector_class, converter_class, header_converter_class, java_name, plugin_named, plugins
from sluiceway.errors import ConfigError, NotFoundError
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


@pytest.mark.parametrize("group", ["connectors", "transforms", "predicates", "converters", "header_converters"])
def test_each_plugin_is_found_by_its_alias_and_by_its_java_and_python_names(group: str) -> None:
    for alias, cls in plugins(f"sluiceway.{group}").items():
        for name in (alias, java_name(cls), f"{cls.__module__}.{cls.__qualname__}"):
            assert plugin_named(f"sluiceway.{group}", name) is cls, name


def test_finding_a_connector_of_ours_loads_no_other_one() -> None:
    """A driver would spend a second of processor time on it."""
    code = (
        "import sys\nfrom sluiceway.discovery import connector_class\n"
        "connector_class('org.apache.kafka.connect.file.FileStreamSourceConnector')\n"
        "print([name for name in sys.modules if name.startswith('sluiceway.connectors.')])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "sluiceway.connectors.file.source" in loaded
    assert not any(each in loaded for each in ("jdbc", "cdc", "iceberg", "mirror"))


def test_a_plugin_of_ours_that_cannot_be_imported_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins("sluiceway.converters")  # the others are loaded already
    monkeypatch.setitem(discovery._BUILT_IN["sluiceway.converters"], "AbsentConverter", "sluiceway.absent:AbsentConverter")
    assert plugin_named("sluiceway.converters", "AbsentConverter") is None
    with pytest.raises(ConfigError, match="Class AbsentConverter could not be found"):
        converter_class("AbsentConverter")


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
