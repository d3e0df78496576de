from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import KafkaError

from sluiceway.api import SourceRecord
from sluiceway.data import STRING_SCHEMA, Header
from sluiceway.errors import ConnectError, FencedError, RetriableError
from sluiceway.runtime.source import worker_source_task
from sluiceway.runtime.source.delivery import AtLeastOnceDelivery
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import Commands, Offsets, RunningTask
from support.engine_connectors import ACKNOWLEDGED_SOURCE, SOURCE, Script, script
from support.eventually import eventually
from unit.runtime.fake_clients import FakeProducer

STRINGS = "StringConverter"


def record(value: Any, offset: int, partition: str = "p", topic: str = "t", **more: Any) -> SourceRecord:
    return SourceRecord({"file": partition}, {"position": offset}, topic, value, STRING_SCHEMA, **more)


def config(connector: str = SOURCE, **more: str) -> dict[str, str]:
    return {"name": "src", "connector.class": connector, **{key.replace("_", "."): value for key, value in more.items()}}


def worker(**more: str) -> dict[str, str]:
    return {"key.converter": STRINGS, "value.converter": STRINGS, **{key.replace("_", "."): value for key, value in more.items()}}


def stored(task: RunningTask, partition: str = "p") -> Any:
    return task.offsets.get("src", [{"file": partition}])[0]


def values() -> list[Any]:
    return [value for _, value, _, _ in FakeProducer.made[-1].sent]


def run_to_the_end(
    *steps: Any, connector: str = SOURCE, offsets: Offsets | None = None, **more: str
) -> tuple[Script, RunningTask]:
    made = script("src", *steps)
    with RunningTask(config(connector, **more), worker(), bounded=True, offsets=offsets) as task:
        task.join()
    return made, task


def test_records_are_produced_in_order_and_their_newest_offsets_stored_at_the_end() -> None:
    made, task = run_to_the_end([record("a", 1), record("b", 2, "q"), record("c", 3)], None, [record("d", 4)])
    assert values() == [b"a", b"b", b"c", b"d"]
    assert (stored(task), stored(task, "q")) == ({"position": 4}, {"position": 2})
    assert task.reports.states == [State.RUNNING]
    assert task.reports.topics == ["t"]
    assert (task.join().records, task.join().failed) == (4, False)
    assert made.names() == ["start", "commit", "stop"]


def test_client_id_and_overrides_reach_the_producer() -> None:
    run_to_the_end(producer_override_linger_ms="7")
    used = FakeProducer.made[-1].config
    assert (used["client.id"], used["linger.ms"]) == ("connector-producer-src-0", "7")


def test_key_partition_timestamp_and_headers_reach_kafka() -> None:
    headers = (Header("h", 1), Header("h", "x"))
    full = record("a", 1, key="k", key_schema=STRING_SCHEMA, kafka_partition=3, timestamp=5, headers=headers)
    run_to_the_end([full, record(None, 2)])
    assert FakeProducer.made[-1].sent == [
        ("t", b"a", b"k", {"headers": [("h", b"1"), ("h", b"x")], "partition": 3, "timestamp": 5}),
        ("t", None, None, {}),
    ]


def test_offsets_are_stored_by_the_first_commit_after_kafka_has_the_records(producers: list[FakeProducer]) -> None:
    script("src", [record("a", 1)])
    with RunningTask(config(), worker(offset_flush_interval_ms="20", offset_flush_timeout_ms="20")) as task:
        eventually(lambda: producers)
        producers[0].unresponsive = True
        eventually(lambda: values() == [b"a"])
        polled = task.commands._asked
        eventually(lambda: task.commands._asked > polled + 10)
        if producers[0].waiting:  # the record was produced after the producer became unresponsive
            assert task.offsets.puts == []
        producers[0].unresponsive = False
        eventually(lambda: stored(task) == {"position": 1})


