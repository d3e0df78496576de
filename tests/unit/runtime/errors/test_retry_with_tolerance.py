from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from confluent_kafka import KafkaError

from sluiceway.api import SinkTask, SourceRecord
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Header
from sluiceway.errors import ConfigError, ConnectError, DataError, RetriableError
from sluiceway.kafka.dead_letter_headers import CONTEXT_PREFIX
from sluiceway.runtime.errors import dead_letter_queue
from sluiceway.runtime.errors.dead_letter_queue import DeadLetterQueue
from sluiceway.runtime.errors.dead_letter_record import dead_letter_record
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import ErrorCounts, RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.storage.model import TaskId
from unit.runtime.fake_clients import FakeProducer

TASK = TaskId("orders", 3)
MESSAGE = ConsumerRecord("t", 1, 42, 1, 1000, b"k", b"\xff", [("h", b"1")])
FAILURE = ProcessingContext(Stage.VALUE_CONVERTER, JsonConverter, MESSAGE)
LETTERS = {"errors.deadletterqueue.topic.name": "dlq"}
ALL = {"errors.tolerance": "all"}


@pytest.fixture(autouse=True)
def producers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeProducer]]:
    FakeProducer.made.clear()
    monkeypatch.setattr(dead_letter_queue, "producer", FakeProducer)
    return FakeProducer.made


def queue(wait: Any = lambda _seconds: None) -> DeadLetterQueue:
    return DeadLetterQueue("dlq", {"delivery.report.only.error": False}, wait)


def tolerance(config: dict[str, str], **more: Any) -> RetryWithToleranceOperator:
    dead_letter_queue = queue() if "errors.deadletterqueue.topic.name" in config else None
    return RetryWithToleranceOperator(config, task=TASK, wait=lambda _seconds: None, dead_letter_queue=dead_letter_queue, **more)


def caught(error: Exception) -> Exception:
    """Return an error with a trace."""
    try:
        raise error
    except Exception as raised:  # noqa: BLE001
        return raised


def counts(made: RetryWithToleranceOperator) -> dict[str, int]:
    return {name: getattr(made.counts, name) for name in ErrorCounts.__slots__ if name != "last_error_timestamp"}


def test_the_first_bad_record_fails_the_task() -> None:
    made = tolerance({})
    with pytest.raises(ConnectError, match="Tolerance exceeded in error handler: the record: bad") as failed:
        made.execute_failed("the record", DataError("bad"), FAILURE)
    assert isinstance(failed.value.__cause__, DataError)
    assert counts(made) == {**dict.fromkeys(counts(made), 0), "record_failures": 1, "record_errors": 1}
    assert made.counts.last_error_timestamp > 1_600_000_000_000


def test_bad_records_are_left_out_and_counted_where_that_is_tolerated(caplog: pytest.LogCaptureFixture) -> None:
    made = tolerance(ALL)
    for _ in range(500):
        made.execute_failed("the record", DataError("bad"), FAILURE)
    assert counts(made) == {
        **dict.fromkeys(counts(made), 0),
        "record_failures": 500,
        "record_errors": 500,
        "records_skipped": 500,
    }
    assert 10 <= len(caplog.records) < 20, "neither silent nor a flood"
    made.close()
    assert "orders-3 skipped 500 records in all" in caplog.text


