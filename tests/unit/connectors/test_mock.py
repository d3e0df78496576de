from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.mock import config as keys
from sluiceway.connectors.mock.failures import Failures, is_bad
from sluiceway.connectors.mock.memory import resident_bytes
from sluiceway.connectors.mock.sink import MockSinkConnector, MockSinkTask
from sluiceway.connectors.mock.source import MockSourceConnector, MockSourceTask
from sluiceway.connectors.verifiable.results import results_in
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.converters.string_converter import StringConverter
from sluiceway.errors import ConnectError, DataError, RetriableError

P0 = TopicPartition("t", 0)


class Nothing:
    """A context of a task that has no offsets, no transactions and no place for bad records."""

    configs: ClassVar[dict[str, str]] = {}
    transaction_context = None
    errant_record_reporter: Any = None

    @property
    def offset_storage_reader(self) -> Nothing:
        return self

    def offset(self, _: Any) -> None:
        return None


def source(**config: str) -> MockSourceTask:
    task = MockSourceTask()
    task.initialize(Nothing())  # type: ignore[arg-type]
    task.start({key.replace("_", "."): value for key, value in {"topic": "t", **config}.items()})
    return task


def sink(**config: str) -> MockSinkTask:
    task = MockSinkTask()
    task.initialize(Nothing())  # type: ignore[arg-type]
    task.start({key.replace("_", "."): value for key, value in config.items()})
    return task


def records(start: int, end: int) -> list[SinkRecord]:
    return [SinkRecord("t", 0, offset, offset, key=0) for offset in range(start, end)]


def failed(call: Callable[..., object], *arguments: object) -> type[BaseException] | None:
    try:
        call(*arguments)
    except ConnectError as error:
        return type(error)
    return None


def test_a_source_gives_exactly_so_many_records_before_it_fails() -> None:
    task = source(failure_in="poll", failure_after_records="7", batch_size="5")
    assert [len(task.poll() or ()) for _ in range(2)] == [5, 2]
    with pytest.raises(ConnectError, match=r"Mock failure in poll after 7 records, as failure\.in asks for"):
        task.poll()


def test_a_retriable_failure_passes_after_so_many_calls() -> None:
    task = source(failure_in="poll", failure_kind="retriable", failure_times="2", batch_size="1")
    assert [failed(task.poll) for _ in range(4)] == [RetriableError, RetriableError, None, None]


def test_a_sink_takes_at_most_so_many_records_before_it_fails() -> None:
    task = sink(failure_in="put", failure_after_records="7")
    task.put(records(0, 5))
    task.put([])
    for _ in range(2):
        with pytest.raises(ConnectError, match="Mock failure in put after 5 records"):
            task.put(records(5, 8))
    task.put(records(5, 7))


def test_start_stop_and_commit_fail_where_they_are_told_to_and_only_there() -> None:
    assert failed(lambda: source(failure_in="start")) is ConnectError
    assert failed(lambda: sink(failure_in="start")) is ConnectError
    for where in ("commit", "stop"):
        a_source, a_sink = source(failure_in=where), sink(failure_in=where)
        a_source.poll()
        a_sink.put(records(0, 1))
        assert failed(a_source.commit) is (ConnectError if where == "commit" else None)
        assert failed(a_sink.flush, {P0: 1}) is (ConnectError if where == "commit" else None)
        assert failed(a_source.stop) is (ConnectError if where == "stop" else None)
        assert failed(a_sink.stop) is (ConnectError if where == "stop" else None)


def test_only_the_chosen_task_fails() -> None:
    task = source(failure_in="poll", failure_task="1", id="0")
    assert task.poll()
    with pytest.raises(ConnectError):
        source(failure_in="poll", failure_task="1", id="1").poll()


def test_a_hang_lasts_until_its_end_and_is_no_failure() -> None:
    started = time.monotonic()
    assert source(failure_in="poll", failure_kind="hang", failure_hang_ms="60", batch_size="2").poll()
    assert time.monotonic() - started >= 0.06