def test_a_late_acknowledgement_delays_offsets(caplog: pytest.LogCaptureFixture) -> None:
    def unresponsive(_task: Any) -> None:
        FakeProducer.made[-1].unresponsive = True

    script("src", [record("a", 1)], on_start=unresponsive)
    with RunningTask(config(), worker(offset_flush_interval_ms="20", offset_flush_timeout_ms="20")) as task:
        eventually(lambda: "Not committing offsets" in caplog.text)
        assert task.offsets.puts == []
        FakeProducer.made[-1].unresponsive = False
        eventually(lambda: stored(task) == {"position": 1})
    assert values() == [b"a"]


def test_a_failed_offset_write_is_repeated_with_the_next_commit(caplog: pytest.LogCaptureFixture) -> None:
    offsets = Offsets()
    offsets.error = ConnectError("the broker is away")
    script("src", [record("a", 1)])
    with RunningTask(config(), worker(offset_flush_interval_ms="20"), offsets=offsets) as task:
        eventually(lambda: "the broker is away" in caplog.text)
        offsets.error = None
        eventually(lambda: stored(task) == {"position": 1})
    assert not task.join().failed


def test_a_fenced_store_fails_the_task() -> None:
    offsets = Offsets()
    offsets.error = FencedError("a newer writer has taken over")
    _, task = run_to_the_end([record("a", 1)], offsets=offsets)
    assert task.join().failed
    assert (task.reports.trace or "").startswith("sluiceway.errors.FencedError: a newer writer has taken over")


def test_a_lost_record_fails_the_task_and_no_offset_is_stored(producers: list[FakeProducer]) -> None:
    def failing(_task: Any) -> None:
        producers[-1].error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    script("src", [record("a", 1)], on_start=failing)
    with RunningTask(config(), worker()) as task:
        result = task.join()
    assert result.failed
    assert "Unrecoverable exception from producer send callback" in (result.trace or "").splitlines()[0]
    assert "TOPIC_AUTHORIZATION_FAILED" in (result.trace or "")
    assert task.reports.states == [State.RUNNING, State.FAILED]
    assert task.offsets.puts == []


def test_a_record_too_large_fails_the_task_and_those_before_it_are_committed() -> None:
    made, task = run_to_the_end([record("a", 1), record("x" * 1001, 2), record("c", 3)])
    first_line = (task.join().trace or "").splitlines()[0]
    assert first_line.startswith("sluiceway.errors.ConnectError: Unrecoverable exception from producer send callback: ")
    assert "topic t" in first_line
    assert "source partition {'file': 'p'} with offset {'position': 2} has 1001 bytes" in first_line
    assert "producer.override.max.request.size" in first_line
    assert stored(task) == {"position": 1}
    assert made.names() == ["start", "stop"], "commit would say that all records are stored"


def test_offsets_without_records_are_stored_and_committed() -> None:
    made = script("src", [record("a", 1)], idle=[({"file": "p"}, {"position": 9})])
    with RunningTask(config(), worker(), bounded=True) as task:
        task.join()
    assert stored(task) == {"position": 9}
    assert values() == [b"a"]
    assert made.names() == ["start", "commit", "stop"]


