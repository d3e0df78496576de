from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from sluiceway.api import SourceRecord, Transform
from sluiceway.data import STRING_SCHEMA, Header
from sluiceway.errors import ConnectError, FencedError, RetriableError
from sluiceway.runtime.source import record_sender as producing
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import Commands, Offsets, RunningTask
from support.engine_connectors import ACKNOWLEDGED_SOURCE, SOURCE, Script, script
from support.eventually import eventually
from unit.runtime.chains import Closing, chain_config
from unit.runtime.fake_clients import FakeProducer

STRINGS = "StringConverter"


@pytest.fixture(autouse=True)
def producers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeProducer]]:
    FakeProducer.made.clear()
    monkeypatch.setattr(producing, "producer", FakeProducer)
    return FakeProducer.made


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
    assert (task.result.records, task.result.failed) == (4, False)
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


def test_offsets_are_not_stored_before_kafka_has_the_records_and_are_at_the_next_commit(producers: list[FakeProducer]) -> None:
    script("src", [record("a", 1)])
    with RunningTask(config(), worker(offset_flush_interval_ms="20", offset_flush_timeout_ms="20")) as task:
        eventually(lambda: producers)
        producers[0].deaf = True
        eventually(lambda: values() == [b"a"])
        polled = task.commands._asked
        eventually(lambda: task.commands._asked > polled + 10)
        if producers[0].waiting:  # the record was produced after the producer went deaf
            assert task.offsets.puts == []
        producers[0].deaf = False
        eventually(lambda: stored(task) == {"position": 1})


def test_a_late_acknowledgement_keeps_offsets_back(caplog: pytest.LogCaptureFixture) -> None:
    def deaf(_task: Any) -> None:
        FakeProducer.made[-1].deaf = True

    script("src", [record("a", 1)], on_start=deaf)
    with RunningTask(config(), worker(offset_flush_interval_ms="20", offset_flush_timeout_ms="20")) as task:
        eventually(lambda: "Not committing offsets" in caplog.text)
        assert task.offsets.puts == []
        FakeProducer.made[-1].deaf = False
        eventually(lambda: stored(task) == {"position": 1})
    assert values() == [b"a"]


def test_a_store_that_fails_is_tried_again_with_the_next_commit(caplog: pytest.LogCaptureFixture) -> None:
    offsets = Offsets()
    offsets.error = ConnectError("the broker is away")
    script("src", [record("a", 1)])
    with RunningTask(config(), worker(offset_flush_interval_ms="20"), offsets=offsets) as task:
        eventually(lambda: "the broker is away" in caplog.text)
        offsets.error = None
        eventually(lambda: stored(task) == {"position": 1})
    assert task.result is not None
    assert not task.result.failed


def test_a_fenced_store_fails_the_task() -> None:
    offsets = Offsets()
    offsets.error = FencedError("a newer writer has taken over")
    _, task = run_to_the_end([record("a", 1)], offsets=offsets)
    assert task.result.failed
    assert task.reports.trace.startswith("sluiceway.errors.FencedError: a newer writer has taken over")


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
    first_line = task.result.trace.splitlines()[0]
    assert first_line.startswith("sluiceway.errors.ConnectError: Unrecoverable exception from producer send callback: ")
    assert "topic t" in first_line
    assert "1001 bytes" in first_line
    assert "producer.override.max.request.size" in first_line
    assert stored(task) == {"position": 1}
    assert made.names() == ["start", "commit", "stop"]


def test_a_full_buffer_is_waited_for(producers: list[FakeProducer]) -> None:
    def small(_task: Any) -> None:
        producers[-1].room = 2

    made = script("src", [record(str(number), number) for number in range(9)], on_start=small)
    with RunningTask(config(), worker(), bounded=True) as task:
        task.join()
    assert values() == [str(number).encode() for number in range(9)]
    assert made.names()[-1] == "stop"
    assert stored(task) == {"position": 8}


