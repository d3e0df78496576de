"""Configs with Java plugins are validated as a real Kafka Connect worker validates them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder.validation import plugin_config, validate_config
from sluiceway.java_plugins import finder
from sluiceway.java_plugins.finder import use_java_plugins
from support.java_plugins import CAMEL_TIMER, fetch_runtime, forget_plugins, plugin_folder, plugin_from
from support.peer import PeerStandalone

_DEBEZIUM_JDBC = ("io.debezium:debezium-connector-jdbc:3.3.1.Final",)
_MONGO = ("org.mongodb.kafka:mongo-kafka-connect:2.0.1",)

_TRANSFORM = """
package org.example;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.Transformation;
public class Trim<R extends ConnectRecord<R>> implements Transformation<R> {
    public ConfigDef config() {
        return new ConfigDef()
            .define("fields", ConfigDef.Type.LIST, ConfigDef.NO_DEFAULT_VALUE, ConfigDef.Importance.HIGH, "Fields to trim.")
            .define("length", ConfigDef.Type.INT, 10, ConfigDef.Range.between(1, 100), ConfigDef.Importance.LOW, "Longest text.")
            .define("side", ConfigDef.Type.STRING, "left", ConfigDef.ValidString.in("left", "right"),
                ConfigDef.Importance.LOW, "Where to trim.")
            .define("fill", ConfigDef.Type.LIST, "", ConfigDef.Importance.LOW, "To fill with.", null, 1, ConfigDef.Width.SHORT,
                "Fill", new ConfigDef.Recommender() {
                    public java.util.List<Object> validValues(String name, java.util.Map<String, Object> values) {
                        return "left".equals(values.get("side")) ? java.util.List.of("zero", "space") : java.util.List.of();
                    }
                    public boolean visible(String name, java.util.Map<String, Object> values) {
                        return values.get("length") instanceof Integer length && length < 50;
                    }
                });
    }
    public R apply(R record) { return record; }
    public void configure(java.util.Map<String, ?> config) {}
    public void close() {}
}
"""
_SOURCE = {"name": "a", "connector.class": "FileStreamSource", "topic": "lines", "file": "lines.txt"}
_TRIM = {**_SOURCE, "transforms": "t", "transforms.t.type": "org.example.Trim"}
_JDBC_SINK = {"name": "a", "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "topics": "orders"}
_MONGO_SINK = {"name": "a", "connector.class": "MongoSinkConnector", "topics": "orders"}
_TIMER = {"name": "a", "connector.class": "CamelTimerSourceConnector", "topics": "ticks"}

CONFIGS = {
    "transform": {**_TRIM, "transforms.t.fields": "a,b", "transforms.t.side": "right"},
    "transform-errors": {**_TRIM, "transforms.t.length": "1000", "transforms.t.side": "top"},
    "transform-fill": {**_TRIM, "transforms.t.fields": "a", "transforms.t.length": "20"},
    "transform-type": {**_TRIM, "transforms.t.fields": "a", "transforms.t.length": "ten"},
    "jdbc-sink-missing": _JDBC_SINK,
    "jdbc-sink": {**_JDBC_SINK, "connection.url": "jdbc:postgresql://db/x", "connection.username": "u", "insert.mode": "none"},
    "converter": {**_JDBC_SINK, "value.converter": "io.debezium.converters.ByteArrayConverter"},
    "mongo": {**_MONGO_SINK, "connection.uri": "http://wrong", "database": "d"},
    "timer": {**_TIMER, "camel.source.path.timerName": "t"},
}


@pytest.fixture
def plugin_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    fetch_runtime()
    monkeypatch.setattr(finder, "_folders", [])
    yield tmp_path / "plugins"
    forget_plugins()


def test_options_of_a_java_transform_are_checked_by_its_own_definition(plugin_path: Path) -> None:
    plugin_from(plugin_path, "trim", {"Trim": _TRANSFORM})
    use_java_plugins([plugin_path], {})
    worker = WorkerConfig.of({"plugin.path": str(plugin_path)})

    assert validate_config(CONFIGS["transform"], worker).errors == []
    assert validate_config(CONFIGS["transform-errors"], worker).errors == [
        'Missing required configuration "transforms.t.fields" which has no default value.',
        "Invalid value 1000 for configuration length: Value must be no more than 100",
        "Invalid value top for configuration side: String must be one of: left, right",
    ]
    assert [(key.name, key.type, key.required, key.default_value) for key in plugin_config("Trim")] == [
        ("fields", "LIST", True, None),
        ("length", "INT", False, "10"),
        ("side", "STRING", False, "left"),
        ("fill", "LIST", False, ""),
    ]
    trims = {name: config for name, config in CONFIGS.items() if name.startswith("transform")}
    fill = {name: _by_name(validate_config(config, worker).to_json())["transforms.t.fill"] for name, config in trims.items()}
    assert fill["transform-fill"]["value"]["recommended_values"] == ["zero", "space"]
    assert (fill["transform"]["value"]["recommended_values"], fill["transform"]["value"]["visible"]) == ([], True)
    assert fill["transform-errors"]["value"]["visible"] is False


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.peer
def test_results_equal_those_of_a_real_worker(kafka_bootstrap: str, plugin_path: Path, tmp_path: Path) -> None:
    plugin_from(plugin_path, "trim", {"Trim": _TRANSFORM})
    for name, coordinates in (("camel", CAMEL_TIMER), ("debezium", _DEBEZIUM_JDBC), ("mongo", _MONGO)):
        plugin_folder(plugin_path, name, coordinates)
    next(
        (plugin_path / "camel").glob("connect-json-*.jar")
    ).unlink()  # too old for Kafka 4: it breaks the worker's default converter
    properties = {"plugin.path": str(plugin_path), "plugin.java": "prefer"}
    use_java_plugins([plugin_path], properties)
    worker = WorkerConfig.of(properties)
    different: dict[str, Any] = {}
    peer = PeerStandalone(kafka_bootstrap, tmp_path / "peer", [], {"plugin.path": str(plugin_path)})
    peer.start(timeout=300)  # it reads all classes
    try:
        for case, config in CONFIGS.items():
            url = f"{peer.rest}/connector-plugins/{config['connector.class']}/config/validate"
            theirs = httpx.put(url, json=config, timeout=60).json()
            found = _differences(_validated(config, worker), theirs)
            if found:
                different[case] = found
    finally:
        peer.stop()
    assert not different, json.dumps(different, indent=1)


def _validated(config: dict[str, str], worker: WorkerConfig) -> dict[str, Any]:
    """Return the response to a validation."""
    try:
        return validate_config(config, worker).to_json()
    except ConnectError as error:
        return {"message": str(error)}  # as the REST API answers


def _differences(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return what differs by key. Recommended classes and versions differ by the plugins that each side has."""
    parts = ("name", "error_count", "groups", "message")
    found = {key: (ours.get(key), theirs.get(key)) for key in parts if ours.get(key) != theirs.get(key)}
    left, right = _by_name(ours), _by_name(theirs)
    if left.keys() != right.keys():
        found["keys"] = (sorted(left.keys() - right.keys()), sorted(right.keys() - left.keys()))
    for name in left.keys() & right.keys():
        for part in ("definition", "value"):
            here, there = left[name][part], right[name][part]
            for field in here if isinstance(here, dict) and isinstance(there, dict) else ():
                own = name.endswith((".type", "converter", "plugin.version")) and field == "recommended_values"
                if here[field] != there.get(field) and not own and field != "documentation":
                    found[f"{name}.{part}.{field}"] = (here[field], there.get(field))
    return found


def _by_name(infos: dict[str, Any]) -> dict[str, Any]:
    return {each["value"]["name"]: each for each in infos.get("configs", ())}