def test_a_bounded_task_ends_when_kafka_has_its_records_however_slow_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed, late = AtLeastOnceDelivery._flushed, [False, False, False]
    monkeypatch.setattr(AtLeastOnceDelivery, "_flushed", lambda self: late.pop() if late else flushed(self))
    made, task = run_to_the_end([record("a", 1)])
    assert (late, stored(task)) == ([], {"position": 1})
    assert made.names() == ["start", "commit", "stop"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_bounded_task_that_ends_while_it_waits_fails_after_it_has_stored_what_it_read(waits: bool) -> None:
    def start(task: Any) -> None:
        task.context.waiting("Table x does not exist.")
        if not waits:
            task.context.waiting()

    script("src", [record("a", 1)], on_start=start)
    with RunningTask(config(), worker(), bounded=True) as task:
        trace = task.join().trace
    assert ("Table x does not exist." in (trace or "")) == waits
    assert (values(), stored(task)) == ([b"a"], {"position": 1})


def test_send_waits_for_a_full_buffer(producers: list[FakeProducer]) -> None:
    def small(_task: Any) -> None:
        producers[-1].room = 2

    made = script("src", [record(str(number), number) for number in range(9)], on_start=small)
    with RunningTask(config(), worker(), bounded=True) as task:
        task.join()
    assert values() == [str(number).encode() for number in range(9)]
    assert made.names()[-1] == "stop"
    assert stored(task) == {"position": 8}


def test_a_full_buffer_does_not_delay_a_stop(producers: list[FakeProducer]) -> None:
    def stuck(_task: Any) -> None:
        producers[-1].room, producers[-1].unresponsive = 2, True

    made = script("src", [record(str(number), number) for number in range(9)], on_start=stuck)
    with RunningTask(config(), worker(offset_flush_timeout_ms="20", task_shutdown_graceful_timeout_ms="100")) as task:
        eventually(lambda: producers and len(producers[-1].waiting) == 2)
        assert not task.stop().failed
    assert values() == [b"0", b"1"]
    assert task.offsets.puts == [], "Kafka has not acknowledged them"
    assert made.names() == ["start", "stop"]


def test_a_batch_that_waits_in_a_full_buffer_is_sent_before_a_stop(producers: list[FakeProducer]) -> None:
    def slow(_task: Any) -> None:
        producers[-1].room, producers[-1].unresponsive = 2, True

    def command(_asked: int) -> TaskCommand | None:
        if not producers or len(producers[-1].waiting) < 2:
            return None
        full.append(True)
        producers[-1].unresponsive = len(full) < 3  # it takes some of the time that the stop may take
        return TaskCommand.STOP

    full: list[bool] = []
    script("src", [record(str(number), number) for number in range(3)], on_start=slow)
    with RunningTask(config(), worker(task_shutdown_graceful_timeout_ms="60000"), commands=Commands(command)) as task:
        assert not task.join().failed
    assert values() == [b"0", b"1", b"2"]
    assert stored(task) == {"position": 2}


def test_commit_is_called_on_time_and_at_the_end_also_for_records_without_offsets() -> None:
    made = script("src", [SourceRecord(None, None, "t", "a", STRING_SCHEMA)])
    with RunningTask(config(), worker(offset_flush_interval_ms="30")) as task:
        eventually(lambda: made.names().count("commit") >= 2)
        task.stop()
    assert made.names()[-2:] == ["commit", "stop"]
    assert task.offsets.puts == []


def test_poll_is_retried_after_a_retriable_error(caplog: pytest.LogCaptureFixture) -> None:
    _, task = run_to_the_end(RetriableError("not now"), RetriableError("not yet"), [record("a", 1)])
    assert values() == [b"a"]
    assert "poll() failed; retrying in 0.1 s: not now" in caplog.text
    assert "retrying in 0.2 s: not yet" in caplog.text
    assert not task.join().failed
    assert task.reports.states == [State.RUNNING] * 4, "the start, each retry, and the success"


def test_the_delays_between_polls_double_to_a_maximum_and_start_again_after_a_success(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_source_task, "BACKOFF_SECONDS", (0.01, 0.03))
    failed = [RetriableError("not now")] * 4
    run_to_the_end(*failed, [record("a", 1)], failed[0])
    delays = [each.args[0] for each in caplog.records if each.msg.startswith("poll() failed") and isinstance(each.args, tuple)]
    assert delays == [0.01, 0.02, 0.03, 0.03, 0.01]


def test_another_error_of_poll_fails_the_task_after_a_commit() -> None:
    made, task = run_to_the_end([record("a", 1)], ValueError("broken pipe"))
    assert task.join().failed
    assert (task.reports.trace or "").splitlines()[0] == "builtins.ValueError: broken pipe"
    assert "Traceback (most recent call last):" in (task.reports.trace or "")
    assert task.reports.states == [State.RUNNING, State.FAILED]
    assert stored(task) == {"position": 1}
    assert made.names() == ["start", "commit", "stop"]


def test_pause_commits_and_stops_polling_until_resume() -> None:
    made = script("src", [record("a", 1)])
    with RunningTask(config(), worker()) as task:
        eventually(lambda: FakeProducer.made and values() == [b"a"])
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        assert stored(task) == {"position": 1}
        made.steps.append([record("b", 2)])
        asked = task.commands._asked
        eventually(lambda: task.commands._asked > asked + 5)
        assert values() == [b"a"]
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: values() == [b"a", b"b"])
    assert task.reports.states == [State.RUNNING, State.PAUSED, State.RUNNING]
    assert stored(task) == {"position": 2}


