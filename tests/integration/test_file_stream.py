"""FileStream connectors on a real broker: lines from a file through a topic to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sluiceway.runtime.sink import sink_task_builder
from sluiceway.runtime.source import source_task_builder
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
        eventually(lambda: lines(copy) == ["foo", "bar", "baz"])
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


@pytest.mark.parametrize("converter", ["StringConverter", "JsonConverter", "ByteArrayConverter"])
def test_columns_and_records_write_the_same_bytes(
    kafka: Kafka, unique: Names, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, converter: str
) -> None:
    source = tmp_path / "in"
    text = "".join(f'line {number} äöü "{"x" * (number % 50)}"\\\n' for number in range(5000))
    source.write_text(text + "odd\r\n" + text)
    strings = {"value_converter": "JsonConverter"} if converter == "JsonConverter" else {}
    written: list[tuple[list[str], bytes]] = []
    for form in ("columns", "rows"):
        if form == "rows":
            monkeypatch.setattr(sink_task_builder, "columns_available", lambda: False)
            monkeypatch.setattr(source_task_builder, "columns_available", lambda: False)
        topic, copy = unique("topic"), tmp_path / form
        with RunningTask(file_source(f"{name}-{form}", topic, source), kafka.worker(**strings), bounded=True) as task:
            assert task.join().records == 10_001
        sink = file_sink(f"{name}-{form}-sink", topic, copy, value_converter=converter)
        with RunningTask(sink, kafka.worker(), bounded=True) as task:
            assert task.join().records == 10_001
        assert kafka.committed(f"connect-{name}-{form}-sink") == {(topic, 0): 10_001}
        written.append((kafka.values(topic, 10_001), copy.read_bytes()))
    assert written[0] == written[1]


def test_a_bad_record_among_columns_is_skipped_and_goes_to_the_dead_letter_queue(
    kafka: Kafka, topic: str, unique: Names, name: str, tmp_path: Path
) -> None:
    def envelope(number: int) -> str:
        return f'{{"schema":{{"type":"string","optional":false}},"payload":"{number}"}}'

    kafka.produce(topic, *map(envelope, range(3000)), "not JSON", *map(envelope, range(3000, 6000)))
    letters, copy = unique("dlq"), tmp_path / "out"
    tolerant = {"errors_tolerance": "all", "errors_deadletterqueue_topic_name": letters}
    more = {"value_converter": "JsonConverter", "errors_deadletterqueue_topic_replication_factor": "1", **tolerant}
    with RunningTask(file_sink(name, topic, copy, **more), kafka.worker(), bounded=True) as task:
        assert task.join().records == 6000
    assert lines(copy) == [str(number) for number in range(6000)]
    assert kafka.values(letters, 1) == ["not JSON"]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 6001}


def test_a_bad_record_among_columns_fails_a_task_after_those_before_it(
    kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    kafka.produce(topic, *(f'"{number}"' for number in range(3000)), "not JSON", '"after"')
    own = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}
    with RunningTask(file_sink(name, topic, tmp_path / "out", **own), kafka.worker(), bounded=True) as task:
        assert task.join().failed
    assert lines(tmp_path / "out") == [str(number) for number in range(3000)]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 3000}
