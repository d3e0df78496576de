"""Java sinks on a real broker: published plugins, mixed chains, bad records, and tasks that retry, rewind and pause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluiceway import discovery
from sluiceway.herder.plugin_path import use_plugin_path
from support.engine import RunningTask
from support.engine_connectors import lines
from support.eventually import eventually
from support.java_plugins import CONNECT_FILE, compiled_plugin, fetch_runtime, plugin_folder
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]

_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_TRANSFORM_COMMON = ("com.github.jcustenborder.kafka.connect:kafka-connect-transform-common:0.1.0.14",)
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
FILE_TASK = "org.apache.kafka.connect.file.FileStreamSinkTask"


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A ``plugin.path`` with the Java plugins of this module, which are preferred to Python classes of the same names."""
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "connect-file", CONNECT_FILE)
    plugin_folder(folder, "transform-common", _TRANSFORM_COMMON)
    use_plugin_path({"plugin.path": str(folder), "plugin.java": "prefer"})
    yield folder
    discovery.use_finder(None)


def file_sink(name: str, topic: str, file: Path, **more: str) -> dict[str, str]:
    config = {"name": name, "connector.class": FILE_SINK, "task.class": FILE_TASK, "topics": topic, "file": str(file)}
    strings = {"key.converter": _STRINGS, "value.converter": _STRINGS}
    return {**config, **strings, **{key.replace("_", "."): value for key, value in more.items()}}


def test_a_restarted_file_sink_continues_at_its_committed_offset(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    copy = tmp_path / "out"
    for number in range(2):
        kafka.produce(topic, *(f"{number}-{line}" for line in range(1500)))
        with RunningTask(file_sink(name, topic, copy), kafka.worker(), bounded=True) as task:
            result = task.join()
        assert result.records == 1500, result.trace
    assert lines(copy) == [f"{number}-{line}" for number in range(2) for line in range(1500)]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 3000}
