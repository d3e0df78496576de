"""FileStream connectors on a real broker: lines from a file through a topic to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.engine import RunningTask
from support.engine_connectors import file_sink, file_source, lines
from support.eventually import eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]


def test_lines_are_copied_from_file_to_file_and_appended_lines_soon_after(
    kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    source, copy = tmp_path / "in", tmp_path / "out"
    source.write_text("foo\nbar\n")
    with (
        RunningTask(file_source(name, topic, source), kafka.worker(value_converter="JsonConverter")) as moving,
        RunningTask(file_sink(f"{name}-sink", topic, copy), kafka.worker(value_converter="JsonConverter")),
    ):
        eventually(lambda: lines(copy) == ["foo", "bar"])
        with source.open("a") as out:
            out.write("baz\n")
        eventually(lambda: lines(copy) == ["foo", "bar", "baz"], within=3)
    assert kafka.values(topic, 3)[0] == '{"schema":{"type":"string","optional":false},"payload":"foo"}'
    assert moving.reports.topics == [topic]
    assert kafka.committed(f"connect-{name}-sink") == {(topic, 0): 3}


def test_each_connector_can_have_its_own_converters(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source, copy = tmp_path / "in", tmp_path / "out"
    source.write_text("foo\n")
    worker = kafka.worker(value_converter="JsonConverter")
    own = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}
    with RunningTask(file_source(name, topic, source, **own), worker, bounded=True) as task:
        task.join()
    with RunningTask(file_sink(name, topic, copy, value_converter="StringConverter"), worker, bounded=True) as task:
        task.join()
    assert lines(copy) == ['"foo"']


def test_topics_regex_matches_whole_names_of_several_topics(kafka: Kafka, unique: Names, name: str, tmp_path: Path) -> None:
    base = unique("regex")
    for suffix in ("a", "b", "bc"):
        kafka.produce(kafka.create(f"{base}-{suffix}"), suffix)
    pattern = rf"{base}-(?:[ab]|\d)"
    config = {"name": name, "connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics.regex": pattern}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        assert task.join().records == 2
    assert sorted(lines(tmp_path / "out")) == ["a", "b"]
    assert sorted(task.reports.topics) == [f"{base}-a", f"{base}-b"]
