"""Bad records on a real broker: retries, tolerance, dead letter queue records, and committed offsets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from sluiceway.api import Converter, SchemaAndValue
from sluiceway.runtime.errors import error_handling
from sluiceway.runtime.errors.retry_with_tolerance import ErrorCounts, RetryWithToleranceOperator
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.bad_records import FLAKY, JSON, PREFIX, Flaky, committed, headers, sink, tolerant
from support.engine import RunningTask
from support.engine_connectors import script
from support.eventually import LIMIT, eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[ErrorCounts]:
    """The error counts of each started task."""
    made: list[ErrorCounts] = []

    def counted(*arguments: Any, **more: Any) -> RetryWithToleranceOperator:
        tolerance = RetryWithToleranceOperator(*arguments, **more)
        made.append(tolerance.counts)
        return tolerance

    monkeypatch.setattr(error_handling, "RetryWithToleranceOperator", counted)
    return made


class Closed(Converter):
    closed = 0

    def from_connect_data(self, topic: str, schema: Any, value: Any) -> bytes | None:
        return value

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(None, data)

    def close(self) -> None:
        Closed.closed += 1


def test_bad_records_go_to_the_dead_letter_queue_with_all_headers(
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
    context = {key.removeprefix(PREFIX): value.decode() for key, value in first.headers()[1:]}
    assert list(context) == [
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
    assert (context["topic"], context["partition"], context["offset"]) == (topic, "0", "1")
    assert (context["connector.name"], context["task.id"], context["stage"]) == (name, "0", "VALUE_CONVERTER")
    assert context["class.name"] == "sluiceway.converters.json_converter.JsonConverter"
    assert context["exception.class.name"].startswith("sluiceway.errors.")
    assert context["exception.stacktrace"].startswith(f"{context['exception.class.name']}: {context['exception.message']}\n")
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
def test_a_dead_letter_queue_record_has_the_stage(
    kafka: Kafka, topic: str, name: str, dlq: str, stage: str, settings: dict[str, str]
) -> None:
    kafka.produce(topic, "bad", key=b"bad", headers=[("h", b"bad")])
    script(name)
    with RunningTask(sink(name, topic, settings, tolerant(dlq)), kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    (rejected,) = kafka.read(dlq, 1)
    assert headers(rejected)[f"{PREFIX}stage"] == stage
    assert (rejected.key(), rejected.value(), rejected.headers()[0]) == (b"bad", b"bad", ("h", b"bad"))


def test_without_tolerance_the_bad_record_goes_to_the_dead_letter_queue_and_fails_the_task(
    kafka: Kafka, topic: str, name: str, dlq: str
) -> None:
    kafka.produce(topic, "1", "bad", "3")
    made = script(name)
    with RunningTask(sink(name, topic, JSON, tolerant(dlq), {"errors.tolerance": "none"}), kafka.worker()) as task:
        assert task.join().failed
    assert [record.value for record in made.taken] == [1]
    assert committed(kafka, name, topic) == 1
    assert kafka.values(dlq, 1) == ["bad"]


def test_retriable_errors_are_retried_and_nothing_is_skipped_or_reordered(
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
        task.wait_for(State.PAUSED)
        assert committed(kafka, name, topic) == 1
        task.commands.give(TaskCommand.RUN)
        left = Flaky.failures["never"]
        eventually(lambda: Flaky.failures["never"] < left)
        assert not task.stop().failed
    assert committed(kafka, name, topic) == 1


def test_a_reported_record_goes_to_the_dead_letter_queue_as_consumed(kafka: Kafka, topic: str, name: str, dlq: str) -> None:
    kafka.produce(topic, b'"good"', b' "bad"', b'"fine"')
    sent: list[Future[None]] = []
    there: list[int] = []

    def write(task: Any, records: Any) -> None:
        for record in records:
            if record.value["v"] == "bad":
                sent.append(task.context.errant_record_reporter.report(record, ValueError("no such row")))
                sent[-1].result(LIMIT)
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
    (rejected,) = kafka.read(dlq, 1)
    assert rejected.value() == b' "bad"'
    context = headers(rejected)
    assert (context[f"{PREFIX}stage"], context[f"{PREFIX}exception.class.name"]) == ("TASK_PUT", "builtins.ValueError")
    assert committed(kafka, name, topic) == 3


@pytest.mark.parametrize(
    ("settings", "present"),
    [
        ({}, False),
        ({"errors.tolerance": "all"}, False),
        ({"errors.log.enable": "true"}, True),
    ],
)
def test_the_errant_record_reporter_exists_only_with_tolerance_and_a_destination(
    kafka: Kafka, topic: str, name: str, settings: dict[str, str], present: bool
) -> None:
    seen: list[bool] = []
    kafka.produce(topic, "a")
    script(name, on_put=lambda task, _records: seen.append(task.context.errant_record_reporter is not None))
    with RunningTask(sink(name, topic, settings), kafka.worker(), bounded=True) as task:
        task.join()
    assert set(seen) == {present}


def test_a_report_without_tolerance_fails_the_task_even_if_it_ignores_the_error(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a", "b")

    def write(task: Any, records: Any) -> None:
        for record in records:
            with contextlib.suppress(Exception):
                task.context.errant_record_reporter.report(record, ValueError("no"))

    script(name, on_put=write)
    with RunningTask(sink(name, topic, {"errors.log.enable": "true"}), kafka.worker()) as task:
        assert "Tolerance exceeded" in (task.join().trace or "")
    assert committed(kafka, name, topic) is None


@pytest.mark.parametrize("step", [None, ValueError("broken")])
def test_converters_are_closed_when_the_task_ends(kafka: Kafka, topic: str, name: str, step: Exception | None) -> None:
    Closed.closed = 0
    kafka.produce(topic, "a")
    script(name, *([step] if step else []))
    own = {"value.converter": f"{__name__}.Closed"}
    with RunningTask(sink(name, topic, own), kafka.worker(), bounded=True) as task:
        assert task.join().failed == (step is not None)
    assert Closed.closed == 1