def test_abandon_commits_nothing() -> None:
    script("src", [record("a", 1)])
    with RunningTask(config(), worker()) as task:
        eventually(lambda: FakeProducer.made and values() == [b"a"])
        result = task.stop(TaskCommand.ABANDON)
    assert not result.failed
    assert task.offsets.puts == []
    assert FakeProducer.made[-1].purged
    assert task.reports.states == [State.RUNNING]


@pytest.mark.parametrize("fails", [True, False])
def test_a_task_that_is_abandoned_during_its_last_commit_reports_nothing(
    fails: bool, producers: list[FakeProducer], caplog: pytest.LogCaptureFixture
) -> None:
    def unacknowledged(_task: Any) -> None:
        producers[-1].unresponsive = True

    made = script("src", [record("a", 1)], *([ValueError("broken pipe")] if fails else []), on_start=unacknowledged)
    with RunningTask(config(), worker(offset_flush_timeout_ms="60000")) as task:
        eventually(lambda: producers and values() == [b"a"])
        if fails:
            eventually(lambda: "uncaught and unrecoverable" in caplog.text)
        else:
            task.commands.give(TaskCommand.STOP)
            asked = task.commands._asked
            eventually(lambda: task.commands._asked > asked + 5)  # the last commit waits for Kafka
        result = task.stop(TaskCommand.ABANDON)
    assert result.failed is fails
    assert task.reports.states == [State.RUNNING]
    assert "Abandoned: stopping without a commit" in caplog.text
    assert "last commit" not in caplog.text
    assert task.offsets.puts == []
    assert producers[-1].purged
    assert made.names() == ["start", "stop"]


def test_a_task_that_fails_once_it_is_abandoned_reports_nothing() -> None:
    def failing(_task: Any) -> None:
        task.commands.give(TaskCommand.ABANDON)
        raise ValueError("broken pipe")

    script("src", on_start=failing)
    task = RunningTask(config(), worker())
    with task:
        assert task.join().failed
    assert task.reports.states == []


def test_commit_record_is_called_for_every_record() -> None:
    made, task = run_to_the_end([record("a", 1), record("b", 2)], connector=ACKNOWLEDGED_SOURCE)
    acknowledged = [call[1:] for call in made.calls if call[0] == "commit_record"]
    assert acknowledged == [("a", 0, 0), ("b", 0, 1)]
    assert stored(task) == {"position": 2}


