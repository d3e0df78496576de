"""Connector files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from sluiceway.config.connector_files import STDIN, read_connector_file, read_connectors
from sluiceway.errors import ConfigError

A = {"name": "a", "connector.class": "FileStreamSource", "tasks.max": "1"}


def read(tmp_path: Path, name: str, content: object) -> list[dict[str, str]]:
    file = tmp_path / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return [connector.config for connector in read_connectors(file)]


@pytest.mark.parametrize("name", ["f.json", "f.yaml"])
def test_every_file_format_of_connect_is_read(tmp_path: Path, name: str) -> None:
    config = {key: value for key, value in A.items() if key != "name"}
    info = {"name": "a", "config": A, "tasks": [{"connector": "a", "task": 0}], "type": "source"}
    for document in (A, {"name": "a", "config": config}, info, [info], {"a": {"info": info}}, {**A, "tasks.max": 1}):
        assert read(tmp_path, name, document) == [A]


def test_a_file_can_contain_several_connectors(tmp_path: Path) -> None:
    b = {**A, "name": "b"}
    assert read(tmp_path, "f.json", [A, {"name": "b", "config": A | {"name": "b"}}]) == [A, b]
    assert read(tmp_path, "f.yaml", "name: a\nx: 1\n---\nname: b\nconfig: {x: '2'}\n---\n") == [
        {"name": "a", "x": "1"},
        {"x": "2", "name": "b"},
    ]
    assert read(tmp_path, "f.json", []) == []


STRIMZI = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnect
metadata: {name: cluster}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata: {name: a, labels: {strimzi.io/cluster: cluster}}
spec:
  class: FileStreamSource
  tasksMax: 1
  config: {topic: 'x', enabled: true, limit: 1.50}
"""
CONFLUENT = {
    "apiVersion": "platform.confluent.io/v1beta1",
    "kind": "Connector",
    "metadata": {"name": "resource", "namespace": "n"},
    "spec": {
        "name": "a",
        "class": "FileStreamSource",
        "taskMax": 1,
        "connectClusterRef": {"name": "connect"},
        "configs": {"topic": "x", "enabled": "true", "limit": "1.50"},
    },
}
MSK = {
    "connectorArn": "arn:aws:kafkaconnect:eu-west-1:1:connector/a/x",
    "connectorName": "a",
    "connectorState": "RUNNING",
    "connectorConfiguration": {**A, "topic": "x", "enabled": "true", "limit": "1.50"},
    "kafkaConnectVersion": "3.7.x",
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.yaml", STRIMZI),
        ("f.json", {"apiVersion": "v1", "kind": "List", "items": [CONFLUENT]}),
        ("f.yaml", CONFLUENT),
        ("f.json", MSK),
        ("f.json", [MSK]),
    ],
)
def test_connectors_of_other_platforms_are_read(tmp_path: Path, name: str, content: object) -> None:
    assert read(tmp_path, name, content) == [{**A, "topic": "x", "enabled": "true", "limit": "1.50"}]


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ("", None),
        ("state: running", "RUNNING"),
        ("state: paused", "PAUSED"),
        ("state: stopped", "STOPPED"),
        ("pause: true", "PAUSED"),
        ("pause: false", None),
    ],
)
def test_the_state_of_a_resource_is_kept(tmp_path: Path, spec: str, state: str | None) -> None:
    (tmp_path / "f.yaml").write_text(f"{STRIMZI}  {spec}\n")
    assert [each.initial_state for each in read_connectors(tmp_path / "f.yaml")] == [state]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (STRIMZI.partition("---")[0], "neither a KafkaConnector of Strimzi nor a Connector of Confluent"),
        (STRIMZI + "  state: asleep\n", "spec.state is 'asleep', not one of running, paused, stopped"),
        (json.dumps({**CONFLUENT, "spec": [1]}), "spec must be a map"),
        (json.dumps({**CONFLUENT, "spec": {}, "metadata": {}}), "the connector has no name"),
        (json.dumps({**MSK, "connectorConfiguration": "x"}), "connectorConfiguration must be a map"),
    ],
)
def test_a_wrong_resource_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, "f.yaml", content)


def test_yaml_values_are_read_as_text(tmp_path: Path) -> None:
    text = "name: a\nb: yes\nc: 1_0\nd: 3.50\ne: 2026-01-01\nf: TRUE\ng: ~\nh: null\ni: 'null'\nj: 0x1F\nk: 12:30:45\n"
    assert read(tmp_path, "f.yml", text) == [
        {
            "name": "a",
            "b": "yes",
            "c": "1_0",
            "d": "3.50",
            "e": "2026-01-01",
            "f": "TRUE",
            "i": "null",
            "j": "0x1F",
            "k": "12:30:45",
        }
    ]


def test_the_initial_state_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text(json.dumps({"name": "a", "config": A, "initial_state": "STOPPED"}))
    assert [each.initial_state for each in read_connectors(file)] == ["STOPPED"]


def test_a_folders_connector_files_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({**A, "name": "b"}))
    (tmp_path / "a.properties").write_text("name=a\n")
    (tmp_path / "c.yaml").write_text("name: c\n")
    (tmp_path / "readme.md").write_text("name: no\n")
    (tmp_path / "sub.json").mkdir()
    assert [each.name for each in read_connectors(tmp_path)] == ["a", "b", "c"]


def test_stdin_is_read_as_yaml_and_so_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(A)))
    assert [each.config for each in read_connectors(STDIN)] == [A]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.json", "{", "is not JSON"),
        ("f.yaml", "a: [1", r"is not YAML in line"),
        ("f.yaml", "!!python/object:os.system x", "is not YAML"),
        ("f.json", "[1]", "expected a JSON object"),
        ("f.json", "{}", "the connector has no name"),
        ("f.properties", "x=1", "the connector has no name"),
        ("f.json", [A, {"x": "1"}], r"f\.json, connector 2: the connector has no name"),
        ("f.json", {"name": "a", "config": {"name": "b"}}, "named 'a', but 'b' in its config"),
        ("f.json", {"name": "a", "config": {}, "intial_state": "PAUSED"}, "unknown field 'intial_state'"),
        ("f.json", {"name": "a", "config": []}, '"config" must be a JSON object'),
    ],
)
def test_errors_name_the_file_and_the_connector(tmp_path: Path, name: str, content: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, name, content)


def test_a_missing_or_binary_file_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml: No such file"):
        read_connectors(tmp_path / "missing.yaml")
    (tmp_path / "f.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_connectors(tmp_path / "f.json")


def test_the_repr_does_not_show_the_config(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps({**A, "db.password": "hunter2"}))
    assert "hunter2" not in repr(read_connectors(tmp_path / "f.json"))


def test_standalone_mode_reads_a_yaml_file_with_one_connector(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("name: a\nx: 1\n")
    assert read_connector_file(file) == {"name": "a", "x": "1"}
    file.write_text("name: a\n---\nname: b\n")
    with pytest.raises(ConfigError, match="contains 2 connectors"):
        read_connector_file(file)
