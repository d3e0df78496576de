"""Records that Kafka rejects, with ``errors.tolerance=all``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.source.failed_sends import FailedSends
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.record_sender import RecordSender
from sluiceway.runtime.source.submitted_records import SubmittedRecords
from sluiceway.runtime.task_converters import task_converters
from support.engine import Offsets, RunningTask
from support.engine_connectors import ACKNOWLEDGED_SOURCE, SOURCE, Script, script
from unit.runtime.fake_clients import FakeProducer
from unit.runtime.source.test_worker_source_task import config, record, run_to_the_end, stored, values, worker

BAD = b"bad"
RECORDS = [record("a", 1), record("bad", 2), record("c", 3)]


def rejecting(code: int) -> Callable[[Any], None]:
    """Return an ``on_start`` after which the producer's broker rejects each request with a bad record."""

    def begin(_task: Any) -> None:
        FakeProducer.made[-1].judge = lambda request: KafkaError(code) if BAD in request else None

    return begin


def run(code: int, *, connector: str = SOURCE, **more: str) -> tuple[Script, RunningTask]:
    made = script("src", RECORDS, on_start=rejecting(code))
    with RunningTask(config(connector, **more), worker(), bounded=True) as task:
        task.join()
    return made, task


CODES = [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD]


@pytest.mark.parametrize("code", CODES)
def test_only_the_record_that_is_rejected_alone_is_skipped(
    code: int, producers: list[FakeProducer], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _, task = run(code, errors_tolerance="all")
    assert not task.join().failed
    assert producers[-1].taken == [b"a", b"c"]
    assert stored(task) == {"position": 3}
    assert "Skipped a record (1 skipped so far): a record for topic t with source offset {'position': 2}" in caplog.text
    assert "producer.override.batch.size" in caplog.text


def test_a_skipped_record_is_logged_with_connects_stage(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        run(KafkaError.INVALID_RECORD, errors_tolerance="all", errors_log_enable="true")
    assert "Error encountered in task src-0. Executing stage 'KAFKA_PRODUCE'" in caplog.text


@pytest.mark.parametrize("code", CODES)
def test_without_tolerance_the_task_fails_and_no_offset_is_stored(code: int) -> None:
    _, task = run(code)
    assert task.join().failed
    assert task.offsets.puts == []


@pytest.mark.parametrize(
    "code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._MSG_TIMED_OUT, KafkaError.INVALID_REQUIRED_ACKS]
)
def test_an_error_not_about_the_record_fails_the_task_even_with_tolerance(code: int) -> None:
    _, task = run(code, errors_tolerance="all")
    assert task.join().failed
    assert task.offsets.puts == []


def test_each_record_is_acknowledged_once_and_a_skipped_one_without_partition_and_offset() -> None:
    made, _ = run(KafkaError.INVALID_RECORD, connector=ACKNOWLEDGED_SOURCE, errors_tolerance="all")
    acknowledged = {call[1]: call[2:] for call in made.calls if call[0] == "commit_record"}
    assert acknowledged["bad"] == (-1, -1)
    assert acknowledged["a"] != (-1, -1)
    assert acknowledged["c"] != (-1, -1)
    assert [call[0] for call in made.calls].count("commit_record") == 3


def test_a_record_that_the_client_rejects_is_skipped(producers: list[FakeProducer]) -> None:
    _, task = run_to_the_end([record("a", 1), record("x" * 1001, 2), record("c", 3)], errors_tolerance="all")
    assert values() == [b"a", b"c"]
    assert stored(task) == {"position": 3}


def test_a_lost_record_fails_the_next_batch_and_not_only_the_next_commit(producers: list[FakeProducer]) -> None:
    sender = RecordSender(
        {},
        task_converters(config(), WorkerConfig.of(worker())),
        OffsetStorageWriter(Offsets(), "src"),
        RetryWithToleranceOperator({}),
        interrupt=lambda: None,
        new_topic=lambda _topic: None,
    )
    sender.poll_deliveries()
    producers[-1].error = KafkaError(KafkaError._MSG_TIMED_OUT)
    with pytest.raises(ConnectError, match="_MSG_TIMED_OUT"):
        sender.send(SubmittedRecords.of(RECORDS[:1]))
    with pytest.raises(ConnectError, match="_MSG_TIMED_OUT"):
        sender.poll_deliveries()


def test_flush_waits_for_rejected_records_to_be_sent_again(producers: list[FakeProducer]) -> None:
    offsets = OffsetStorageWriter(Offsets(), "src")
    sender = RecordSender(
        {},
        task_converters(config(), WorkerConfig.of(worker())),
        offsets,
        RetryWithToleranceOperator({"errors.tolerance": "all"}),
        interrupt=lambda: None,
        new_topic=lambda _topic: None,
        tolerant=True,
    )
    sender.send(SubmittedRecords.of(RECORDS[:1]))
    producers[-1].unresponsive = True
    sends = sender._failed_sends
    assert sends is not None
    sends.add(RECORDS[2], None, KafkaClientError("refused", "INVALID_RECORD"))
    assert not sender.flush(0.05, lambda: None)
    producers[-1].unresponsive = False
    assert sender.flush(5.0, lambda: None)


def test_an_error_of_the_cluster_is_raised_unchanged() -> None:
    error = KafkaClientError("Cannot write", "TOPIC_AUTHORIZATION_FAILED")
    sends = FailedSends(None, None, object)  # type: ignore[arg-type]
    with pytest.raises(ConnectError) as raised:
        sends.skip(RECORDS[0], None, error)
    assert raised.value is error