def test_a_retried_operation_is_counted_attempt_by_attempt() -> None:
    made = tolerance({"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "1"})
    answers: list[Any] = [RetriableError("2"), "done"]

    def operation() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert made.retry(operation, "the record", RetriableError("1"), FAILURE) == "done"
    assert (made.counts.record_failures, made.counts.retries, made.counts.record_errors) == (2, 2, 0)
    assert made.counts.last_error_timestamp == 0


@pytest.mark.parametrize("tolerant", [True, False])
def test_what_cannot_be_recovered_is_refused(tolerant: bool) -> None:
    made = tolerance(ALL if tolerant else {})
    if tolerant:
        assert made.retry(lambda: "never called", "the record", DataError("bad"), FAILURE) is None
    else:
        with pytest.raises(ConnectError):
            made.retry(lambda: "never called", "the record", RetriableError("timeout is 0"), FAILURE)
    assert (made.counts.record_failures, made.counts.record_errors, made.skipped) == (1, 1, int(tolerant))


def test_the_log_line_is_connects(caplog: pytest.LogCaptureFixture) -> None:
    made = tolerance({**ALL, "errors.log.enable": "true"})
    made.execute_failed("the record", DataError("bad"), FAILURE)
    kind = "sluiceway.converters.json_converter.JsonConverter"
    stage = f"Error encountered in task orders-3. Executing stage 'VALUE_CONVERTER' with class '{kind}'"
    assert [record.message for record in caplog.records] == [f"{stage}."]
    assert "DataError: bad" in caplog.text, "the trace is missing"
    caplog.clear()
    made = tolerance({**ALL, "errors.log.enable": "true", "errors.log.include.messages": "true"})
    made.execute_failed("the record", DataError("bad"), FAILURE)
    where = "topic='t', partition=1, offset=42, timestamp=1000, timestampType=CreateTime"
    assert [record.message for record in caplog.records] == [f"{stage}, where consumed record is {{{where}}}."]
    assert made.counts.errors_logged == 1


def test_a_source_record_is_in_the_log_only_if_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    record = SourceRecord({"file": "f"}, {"position": 1}, "t", "secret", STRING_SCHEMA)
    failure = ProcessingContext(Stage.TRANSFORMATION, JsonConverter, record)
    tolerance({**ALL, "errors.log.enable": "true"}).execute_failed("it", DataError("bad"), failure)
    assert "secret" not in caplog.text
    tolerance({**ALL, "errors.log.enable": "true", "errors.log.include.messages": "true"}).execute_failed(
        "it", DataError("b"), failure
    )
    assert ", where source record is = SourceRecord{sourcePartition={file=f}, sourceOffset={position=1}}" in caplog.text
    assert "secret" in caplog.text


def test_a_dead_letter_is_the_original_bytes_and_connects_headers_in_order(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **LETTERS, "errors.deadletterqueue.context.headers.enable": "true"})
    made.execute_failed("the record", caught(DataError("bad")), FAILURE)
    ((topic, value, key, options),) = producers[-1].sent
    assert (topic, value, key, options["timestamp"]) == ("dlq", b"\xff", b"k", 1000)
    own, *context, (last, trace) = options["headers"]
    assert own == ("h", b"1")
    assert context == [
        (f"__connect.errors.{name}", text)
        for name, text in (
            ("topic", b"t"),
            ("partition", b"1"),
            ("offset", b"42"),
            ("connector.name", b"orders"),
            ("task.id", b"3"),
            ("stage", b"VALUE_CONVERTER"),
            ("class.name", b"sluiceway.converters.json_converter.JsonConverter"),
            ("exception.class.name", b"sluiceway.errors.DataError"),
            ("exception.message", b"bad"),
        )
    ]
    assert last == "__connect.errors.exception.stacktrace"
    assert trace.startswith(b"sluiceway.errors.DataError: bad\n")
    assert b"in caught" in trace
    assert MESSAGE.headers == [("h", b"1")], "the record's own headers were changed"


def test_without_context_headers_a_dead_letter_has_only_its_own(producers: list[FakeProducer]) -> None:
    tolerance({**ALL, **LETTERS}).execute_failed("the record", DataError("bad"), FAILURE)
    assert producers[-1].sent[0][3]["headers"] == [("h", b"1")]


def test_a_record_without_a_time_has_none_as_a_dead_letter() -> None:
    message = ConsumerRecord("t", 0, 0, 0, -1, None, None)
    letter = dead_letter_record(ProcessingContext(Stage.TASK_PUT, SinkTask, message), DataError(""), TASK, context_headers=True)
    assert (letter.key, letter.value, letter.timestamp) == (None, None, None)
    assert dict(letter.headers)[f"{CONTEXT_PREFIX}exception.message"] is None


def test_a_dead_letter_is_written_also_when_the_task_then_fails(producers: list[FakeProducer]) -> None:
    made = tolerance(LETTERS)
    with pytest.raises(ConnectError):
        made.execute_failed("the record", DataError("bad"), FAILURE)
    assert len(producers[-1].sent) == 1
    assert made.counts.deadletterqueue_produce_requests == 1


def test_a_dead_letter_topic_without_a_queue_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"errors\.deadletterqueue\.topic\.name"):
        RetryWithToleranceOperator(LETTERS)


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (SourceRecord({"f": 1}, {"p": 2}, "t", {"a": [1, "x"]}), {"a": [1, "x"]}),
        (SourceRecord({"f": 1}, {"p": 2}, "t", "not a number", INT32_SCHEMA), "not a number"),
        (SourceRecord({"f": 1}, {"p": 2}, "t", {1, 2}), None),
        (SourceRecord({"f": 1}, {"p": 2}, "t", None), None),
    ],
)
def test_the_dead_letter_of_a_source_is_json_as_far_as_that_goes(record: SourceRecord, value: Any) -> None:
    letter = dead_letter_record(
        ProcessingContext(Stage.TRANSFORMATION, JsonConverter, record), DataError("bad"), TASK, context_headers=True
    )
    if value is None and record.value is not None:
        assert isinstance(orjson.loads(letter.value or b""), str)
    else:
        assert (orjson.loads(letter.value) if letter.value is not None else None) == value
    headers = dict(letter.headers)
    assert headers["__sluiceway.errors.source.partition"] == b'{"f":1}'
    assert headers["__sluiceway.errors.source.offset"] == b'{"p":2}'
    assert headers["__connect.errors.topic"] == b"t"
    assert "__connect.errors.offset" not in headers