def test_an_error_of_commit_record_is_logged_as_in_connect(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("the queue is gone")

    monkeypatch.setattr("support.engine_connectors.AcknowledgedSourceTask.commit_record", fail)
    _, task = run_to_the_end([record("a", 1)], connector=ACKNOWLEDGED_SOURCE)
    assert stored(task) == {"position": 1}
    assert "The task's commit_record() failed" in caplog.text


def test_a_task_that_waits_for_an_acknowledgement_is_polled_when_it_comes(
    monkeypatch: pytest.MonkeyPatch, producers: list[FakeProducer]
) -> None:
    monkeypatch.setattr("support.engine_connectors.ScriptedSourceTask.poll", lambda self: self.script.step())
    waits: list[float] = []
    monkeypatch.setattr(Commands, "wait", lambda _self, seconds: waits.append(seconds))
    report = FakeProducer.poll

    def hold(_task: Any) -> None:
        producers[-1].unresponsive = True

    def poll(producer: FakeProducer, timeout: float = 0) -> int:
        producer.unresponsive &= not timeout
        return report(producer, timeout)

    monkeypatch.setattr(FakeProducer, "poll", poll)
    made = script("src", [record("a", 1)], on_start=hold)
    with RunningTask(config(ACKNOWLEDGED_SOURCE), worker(), bounded=True) as task:
        assert not task.join().failed
    assert ("commit_record", "a", 0, 0) in made.calls
    assert len(waits) == 1, "only the poll after the acknowledgement had nothing to wait for"


def test_a_task_without_commit_record_has_no_delivery_callbacks(producers: list[FakeProducer]) -> None:
    run_to_the_end([record("a", 1)])
    assert producers[-1].config["delivery.report.only.error"] is True


BAD = SourceRecord({"file": "p"}, {"position": 2}, "t", object(), STRING_SCHEMA)


def test_a_record_that_cannot_be_converted_fails_the_task_at_its_offset() -> None:
    _, task = run_to_the_end([record("a", 1), BAD, record("c", 3)], value_converter="JsonConverter")
    assert (task.join().trace or "").startswith("sluiceway.errors.ConnectError: Tolerance exceeded in error handler")
    assert stored(task) == {"position": 1}


def test_a_record_that_cannot_be_converted_is_skipped_with_tolerance(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        _, task = run_to_the_end([record("a", 1), BAD, record("c", 3)], value_converter="JsonConverter", errors_tolerance="all")
    assert len(values()) == 2
    assert stored(task) == {"position": 3}
    assert "1 skipped so far" in caplog.text


def test_a_poll_that_does_not_wait_is_not_called_in_a_busy_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def poll(_self: Any) -> None:
        nonlocal calls
        calls += 1

    waits: list[float] = []
    monkeypatch.setattr("support.engine_connectors.ScriptedSourceTask.poll", poll)
    monkeypatch.setattr(Commands, "wait", lambda _self, seconds: waits.append(seconds))
    run_to_the_end()
    assert calls == len(waits) == 2


def test_a_bounded_task_does_not_wait_long_for_records(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("support.engine_connectors.ScriptedSourceTask.poll", lambda self: self.context.wait(1.0))
    monkeypatch.setattr(Commands, "wait", lambda _self, seconds: waits.append(seconds))
    run_to_the_end()
    assert set(waits) == {0.1}


@pytest.mark.parametrize("linger", [None, "500"], ids=["default", "set"])
def test_what_the_client_holds_back_is_sent_before_a_wait_unless_a_linger_is_set(
    monkeypatch: pytest.MonkeyPatch, producers: list[FakeProducer], linger: str | None
) -> None:
    left: list[int] = []  # unsent records at the begin of a wait

    def wait(_self: object, _seconds: float) -> None:
        left.append(len(producers[-1].waiting))

    polled = iter([[record("a", 1)], [record("b", 2)]])
    monkeypatch.setattr(
        "support.engine_connectors.ScriptedSourceTask.poll", lambda self: next(polled, None) or self.context.wait(1.0)
    )
    monkeypatch.setattr(FakeProducer, "poll", lambda _self, _timeout=0: 0)
    monkeypatch.setattr(FakeProducer, "flush", lambda self, _timeout=-1: self.waiting.clear() or 0)
    monkeypatch.setattr(Commands, "wait", wait)
    more = {"producer_override_linger_ms": linger} if linger else {}
    script("src")
    with RunningTask(config(SOURCE, **more), worker(), bounded=True) as task:
        task.join()
    assert left[0] == (2 if linger else 0)


def test_a_task_ends_its_own_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[bool] = []
    monkeypatch.setattr("support.engine_connectors.ScriptedSourceTask.poll", lambda self: self.context.wake())
    monkeypatch.setattr(Commands, "wake", lambda _self: woken.append(True))
    run_to_the_end()
    assert woken == [True, True]


def test_offsets_are_committed_on_time_while_poll_returns_nothing() -> None:
    script("src", [record("a", 1)])
    with RunningTask(config(), worker(offset_flush_interval_ms="30")) as task:
        eventually(lambda: stored(task) == {"position": 1})
        asked = task.commands._asked
        eventually(lambda: task.commands._asked > asked + 10)
        assert task.result is None
    assert len(task.offsets.puts) == 1, "the same offset was stored twice"


def test_equal_partition_objects_share_one_newest_offset() -> None:
    shared = {"file": "p"}

    def with_shared(offset: int) -> SourceRecord:
        return SourceRecord(shared, {"position": offset}, "t", "x", STRING_SCHEMA)

    _, task = run_to_the_end([with_shared(1), record("x", 2), with_shared(3), record("x", 4)])
    assert stored(task) == {"position": 4}
