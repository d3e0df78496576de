"""Bad records on a real broker: retries, log, dead letters, and what is committed."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from sluiceway.api import Converter, SchemaAndValue
from sluiceway.cli.main import main
from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.errors import error_handling
from sluiceway.runtime.errors.retry_with_tolerance import ErrorCounts, RetryWithToleranceOperator
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.model import State
from support.bad_records import FLAKY, PREFIX, Flaky, headers, tolerant
from support.engine import RunningTask
from support.engine_connectors import dotted, script, scripted_sink
from support.eventually import eventually
from support.faults.proxy import TcpProxy
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]
JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}


@pytest.fixture
def dlq(unique: Names) -> str:
    return unique("dlq")


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[ErrorCounts]:
    """The counts of each task that is started."""
    made: list[ErrorCounts] = []

    def counted(*arguments: Any, **more: Any) -> RetryWithToleranceOperator:
        tolerance = RetryWithToleranceOperator(*arguments, **more)
        made.append(tolerance.counts)
        return tolerance

    monkeypatch.setattr(error_handling, "RetryWithToleranceOperator", counted)
    return made


def sink(name: str, topic: str, *settings: Mapping[str, str]) -> dict[str, str]:
    config = scripted_sink(name, topic)
    for each in settings:
        config.update(each)
    return config


def committed(kafka: Kafka, name: str, topic: str) -> int | None:
    return kafka.committed(f"connect-{name}").get((topic, 0))


class Closed(Converter):
    closed = 0

    def from_connect_data(self, topic: str, schema: Any, value: Any) -> bytes | None:
        return value

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(None, data)

    def close(self) -> None:
        Closed.closed += 1


def test_bad_records_are_skipped_and_are_dead_letters_with_all_headers(
    kafka: Kafka, topic: str, name: str, dlq: str, counts: list[ErrorCounts]
) -> None:
    kafka.produce(topic, "1", "bad", "3", key=b"\x00k", headers=[("own", b"\xff")], timestamp=1_700_000_000_000)
    kafka.produce(topic, "worse", None)
    made = script(name)
    with RunningTask(sink(name, topic, JSON, tolerant(dlq)), kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert [record.value for record in made.taken] == [1, 3, None]
    first, second = kafka.read(dlq, 2)
    assert (first.key(), first.value(), first.timestamp()) == (b"\x00k", b"bad", (1, 1_700_000_000_000))
    assert (second.key(), second.value()) == (None, b"worse")
    assert first.headers()[0] == ("own", b"\xff")
    told = {key.removeprefix(PREFIX): value.decode() for key, value in first.headers()[1:]}
    assert list(told) == [
        "topic",
        "partition",
        "offset",
        "connector.name",
        "task.id",
        "stage",
        "class.name",
        "exception.class.name",
        "exception.message",
        "exception.stacktrace",
    ]
    assert (told["topic"], told["partition"], told["offset"]) == (topic, "0", "1")
    assert (told["connector.name"], told["task.id"], told["stage"]) == (name, "0", "VALUE_CONVERTER")
    assert told["class.name"] == "sluiceway.converters.json_converter.JsonConverter"
    assert told["exception.class.name"].startswith("sluiceway.errors.")
    assert told["exception.stacktrace"].startswith(f"{told['exception.class.name']}: {told['exception.message']}\n")
    assert committed(kafka, name, topic) == 5
    (count,) = counts
    assert (count.record_failures, count.record_errors, count.records_skipped, count.retries) == (2, 2, 2, 0)
    assert (count.deadletterqueue_produce_requests, count.deadletterqueue_produce_failures) == (2, 0)
    assert len(kafka.admin.list_topics(dlq, timeout=10).topics[dlq].partitions) == 1


@pytest.mark.parametrize(
    ("stage", "settings"),
    [
        ("KEY_CONVERTER", {"key.converter": "JsonConverter"}),
        ("HEADER_CONVERTER", {"header.converter": "JsonConverter"}),
        (
            "TRANSFORMATION",
            {
                "transforms": "cast",
                "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
                "transforms.cast.spec": "int32",
            },
        ),
    ],
)
def test_the_dead_letter_says_the_stage(
    kafka: Kafka, topic: str, name: str, dlq: str, stage: str, settings: dict[str, str]
) -> None:
    kafka.produce(topic, "bad", key=b"bad", headers=[("h", b"bad")])
    script(name)
    with RunningTask(sink(name, topic, settings, tolerant(dlq)), kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    (letter,) = kafka.read(dlq, 1)
    assert headers(letter)[f"{PREFIX}stage"] == stage
    assert (letter.key(), letter.value(), letter.headers()[0]) == (b"bad", b"bad", ("h", b"bad"))


def test_without_tolerance_the_bad_record_is_a_dead_letter_and_the_task_fails_at_it(
    kafka: Kafka, topic: str, name: str, dlq: str
) -> None:
    kafka.produce(topic, "1", "bad", "3")
    made = script(name)
    with RunningTask(sink(name, topic, JSON, tolerant(dlq), {"errors.tolerance": "none"}), kafka.worker()) as task:
        assert task.join().failed
    assert [record.value for record in made.taken] == [1]
    assert committed(kafka, name, topic) == 1
    assert kafka.values(dlq, 1) == ["bad"]


def test_what_fails_for_a_while_is_tried_again_and_nothing_is_skipped_or_reordered(
    kafka: Kafka, topic: str, name: str, counts: list[ErrorCounts]
) -> None:
    kafka.produce(topic, "a", "b", "c")
    Flaky.failures = {"Struct{v=b}": 6}
    made = script(name)
    chain = {
        **FLAKY,
        "transforms": "hoist,flaky",
        "transforms.hoist.field": "v",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    }
    retry = {"errors.retry.timeout": "60000", "errors.retry.delay.max.ms": "20"}
    with RunningTask(sink(name, topic, chain, retry), kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert [record.value for record in made.taken] == [f"Struct{{v={letter}}}!" for letter in "abc"]
    assert counts[0].retries >= 1
    assert counts[0].record_failures >= counts[0].retries
    assert (counts[0].record_errors, counts[0].records_skipped) == (0, 0)


def test_infinite_retries_end_with_the_task_and_commit_nothing_of_the_batch(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    Flaky.failures = {"never": 1_000_000}
    made = script(name)
    retry = {"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "600000"}
    with RunningTask(sink(name, topic, FLAKY, retry, tolerant()), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 1)
        left = Flaky.failures["never"]
        kafka.produce(topic, "never")
        eventually(lambda: Flaky.failures["never"] <= left - 3)
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED, within=5)
        assert committed(kafka, name, topic) == 1
        task.commands.give(TaskCommand.RUN)
        left = Flaky.failures["never"]
        eventually(lambda: Flaky.failures["never"] < left)
        assert not task.stop().failed
    assert committed(kafka, name, topic) == 1


def test_a_task_reports_what_it_cannot_write_and_the_original_is_the_dead_letter(
    kafka: Kafka, topic: str, name: str, dlq: str
) -> None:
    kafka.produce(topic, b'"good"', b' "bad"', b'"fine"')
    sent: list[Future[None]] = []
    there: list[int] = []

    def write(task: Any, records: Any) -> None:
        for record in records:
            if record.value["v"] == "bad":
                sent.append(task.context.errant_record_reporter.report(record, ValueError("no such row")))
                sent[-1].result(30)
                there.append(kafka.end(dlq))

    hoist = {
        "transforms": "h",
        "transforms.h.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.h.field": "v",
    }
    script(name, on_put=write)
    with RunningTask(sink(name, topic, JSON, hoist, tolerant(dlq)), kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert there == [1], "the future was done before the dead letter was in Kafka"
    (letter,) = kafka.read(dlq, 1)
    assert letter.value() == b' "bad"'
    told = headers(letter)
    assert (told[f"{PREFIX}stage"], told[f"{PREFIX}exception.class.name"]) == ("TASK_PUT", "builtins.ValueError")
    assert committed(kafka, name, topic) == 3


@pytest.mark.parametrize(
    ("settings", "present"),
    [
        ({}, False),
        ({"errors.tolerance": "all"}, False),
        ({"errors.log.enable": "true"}, True),
    ],
)
def test_there_is_a_reporter_only_where_reports_go_somewhere(
    kafka: Kafka, topic: str, name: str, settings: dict[str, str], present: bool
) -> None:
    seen: list[bool] = []
    kafka.produce(topic, "a")
    script(name, on_put=lambda task, _records: seen.append(task.context.errant_record_reporter is not None))
    with RunningTask(sink(name, topic, settings), kafka.worker(), bounded=True) as task:
        task.join()
    assert set(seen) == {present}


def test_a_report_beyond_tolerance_fails_the_task_even_if_it_swallows_the_error(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a", "b")

    def write(task: Any, records: Any) -> None:
        for record in records:
            with contextlib.suppress(Exception):
                task.context.errant_record_reporter.report(record, ValueError("no"))

    script(name, on_put=write)
    with RunningTask(sink(name, topic, {"errors.log.enable": "true"}), kafka.worker()) as task:
        assert "Tolerance exceeded" in (task.join().trace or "")
    assert committed(kafka, name, topic) is None


def test_dead_letters_that_kafka_refuses_fail_the_task_and_nothing_is_committed(
    kafka: Kafka, topic: str, name: str, dlq: str
) -> None:
    kafka.admin.create_topics([NewTopic(dlq, 1, 1, config={"max.message.bytes": "100"})])[dlq].result(30)
    kafka.produce(topic, "1", "bad", "3")
    script(name)
    with RunningTask(sink(name, topic, JSON, tolerant(dlq)), kafka.worker(offset_flush_interval_ms="50")) as task:
        result = task.join()
    expected = "A dead letter queue record was not written, so no more offsets are committed: "
    assert f"{expected}Cannot write a dead letter queue record to topic {dlq}" in (result.trace or "")
    assert committed(kafka, name, topic) is None


@pytest.fixture
def way(kafka: Kafka) -> Iterator[TcpProxy]:
    """The way to the dead letter topic, closed at first; records and offsets go another one."""
    with TcpProxy(int(kafka.bootstrap.rpartition(":")[2])) as proxy:
        proxy.drop()
        yield proxy


def by(way: TcpProxy, **more: str) -> dict[str, str]:
    settings = {"bootstrap.servers": f"127.0.0.1:{way.port}", **dotted(more)}
    return {f"producer.override.{key}": value for key, value in settings.items()}


def test_a_dead_letter_topic_that_is_away_is_waited_for_and_offsets_with_it(
    kafka: Kafka, topic: str, name: str, dlq: str, way: TcpProxy, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.produce(topic, "1", "bad", "3")
    made = script(name)
    worker = kafka.worker(offset_flush_interval_ms="50", offset_flush_timeout_ms="200")
    with RunningTask(sink(name, topic, JSON, tolerant(dlq), by(way)), worker) as task:
        eventually(lambda: caplog.text.count(f"dead letter queue records for topic {dlq}") >= 3)
        assert [record.value for record in made.taken] == [1, 3]
        assert committed(kafka, name, topic) is None
        assert task.result is None
        way.restore()
        eventually(lambda: committed(kafka, name, topic) == 3)
    assert kafka.values(dlq, 1) == ["bad"]


def test_a_dead_letter_topic_that_stays_away_fails_the_task_in_the_end(
    kafka: Kafka, topic: str, name: str, dlq: str, way: TcpProxy
) -> None:
    kafka.produce(topic, "bad")
    script(name)
    config = sink(name, topic, JSON, tolerant(dlq), by(way, delivery_timeout_ms="2000"))
    with RunningTask(config, kafka.worker(offset_flush_interval_ms="50")) as task:
        assert "A dead letter queue record was not written" in (task.join().trace or "")
    assert committed(kafka, name, topic) is None


def test_only_bad_records_and_a_slow_dead_letter_topic_do_not_fill_the_memory(
    kafka: Kafka, topic: str, name: str, dlq: str
) -> None:
    count, size = 60_000, 2000
    producer_value = b"x" * size
    kafka.produce(topic, *([producer_value] * count))
    script(name)
    small = {"consumer.override.queued.max.messages.kbytes": "4096"}
    process = psutil.Process(os.getpid())
    with RunningTask(sink(name, topic, JSON, tolerant(dlq), small), kafka.worker(offset_flush_interval_ms="500")) as task:
        eventually(lambda: kafka_end(kafka, dlq) > 1000)
        before = process.memory_info().rss
        most = 0

        def done() -> bool:
            nonlocal most
            most = max(most, process.memory_info().rss)
            return kafka_end(kafka, dlq) >= count

        eventually(done, within=180)
        eventually(lambda: committed(kafka, name, topic) == count)
        assert task.result is None
    assert kafka.end(dlq) == count
    assert most - before < 48 << 20, f"{(most - before) >> 20} MiB more for {count * size >> 20} MiB of bad records"


def kafka_end(kafka: Kafka, topic: str) -> int:
    return kafka.end(topic) if topic in kafka.admin.list_topics(timeout=10).topics else 0


@pytest.mark.parametrize("step", [None, ValueError("broken")])
def test_converters_are_closed_when_the_task_ends(kafka: Kafka, topic: str, name: str, step: Exception | None) -> None:
    Closed.closed = 0
    kafka.produce(topic, "a")
    script(name, *([step] if step else []))
    own = {"value.converter": f"{__name__}.Closed"}
    with RunningTask(sink(name, topic, own), kafka.worker(), bounded=True) as task:
        assert task.join().failed == (step is not None)
    assert Closed.closed == 1


class Shell:
    """The command line against a cluster of its own."""

    def __init__(self, kafka: Kafka, folder: Path, unique: Names, capsys: pytest.CaptureFixture[str]) -> None:
        self.properties = {
            **kafka.worker(),
            "group.id": unique("cluster"),
            "config.storage.topic": unique("configs"),
            "config.storage.replication.factor": "1",
        }
        self.file = folder / "worker.properties"
        self.file.write_text("".join(f"{key}={value}\n" for key, value in self.properties.items()))
        self._capsys = capsys

    def put(self, config: Mapping[str, str]) -> None:
        store = KafkaConfigBackingStore(WorkerConfig.of(self.properties))
        store.start()
        store.put_connector(config["name"], config)
        store.stop()

    def run(self, *arguments: str) -> str:
        code = main(["dlq", arguments[0], "--worker", str(self.file), *arguments[1:]])
        printed = self._capsys.readouterr()
        assert code == 0, printed.err
        return printed.out

    def fail(self, *arguments: str) -> str:
        assert main(["dlq", arguments[0], "--worker", str(self.file), *arguments[1:]]) == 1
        return self._capsys.readouterr().err


@pytest.fixture
def shell(kafka: Kafka, tmp_path: Path, unique: Names, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(kafka, tmp_path, unique, capsys)


def test_dead_letters_are_listed_shown_and_replayed_once(kafka: Kafka, topic: str, name: str, dlq: str, shell: Shell) -> None:
    config = sink(name, topic, JSON, tolerant(dlq))
    shell.put(config)
    assert shell.run("list").split()[-4:] == [name, dlq, "0", "0"]
    kafka.produce(topic, "1", "bad", "worse", key=b"k", headers=[("own", b"1")])
    script(name)
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        task.join()
    assert json.loads(shell.run("list", "-o", "json")) == [{"connector": name, "topic": dlq, "letters": 2, "new": 2}]
    shown = json.loads(shell.run("show", name, "-o", "json"))
    assert [(letter["offset"], letter["key"], letter["value"]) for letter in shown] == [(0, "k", "bad"), (1, "k", "worse")]
    assert {"key": f"{PREFIX}stage", "value": "VALUE_CONVERTER"} in shown[0]["headers"]
    text = shell.run("show", name, "-n", "1")
    assert f"from topic {topic}, partition 0, offset 1" in text
    assert "VALUE_CONVERTER  sluiceway.errors." in text
    assert "worse" not in text

    assert shell.run("replay", name, "--dry-run") == f"2 records would be sent to {topic}\n"
    assert kafka.end(topic) == 3
    assert shell.run("replay", name, "-n", "1") == f"1 records sent to {topic}\n"
    assert shell.run("replay", name) == f"1 records sent to {topic}\n"
    assert shell.run("replay", name) == f"No records to replay in {dlq}\n"
    assert json.loads(shell.run("list", "-o", "json"))[0]["new"] == 0
    again = kafka.read(topic, 5)[3:]
    assert [(message.key(), message.value()) for message in again] == [(b"k", b"bad"), (b"k", b"worse")]
    assert again[0].headers() == [("own", b"1"), ("__sluiceway.replayed", b"1")]

    with RunningTask(config, kafka.worker(), bounded=True) as task:
        task.join()
    assert shell.run("replay", name, "--keep-headers", "-n", "1") == f"1 records sent to {topic}\n"
    last = kafka.read(topic, 6)[5]
    assert headers(last)["__sluiceway.replayed"] == "2"
    assert headers(last)[f"{PREFIX}stage"] == "VALUE_CONVERTER"


def test_letters_of_other_connectors_in_a_shared_topic_are_passed_by(kafka: Kafka, unique: Names, dlq: str, shell: Shell) -> None:
    configs = []
    for _ in range(2):
        name, topic = unique("connector"), kafka.create(unique("errors"))
        kafka.produce(topic, f"bad-{topic}")
        configs.append(sink(name, topic, JSON, tolerant(dlq)))
        shell.put(configs[-1])
        script(name)
        with RunningTask(configs[-1], kafka.worker(), bounded=True) as task:
            task.join()
    second = configs[1]
    out = json.loads(shell.run("replay", second["name"], "-o", "json"))
    assert out == {"dryRun": False, "sent": {second["topics"]: 1}, "left": {"of other connectors": 1}}
    assert kafka.values(second["topics"], 2) == [f"bad-{second['topics']}"] * 2
    assert kafka.end(configs[0]["topics"]) == 1


def test_letters_that_do_not_say_their_topic_wait_for_one_to_be_named(
    kafka: Kafka, topic: str, name: str, dlq: str, unique: Names, shell: Shell
) -> None:
    config = sink(name, topic, JSON, tolerant(dlq), {"errors.deadletterqueue.context.headers.enable": "false"})
    shell.put(config)
    kafka.produce(topic, "bad")
    script(name)
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        task.join()
    assert "Say with --topic where it is to go" in shell.fail("replay", name)
    other = kafka.create(unique("other"))
    assert shell.run("replay", name, "--topic", other) == f"1 records sent to {other}\n"
    assert kafka.values(other, 1) == ["bad"]


def test_a_connector_without_dead_letters_is_told_so(kafka: Kafka, topic: str, name: str, shell: Shell) -> None:
    assert f"Connector {name} not found" in shell.fail("show", name)
    shell.put(sink(name, topic))
    assert "does not set errors.deadletterqueue.topic.name" in shell.fail("show", name)
