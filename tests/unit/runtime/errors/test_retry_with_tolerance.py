from __future__ import annotations

import logging
from typing import Any

import pytest

from sluiceway.api import SourceRecord
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConfigError, ConnectError, DataError, RetriableError
from sluiceway.runtime.errors.processing_context import ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import ErrorCounts, RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from unit.runtime.error_handling import ALL, CONTEXT, DEAD_LETTER_QUEUE, MESSAGE, tolerance
from unit.runtime.fake_clients import FakeProducer


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
        made.execute_failed("the record", DataError("bad"), CONTEXT)
    assert isinstance(failed.value.__cause__, DataError)
    assert counts(made) == {**dict.fromkeys(counts(made), 0), "record_failures": 1, "record_errors": 1}
    assert made.counts.last_error_timestamp > 1_600_000_000_000


def test_bad_records_are_skipped_and_counted_with_tolerance(caplog: pytest.LogCaptureFixture) -> None:
    made = tolerance(ALL)
    for _ in range(500):
        made.execute_failed("the record", DataError("bad"), CONTEXT)
    assert counts(made) == {
        **dict.fromkeys(counts(made), 0),
        "record_failures": 500,
        "record_errors": 500,
        "records_skipped": 500,
    }
    assert 10 <= len(caplog.records) < 20, "the log must be neither silent nor flooded"
    made.close()
    assert "orders-3 skipped 500 records in all" in caplog.text


def test_each_attempt_of_a_retried_operation_is_counted() -> None:
    made = tolerance({"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "1"})
    answers: list[Any] = [RetriableError("2"), "done"]

    def operation() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert made.retry(operation, "the record", RetriableError("1"), CONTEXT) == "done"
    assert (made.counts.record_failures, made.counts.retries, made.counts.record_errors) == (2, 2, 0)
    assert made.counts.last_error_timestamp == 0


@pytest.mark.parametrize("tolerant", [True, False])
def test_an_operation_that_keeps_failing_is_reported(tolerant: bool) -> None:
    made = tolerance(ALL if tolerant else {})
    if tolerant:
        assert made.retry(lambda: "never called", "the record", DataError("bad"), CONTEXT) is None
    else:
        with pytest.raises(ConnectError):
            made.retry(lambda: "never called", "the record", RetriableError("timeout is 0"), CONTEXT)
    assert (made.counts.record_failures, made.counts.record_errors, made.skipped) == (1, 1, int(tolerant))


def test_the_log_message_is_connects(caplog: pytest.LogCaptureFixture) -> None:
    made = tolerance({**ALL, "errors.log.enable": "true"})
    made.execute_failed("the record", DataError("bad"), CONTEXT)
    kind = "sluiceway.converters.json_converter.JsonConverter"
    stage = f"Error encountered in task orders-3. Executing stage 'VALUE_CONVERTER' with class '{kind}'"
    assert [record.message for record in caplog.records] == [f"{stage}."]
    assert "DataError: bad" in caplog.text, "the trace is missing"
    caplog.clear()
    made = tolerance({**ALL, "errors.log.enable": "true", "errors.log.include.messages": "true"})
    made.execute_failed("the record", DataError("bad"), CONTEXT)
    where = "topic='t', partition=1, offset=42, timestamp=1000, timestampType=CreateTime"
    assert [record.message for record in caplog.records] == [f"{stage}, where consumed record is {{{where}}}."]
    assert made.counts.errors_logged == 1


def test_a_source_record_is_in_the_log_only_if_configured(caplog: pytest.LogCaptureFixture) -> None:
    record = SourceRecord({"file": "f"}, {"position": 1}, "t", "secret", STRING_SCHEMA)
    failure = ProcessingContext(Stage.TRANSFORMATION, JsonConverter, record)
    tolerance({**ALL, "errors.log.enable": "true"}).execute_failed("it", DataError("bad"), failure)
    assert "secret" not in caplog.text
    tolerance({**ALL, "errors.log.enable": "true", "errors.log.include.messages": "true"}).execute_failed(
        "it", DataError("b"), failure
    )
    assert ", where source record is = SourceRecord{sourcePartition={file=f}, sourceOffset={position=1}}" in caplog.text
    assert "secret" in caplog.text


def test_a_dead_letter_queue_record_has_the_original_bytes_and_connects_headers_in_order(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **DEAD_LETTER_QUEUE, "errors.deadletterqueue.context.headers.enable": "true"})
    made.execute_failed("the record", caught(DataError("bad")), CONTEXT)
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


def test_without_context_headers_a_dead_letter_queue_record_has_only_its_own(producers: list[FakeProducer]) -> None:
    tolerance({**ALL, **DEAD_LETTER_QUEUE}).execute_failed("the record", DataError("bad"), CONTEXT)
    assert producers[-1].sent[0][3]["headers"] == [("h", b"1")]


def test_a_dead_letter_queue_record_is_written_even_if_the_task_fails(producers: list[FakeProducer]) -> None:
    made = tolerance(DEAD_LETTER_QUEUE)
    with pytest.raises(ConnectError):
        made.execute_failed("the record", DataError("bad"), CONTEXT)
    assert len(producers[-1].sent) == 1
    assert made.counts.deadletterqueue_produce_requests == 1


def test_a_dead_letter_queue_topic_without_a_producer_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"errors\.deadletterqueue\.topic\.name"):
        RetryWithToleranceOperator(DEAD_LETTER_QUEUE)


def test_a_report_without_a_dead_letter_queue_is_done_at_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert tolerance({**ALL, "errors.log.enable": "true"}).execute_failed("it", DataError("bad"), CONTEXT).done()


@pytest.mark.parametrize("command", [Interrupted, Abandoned])
def test_a_command_during_an_operation_is_neither_tolerated_nor_retried_nor_counted(command: type[BaseException]) -> None:
    made = tolerance({**ALL, "errors.retry.timeout": "-1"})
    calls: list[int] = []

    def operation() -> None:
        calls.append(1)
        raise command

    with pytest.raises(command):
        made.retry(operation, "the record", RetriableError("not yet"), CONTEXT)
    assert len(calls) == 1
    assert (made.counts.record_failures, made.counts.record_errors, made.skipped) == (1, 0, 0), "the RetriableError alone"