def test_a_stop_is_heard_while_the_buffer_is_full(producers: list[FakeProducer]) -> None:
    def stuck(_task: Any) -> None:
        producers[-1].room, producers[-1].deaf = 2, True

    made = script("src", [record(str(number), number) for number in range(9)], on_start=stuck)
    with RunningTask(config(), worker(offset_flush_timeout_ms="20")) as task:
        eventually(lambda: producers and len(producers[-1].waiting) == 2)
        assert not task.stop().failed
    assert values() == [b"0", b"1"]
    assert task.offsets.puts == [], "Kafka has not acknowledged them"
    assert made.names() == ["start", "stop"]


def test_a_retriable_error_of_poll_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    _, task = run_to_the_end(RetriableError("not now"), RetriableError("not yet"), [record("a", 1)])
    assert values() == [b"a"]
    assert "poll() failed; retrying in 0.1 s: not now" in caplog.text
    assert "retrying in 0.2 s: not yet" in caplog.text
    assert not task.result.failed


def test_any_other_error_of_poll_fails_the_task_and_commits_what_is_safe() -> None:
    made, task = run_to_the_end([record("a", 1)], ValueError("broken pipe"))
    assert task.result.failed
    assert task.reports.trace.splitlines()[0] == "builtins.ValueError: broken pipe"
    assert "Traceback (most recent call last):" in task.reports.trace
    assert task.reports.states == [State.RUNNING, State.FAILED]
    assert stored(task) == {"position": 1}
    assert made.names() == ["start", "commit", "stop"]


def test_pause_commits_and_polls_no_more_and_resume_goes_on() -> None:
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
        producers[-1].deaf = True

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


def test_a_task_with_commit_record_hears_of_every_record() -> None:
    made, task = run_to_the_end([record("a", 1), record("b", 2)], connector=ACKNOWLEDGED_SOURCE)
    heard = [call[1:] for call in made.calls if call[0] == "commit_record"]
    assert heard == [("a", 0, 0), ("b", 0, 1)]
    assert stored(task) == {"position": 2}


def test_a_task_without_commit_record_costs_no_callback_for_each_record(producers: list[FakeProducer]) -> None:
    run_to_the_end([record("a", 1)])
    assert producers[-1].config["delivery.report.only.error"] is True


BAD = SourceRecord({"file": "p"}, {"position": 2}, "t", object(), STRING_SCHEMA)


def test_a_record_that_cannot_be_converted_fails_the_task_at_its_offset() -> None:
    _, task = run_to_the_end([record("a", 1), BAD, record("c", 3)], value_converter="JsonConverter")
    assert task.result.trace.startswith("sluiceway.errors.ConnectError: Tolerance exceeded in error handler")
    assert stored(task) == {"position": 1}


def test_a_record_that_cannot_be_converted_is_skipped_where_that_is_tolerated(caplog: pytest.LogCaptureFixture) -> None:
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


def test_the_offsets_interval_counts_while_nothing_is_polled() -> None:
    script("src", [record("a", 1)])
    with RunningTask(config(), worker(offset_flush_interval_ms="30")) as task:
        eventually(lambda: stored(task) == {"position": 1})
        asked = task.commands._asked
        eventually(lambda: task.commands._asked > asked + 10)
        assert task.result is None
    assert len(task.offsets.puts) == 1, "what is stored was stored again"


def test_partition_objects_that_are_equal_but_not_the_same_keep_the_newest_offset() -> None:
    shared = {"file": "p"}

    def with_shared(offset: int) -> SourceRecord:
        return SourceRecord(shared, {"position": offset}, "t", "x", STRING_SCHEMA)

    _, task = run_to_the_end([with_shared(1), record("x", 2), with_shared(3), record("x", 4)])
    assert stored(task) == {"position": 4}


REPEAT = {"type": "unit.runtime.chains.Repeat"}
CAST = {"type": "Cast$Value", "spec": "int32"}
NO_TOMBSTONES = {"type": "Filter", "predicate": "p"}
TOMBSTONE = {"type": "RecordIsTombstone"}


def run_through(*steps: Any, stages: list[dict[str, str]], connector: str = SOURCE, **more: str) -> tuple[Script, RunningTask]:
    """Run a source whose records go through a chain."""
    made = script("src", *steps)
    transforms = chain_config(*stages, p=TOMBSTONE)
    with RunningTask({**config(connector, **more), **transforms}, worker(), bounded=True) as task:
        task.join()
    return made, task