def test_a_hang_without_an_end_does_not_return() -> None:
    task = source(failure_in="poll", failure_kind="hang")
    thread = threading.Thread(target=task.poll, daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()


def test_mock_mode_fails_tasks_after_its_delay() -> None:
    now = 0.0
    values = keys.SINK.parse({"mock_mode": "task-failure", "delay_ms": "2000"})
    failures = Failures(values, 0, lambda: now)
    now = 1.9
    failures.at("put", 1, 1)
    now = 2.0
    failures.at("commit")
    with pytest.raises(ConnectError, match="task-failure"):
        failures.at("put", 1, 1)


def test_mock_mode_fails_the_connector_from_a_thread_of_its_own() -> None:
    raised, done = [], threading.Event()

    class Context:
        def raise_error(self, error: BaseException) -> None:
            raised.append(error)
            done.set()

    connector = MockSourceConnector()
    connector.initialize(Context())  # type: ignore[arg-type]
    connector.start({"mock_mode": "connector-failure", "delay_ms": "1"})
    assert done.wait(10)
    connector.stop()
    assert isinstance(raised[0], ConnectError)


def test_a_stopped_connector_does_not_fail_any_more() -> None:
    connector = MockSinkConnector()
    connector.start({"mock_mode": "connector-failure", "delay_ms": "3600000"})
    timer = connector._timer
    assert timer is not None
    connector.stop()
    timer.join(10)
    assert not timer.is_alive()


def test_the_connector_itself_fails_at_start_and_stop() -> None:
    with pytest.raises(ConnectError, match="connector-start"):
        MockSinkConnector().start({"failure.in": "connector-start"})
    connector = MockSinkConnector()
    connector.start({"failure.in": "connector-stop"})
    with pytest.raises(ConnectError, match="connector-stop"):
        connector.stop()


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.25, 1 / 3, 0.9, 1.0])
def test_the_share_of_bad_records_is_kept_and_spread(share: float) -> None:
    bad = [number for number in range(10_000) if is_bad(number, share)]
    assert abs(len(bad) - 10_000 * share) <= 1
    if len(bad) > 1:
        assert max(later - earlier for earlier, later in itertools.pairwise(bad)) <= 1 / share + 1


@pytest.mark.parametrize("converter", [JsonConverter, StringConverter])
def test_no_converter_can_write_a_bad_record(converter: type[JsonConverter] | type[StringConverter]) -> None:
    good, bad = source(bad_records_share="0.5", batch_size="2").poll() or ()
    made = converter()
    made.configure({}, is_key=False)
    assert made.from_connect_data("t", good.value_schema, good.value)
    with pytest.raises(DataError):
        made.from_connect_data("t", bad.value_schema, bad.value)
    assert bad.source_offset == {"seqno": 1}


def test_a_sink_refuses_its_share_and_takes_the_rest(tmp_path: Path) -> None:
    task = sink(bad_records_share="0.5", file=str(tmp_path / "out"))
    with pytest.raises(DataError, match="The mock sink refuses t-0@1"):
        task.put(records(0, 4))
    reported: list[int] = []

    class Reporter:
        def report(self, record: SinkRecord, error: BaseException) -> None:
            reported.append(record.kafka_offset)

    task.context.errant_record_reporter = Reporter()  # type: ignore[misc]
    task.put(records(0, 4))
    task.flush({P0: 4})
    assert reported == [1, 3]
    assert [result["seqno"] for result in results_in(tmp_path / "out")] == [0, 2]


def test_a_slow_sink_takes_its_time() -> None:
    task = sink(throughput="200")
    started = time.monotonic()
    task.put(records(0, 20))
    assert time.monotonic() - started >= 0.1


def test_a_source_without_a_topic_has_nothing() -> None:
    assert source(topic="").poll() is None


def test_records_and_memory_are_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert 2**20 < resident_bytes() < 2**40
    task = source(batch_size="3", id="4")
    task.poll()
    with caplog.at_level(logging.INFO):
        task.commit()
    assert "Mock task 4: records=3 resident=" in caplog.text


def test_every_task_gets_its_number() -> None:
    connector = MockSourceConnector()
    connector.start({"topic": "t"})
    assert [config["id"] for config in connector.task_configs(2)] == ["0", "1"]