def test_the_headers_of_a_source_record_are_kept() -> None:
    record = SourceRecord({}, {}, "t", None, headers=(Header("h", 1, INT32_SCHEMA), Header("bad", object())))
    letter = dead_letter_record(
        ProcessingContext(Stage.TRANSFORMATION, JsonConverter, record), DataError("bad"), TASK, context_headers=False
    )
    assert letter.headers[0] == ("h", b"1")
    assert letter.headers[1][0] == "bad"


def test_nothing_may_be_committed_before_dead_letters_are_acknowledged(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **LETTERS})
    assert made.flush(0.0)
    producers[-1].deaf = True
    made.execute_failed("the record", DataError("bad"), FAILURE)
    assert not made.flush(0.0)
    producers[-1].deaf = False
    producers[-1].poll()
    assert made.flush(0.0)


def test_a_dead_letter_that_is_lost_fails_everything_after_it(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **LETTERS})
    producers[-1].error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    made.execute_failed("the record", DataError("bad"), FAILURE)
    for _ in range(2):
        with pytest.raises(ConnectError, match=r"A dead letter queue record was not written.*topic dlq"):
            made.flush(1.0)
        with pytest.raises(ConnectError, match="Allow the connector"):
            made.poll_deliveries()
    assert made.counts.deadletterqueue_produce_failures == 1


def test_a_dead_letter_that_is_too_large_fails_and_says_what_to_do(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **LETTERS})
    producers[-1].largest = 0
    made.execute_failed("the record", DataError("bad"), FAILURE)
    with pytest.raises(ConnectError, match=r"max\.message\.bytes"):
        made.flush(1.0)


def test_a_full_buffer_is_waited_for_and_another_order_ends_that(producers: list[FakeProducer]) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise Interrupted

    made = RetryWithToleranceOperator({**ALL, **LETTERS}, dead_letter_queue=queue(wait))
    producers[-1].room, producers[-1].deaf = 1, True
    made.execute_failed("the record", DataError("bad"), FAILURE)
    with pytest.raises(Interrupted):
        made.execute_failed("the record", DataError("bad"), FAILURE)
    assert waits == [0, 0]
    producers[-1].deaf = False
    assert made.flush(1.0), "the letter that was not sent is waited for"


def test_a_task_may_wait_for_its_report_without_anybody_else_at_work(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **LETTERS})
    sent = made.execute_failed("the record", DataError("bad"), FAILURE)
    assert not sent.done()
    waiting = threading.Thread(target=sent.result, daemon=True)
    waiting.start()
    waiting.join(10)
    assert sent.done()
    assert made.counts.records_skipped == 1


def test_a_record_that_no_dead_letter_is_asked_for_is_reported_at_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert tolerance({**ALL, "errors.log.enable": "true"}).execute_failed("it", DataError("bad"), FAILURE).done()


@pytest.mark.parametrize("command", [Interrupted, Abandoned])
def test_a_command_inside_an_operation_is_neither_tolerated_nor_retried_nor_counted(command: type[BaseException]) -> None:
    made = tolerance({**ALL, "errors.retry.timeout": "-1"})
    calls: list[int] = []

    def operation() -> None:
        calls.append(1)
        raise command

    with pytest.raises(command):
        made.retry(operation, "the record", RetriableError("not yet"), FAILURE)
    assert len(calls) == 1
    assert (made.counts.record_failures, made.counts.record_errors, made.skipped) == (1, 0, 0), "the RetriableError alone"