def test_transformed_records_are_produced_and_the_offsets_are_those_of_the_task() -> None:
    renamed = {"type": "RegexRouter", "regex": "t", "replacement": "u"}
    _, task = run_through([record("a", 1), record("b", 2)], stages=[renamed])
    assert [topic for topic, *_ in FakeProducer.made[-1].sent] == ["u", "u"]
    assert stored(task) == {"position": 2}
    assert task.reports.topics == ["u"]


@pytest.mark.parametrize("last", ["a", None])
def test_a_dropped_record_counts_for_its_offset(last: Any) -> None:
    _, task = run_through([record(None, 1), record("a", 2), record(last, 3)], stages=[NO_TOMBSTONES])
    assert values() == [b"a"] + [b"a"] * (last is not None)
    assert stored(task) == {"position": 3}
    assert task.result.records == 3


def test_a_batch_of_which_nothing_is_left_counts_for_its_offsets() -> None:
    _, task = run_through([record(None, 1)], stages=[NO_TOMBSTONES])
    assert (values(), stored(task)) == ([], {"position": 1})


def test_several_records_for_one_are_all_produced() -> None:
    _, task = run_through([record("2", 1), record("0", 2), record("1", 3)], stages=[REPEAT])
    assert values() == [b"2.0", b"2.1", b"1.0"]
    assert stored(task) == {"position": 3}


def test_a_record_is_done_only_when_all_that_became_of_it_is_sent() -> None:
    """The second of two is too large, so the offset of their source must not be stored."""
    big = {"type": "unit.runtime.source.test_worker_source_task.SmallThenBig"}
    _, task = run_through([record("a", 1), record("b", 2)], stages=[big])
    assert task.result.failed
    assert values() == [b"a"]
    assert task.offsets.puts == []


class SmallThenBig(Transform):
    def apply(self, record: Any) -> Any:
        return [record, record.new_record(value="x" * 1001)]


def test_a_task_hears_of_each_of_its_own_records_once() -> None:
    made, task = run_through(
        [record(None, 1), record("2", 2), record("1", 3), record(None, 4)],
        stages=[NO_TOMBSTONES, REPEAT],
        connector=ACKNOWLEDGED_SOURCE,
    )
    heard = [call[1:] for call in made.calls if call[0] == "commit_record"]
    assert sorted(heard, key=str) == [("1", 0, 2), ("2", 0, 1), (None, -1, -1), (None, -1, -1)]
    assert stored(task) == {"position": 4}


def test_a_record_that_cannot_be_transformed_fails_the_task_at_its_offset() -> None:
    _, task = run_through([record("1", 1), record("x", 2), record("3", 3)], stages=[CAST])
    assert task.result.trace.startswith(
        "sluiceway.errors.ConnectError: Tolerance exceeded in error handler: a record for topic t with source offset "
        "{'position': 2} cannot be transformed by t0: "
    )
    assert "DataError" in task.result.trace, "the cause is missing"
    assert (values(), stored(task)) == ([b"1"], {"position": 1})


def test_a_record_that_cannot_be_transformed_is_skipped_where_that_is_tolerated(caplog: pytest.LogCaptureFixture) -> None:
    made, task = run_through(
        [record("1", 1), record("x", 2), record("3", 3), record("y", 4)],
        stages=[CAST],
        connector=ACKNOWLEDGED_SOURCE,
        errors_tolerance="all",
    )
    assert (values(), stored(task)) == ([b"1", b"3"], {"position": 4})
    assert [call[1] for call in made.calls if call[0] == "commit_record"].count("x") == 1
    assert "2 skipped so far" in caplog.text


@pytest.mark.parametrize("step", [None, RuntimeError("poll failed")])
def test_the_chain_is_closed_when_the_task_ends(step: Any) -> None:
    Closing.closed = 0
    run_through([record("a", 1)], step, stages=[{"type": "unit.runtime.chains.Closing"}])
    assert Closing.closed == 1


def test_a_chain_that_cannot_be_built_fails_the_task_before_it_starts() -> None:
    made, task = run_through([record("a", 1)], stages=[{"type": "Nope.x"}])
    assert task.result.failed
    assert made.names() == []
