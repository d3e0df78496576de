"""The memory of Java processes, by a connector's config."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway import discovery
from sluiceway.java_plugins import finder
from sluiceway.java_plugins.finder import use_java_plugins
from sluiceway.provider.driver.java_memory import java_memory
from support.java_classes import CONVERTER, TRANSFORMATION, class_file, source_jar, write_jar


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(finder, "_folders", [])
    source_jar(tmp_path / "plugins/source/a.jar")
    write_jar(tmp_path / "plugins/t/t.jar", {"org.example.Trim": class_file("org.example.Trim", interfaces=[TRANSFORMATION])})
    write_jar(tmp_path / "plugins/c/c.jar", {"org.example.Avro": class_file("org.example.Avro", interfaces=[CONVERTER])})
    use_java_plugins([tmp_path / "plugins"], {})
    yield
    discovery.use_finder(None)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"connector.class": "FileStreamSource"}, 0),
        ({"connector.class": "org.example.Gone"}, 0),
        ({"connector.class": "org.example.OrdersSourceConnector"}, 406),
        ({"connector.class": "FileStreamSource", "transforms": "a, t", "transforms.t.type": "org.example.Trim"}, 406),
        ({"connector.class": "FileStreamSource", "value.converter": "org.example.Avro"}, 406),
        ({"connector.class": "org.example.OrdersSourceConnector", "sluiceway.java.opts": "-Xmx1g"}, 1174),
        ({"connector.class": "org.example.OrdersSourceConnector", "sluiceway.java.opts": "-Xmx1g -Xss1m -Xmx65536k"}, 214),
    ],
)
def test_a_config_that_names_a_java_plugin_needs_memory(config: dict[str, str], expected: int) -> None:
    assert java_memory(config) == expected
