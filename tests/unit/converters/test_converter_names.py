"""Converters are found by the names in configs."""

from __future__ import annotations

import pytest

from sluiceway.api import Converter, HeaderConverter
from sluiceway.config.worker import WorkerConfig
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.converters.number_converters import IntegerConverter
from sluiceway.converters.simple_header_converter import SimpleHeaderConverter
from sluiceway.converters.string_converter import StringConverter
from sluiceway.data import INT32_SCHEMA, Header
from sluiceway.discovery import converter_class, header_converter_class
from sluiceway.errors import ConfigError
from sluiceway.runtime.task_converters import Converters, task_converters


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SimpleHeaderConverter", SimpleHeaderConverter),
        ("Simple", SimpleHeaderConverter),
        ("Json", JsonConverter),
        ("org.apache.kafka.connect.storage.SimpleHeaderConverter", SimpleHeaderConverter),
        ("org.apache.kafka.connect.storage.StringConverter", StringConverter),
        ("org.apache.kafka.connect.converters.IntegerConverter", IntegerConverter),
        ("IntegerConverter", IntegerConverter),
        ("sluiceway.converters.json_converter.JsonConverter", JsonConverter),
    ],
)
def test_any_converter_can_convert_headers(name: str, expected: type[HeaderConverter]) -> None:
    assert header_converter_class(name) is expected


@pytest.mark.parametrize("kind", ["ByteArray", "Short", "Integer", "Long", "Float", "Double", "Boolean"])
def test_primitive_converters_are_found_by_their_java_names(kind: str) -> None:
    java_class = f"org.apache.kafka.connect.converters.{kind}Converter"
    assert converter_class(java_class).java_class == java_class
    assert converter_class(kind) is converter_class(f"{kind}Converter") is converter_class(java_class)


@pytest.mark.parametrize("name", ["nope", "json.dumps", "FileStreamSink"])
def test_a_header_converter_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Class {name} could not be found"):
        header_converter_class(name)


def test_a_header_converter_takes_its_own_options() -> None:
    config = {"header.converter": "Json", "header.converter.schemas.enable": "false", "value.converter": "Json"}
    made = task_converters(config, WorkerConfig.of({}))
    assert made.headers_to_kafka("t", (Header("h", 1, INT32_SCHEMA),)) == [("h", b"1")]
    assert made.headers_from_kafka("t", [("h", b"[1]"), ("n", None)]) == (Header("h", [1]), Header("n", None))
    assert made.value.from_connect_data("t", INT32_SCHEMA, 1) != b"1"


class _Closing(StringConverter):
    def __init__(self, closed: list[str], name: str, *, fails: bool = False) -> None:
        super().__init__()
        self._closed, self._name, self._fails = closed, name, fails

    def close(self) -> None:
        self._closed.append(self._name)
        if self._fails:
            raise RuntimeError(self._name)


def test_all_converters_are_closed_even_if_one_fails() -> None:
    closed: list[str] = []
    key: Converter = _Closing(closed, "key", fails=True)
    made = Converters(key=key, value=_Closing(closed, "value"), header=_Closing(closed, "header"))
    with pytest.raises(RuntimeError, match="key"):
        made.close()
    assert closed == ["key", "value", "header"]
