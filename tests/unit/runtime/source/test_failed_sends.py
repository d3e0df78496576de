"""Records that Kafka refuses, where ``errors.tolerance=all`` lets them be left out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.source import record_sender as producing
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


@pytest.fixture(autouse=True)
def producers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeProducer]]:
    FakeProducer.made.clear()
    monkeypatch.setattr(producing, "producer", FakeProducer)
    return FakeProducer.made


def refusing(code: int) -> Callable[[Any], None]:
    """Return what makes the producer's broker refuse a request that holds a bad record."""

    def begin(_task: Any) -> None:
        FakeProducer.made[-1].judge = lambda request: KafkaError(code) if BAD in request else None

    return begin


def run(code: int, *, connector: str = SOURCE, **more: str) -> tuple[Script, RunningTask]:
    made = script("src", RECORDS, on_start=refusing(code))
    with RunningTask(config(connector, **more), worker(), bounded=True) as task:
        task.join()
    return made, task


CODES = [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD]


@pytest.mark.parametrize("code", CODES)
def test_only_the_record_that_is_refused_alone_is_left_out(
    code: int, producers: list[FakeProducer], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _, task = run(code, errors_tolerance="all")
    assert task.result is not None
    assert not task.result.failed
    assert producers[-1].taken == [b"a", b"c"]
    assert stored(task) == {"position": 3}
    assert "Skipped a record (1 skipped so far): a record for topic t with source offset {'position': 2}" in caplog.text
    assert "producer.override.batch.size" in caplog.text


def test_it_is_logged_with_connects_stage(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        run(KafkaError.INVALID_RECORD, errors_tolerance="all", errors_log_enable="true")
    assert "Error encountered in task src-0. Executing stage 'KAFKA_PRODUCE'" in caplog.text


@pytest.mark.parametrize("code", CODES)
def test_without_tolerance_the_task_fails_and_no_offset_is_stored(code: int) -> None:
    _, task = run(code)
    assert task.result is not None
    assert task.result.failed
    assert task.offsets.puts == []


@pytest.mark.parametrize(
    "code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._MSG_TIMED_OUT, KafkaError.INVALID_REQUIRED_ACKS]
)
def test_what_is_not_the_records_fault_fails_the_task_in_any_case(code: int) -> None:
    _, task = run(code, errors_tolerance="all")
    assert task.result is not None
    assert task.result.failed
    assert task.offsets.puts == []


def test_the_task_hears_of_each_record_once_and_of_the_one_left_out_without_a_place() -> None:
    made, _ = run(KafkaError.INVALID_RECORD, connector=ACKNOWLEDGED_SOURCE, errors_tolerance="all")
    heard = {call[1]: call[2:] for call in made.calls if call[0] == "commit_record"}
    assert heard["bad"] == (-1, -1)
    assert heard["a"] != (-1, -1)
    assert heard["c"] != (-1, -1)
    assert [call[0] for call in made.calls].count("commit_record") == 3


def test_a_record_that_the_client_itself_refuses_is_left_out(producers: list[FakeProducer]) -> None:
    _, task = run_to_the_end([record("a", 1), record("x" * 1001, 2), record("c", 3)], errors_tolerance="all")
    assert values() == [b"a", b"c"]
    assert stored(task) == {"position": 3}


def test_not_everything_has_arrived_while_it_is_not_known_what_becomes_of_a_record(producers: list[FakeProducer]) -> None:
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
    producers[-1].deaf = True
    sends = sender._failed_sends
    assert sends is not None
    sends.add(RECORDS[2], None, KafkaClientError("refused", "INVALID_RECORD"))
    assert not sender.flush(0.05, lambda: None)
    producers[-1].deaf = False
    assert sender.flush(5.0, lambda: None)


def test_an_error_of_the_cluster_is_raised_as_it_is() -> None:
    error = KafkaClientError("Cannot write", "TOPIC_AUTHORIZATION_FAILED")
    sends = producing.FailedSends(None, None, object)  # type: ignore[arg-type]
    with pytest.raises(ConnectError) as raised:
        sends.skip(RECORDS[0], None, error)
    assert raised.value is error
