from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.converters.string_converter import StringConverter
from sluiceway.data import STRING_SCHEMA, Header
from sluiceway.errors import ConfigError
from sluiceway.runtime.task_converters import task_converters

JSON = "org.apache.kafka.connect.json.JsonConverter"


def test_a_worker_converter_takes_the_workers_options() -> None:
    worker = WorkerConfig.of({"value.converter": JSON, "value.converter.schemas.enable": "false"})
    made = task_converters({"value.converter.schemas.enable": "true"}, worker)
    assert isinstance(made.key, JsonConverter)
    assert made.value.from_connect_data("t", STRING_SCHEMA, "x") == b'"x"'
    assert made.key.from_connect_data("t", STRING_SCHEMA, "x") != b'"x"'


def test_a_connector_converter_takes_precedence_and_only_the_connectors_options() -> None:
    worker = WorkerConfig.of({"value.converter": JSON, "value.converter.schemas.enable": "false"})
    own = task_converters({"value.converter": "JsonConverter"}, worker)
    assert own.value.from_connect_data("t", STRING_SCHEMA, "x") != b'"x"'
    java = {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}
    assert isinstance(task_converters(java, worker).key, StringConverter)


def test_an_unknown_converter_is_rejected_with_its_name() -> None:
    with pytest.raises(ConfigError, match=r"no\.such\.Converter could not be found"):
        task_converters({"key.converter": "no.such.Converter"}, WorkerConfig.of({}))


@pytest.mark.parametrize(
    ("name", "data"), [("", b"1"), ("org.apache.kafka.connect.storage.SimpleHeaderConverter", b"1"), ("JsonConverter", b"1")]
)
def test_the_header_converter_converts_headers(name: str, data: bytes) -> None:
    made = task_converters({"header.converter": name, "header.converter.schemas.enable": "false"}, WorkerConfig.of({}))
    assert made.headers_to_kafka("t", (Header("h", 1),)) == [("h", data)]
    assert made.headers_from_kafka("t", [("h", b"1"), ("h", None)])[1].value is None
    assert made.headers_from_kafka("t", [("h", b"null")]) == (Header("h", None),)
