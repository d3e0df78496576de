"""Runs that end by the timestamps of the records: what is sent, stored, and acknowledged, and when a run ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.api import EncodedRecords, SourceRecord
from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, SchemaBuilder, Struct
from sluiceway.errors import ConnectError
from sluiceway.runtime.source.interval_bound import MOST_SKEW_MS, IntervalBound
from support.engine import Offsets, RunningTask
from support.engine_connectors import (
    ACKNOWLEDGED_SOURCE,
    SOURCE,
    Script,
    ScriptedSourceConnector,
    ScriptedSourceTask,
    script,
)
from unit.runtime.fake_clients import FakeProducer

HOUR = 1000
"""An interval's length, in milliseconds."""
END = 5 * HOUR
_NESTED = SchemaBuilder.struct().field("at", INT64_SCHEMA).build()
_TIMED = SchemaBuilder.struct().field("nested", _NESTED).build()
WORKER = dict.fromkeys(("key.converter", "value.converter"), "StringConverter")


def record(at: int | None, partition: str = "p", number: int = 1, **more: Any) -> SourceRecord:
    place = {"source_partition": {"file": partition}, "source_offset": {"position": number}}
    value = {"value": f"{partition}{number}@{at}", "value_schema": STRING_SCHEMA} if "value" not in more else {}
    return SourceRecord(topic="t", timestamp=at, **{**place, **value, **more})


def batch(partition: str, *times: int, first: int = 1) -> list[SourceRecord]:
    return [record(at, partition, number) for number, at in enumerate(times, first)]


def config(connector: str = SOURCE, end: int = END, **more: str) -> dict[str, str]:
    run = IntervalRun("src", Interval(end - HOUR, end), 1).keys()
    return {"name": "src", "connector.class": connector, "airflow.interval.time": "record", **run, **more}


def run(*steps: Any, connector: str = SOURCE, offsets: Offsets | None = None, **settings: Any) -> tuple[Script, RunningTask]:
    made = script("src", *steps, **settings)
    with RunningTask(config(connector), WORKER, bounded=True, offsets=offsets) as task:
        task.join()
    return made, task


def sent() -> list[str]:
    return [value.decode() for _, value, _, _ in FakeProducer.made[-1].sent]


def stored(task: RunningTask, partition: str = "p") -> Any:
    return (task.offsets.get("src", [{"file": partition}])[0] or {}).get("position")


def test_a_source_partition_ends_before_the_first_record_of_a_later_interval_and_others_go_on() -> None:
    first = batch("p", END - 2, END - 1, END, END - 1)
    made, task = run(first, batch("q", 5, END - 1), batch("p", END - 3, first=5), batch("q", END, first=3))
    assert sent() == [f"p1@{END - 2}", f"p2@{END - 1}", "q1@5", f"q2@{END - 1}"]
    assert (stored(task), stored(task, "q")) == (2, 2)
    assert task.join().records == 4
    assert made.steps == []


def test_a_run_ends_once_all_partitions_that_the_task_knows_have_passed_its_end() -> None:
    def asks(task: Any) -> None:
        task.context.offset_storage_reader.offsets([{"file": "p"}])
        task.context.offset_storage_reader.offset({"file": "q"})

    steps: list[list[SourceRecord]] = [batch("p", END), [], batch("q", 1, END), batch("r", 1)]
    assert len(run(*steps, on_start=asks)[0].steps) == 1, "the partition that is read last has passed"
    assert sent() == ["q1@1"]
    run(*steps)
    assert sent() == ["q1@1", "r1@1"], "a task that asks for no offsets may find more partitions"


def test_a_poll_of_held_back_records_from_before_the_run_does_not_end_it() -> None:
    old = [batch("p", END, first=each) for each in range(1, 6)]
    made, _ = run(batch("q", 1), *old, batch("q", 2, first=2))
    assert made.steps == []
    assert sent() == ["q1@1", "q2@2"]


def test_a_source_that_has_only_newer_records_than_the_run_ends_it() -> None:
    now = int(time.time() * 1000) + 5000
    made, _ = run(batch("q", 1), *([each] for each in batch("p", *range(now, now + 9))))
    assert len(made.steps) == 7
    assert sent() == ["q1@1"]


def test_records_that_come_from_the_future_are_sent_and_end_nothing() -> None:
    far = int(time.time() * 1000) + MOST_SKEW_MS + 600_000
    _, task = run(batch("p", far, 1, END, far))
    assert sent() == [f"p1@{far}", "p2@1"]
    assert stored(task) == 2


def test_the_clock_of_the_source_may_be_a_little_ahead() -> None:
    now = int(time.time() * 1000)
    assert run(batch("p", 1, now + 20_000))[1].join().records == 1


def test_late_records_are_sent_by_the_run_that_reads_them() -> None:
    run(batch("p", 7, END - 1))
    assert sent() == ["p1@7", f"p2@{END - 1}"]


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (record(None), 'a record without a timestamp (topic t, source partition {"file":"p"}, source offset {"position":1})'),
        (record(1, source_partition=None), "a record without a source partition"),
        (record(1, source_offset=None), "a record without a source offset"),
    ],
)
def test_a_record_without_a_time_or_a_place_fails_the_task_and_nothing_of_its_poll_is_sent(
    wrong: SourceRecord, what: str
) -> None:
    made, task = run(batch("q", 1, 2), [record(3, "q", 3), wrong], connector=ACKNOWLEDGED_SOURCE)
    result = task.join()
    assert result.failed
    for text in ("Connector src: poll() returned ", what, "airflow.interval.time=record", "Set airflow.interval=available"):
        assert text in str(result.trace)
    assert sent() == ["q1@1", "q2@2"]
    assert stored(task, "q") == 2
    assert "commit" not in made.names(), "it would say that all records are in Kafka"


@pytest.mark.parametrize(
    "make", [lambda at: {"nested": {"at": at}}, lambda at: Struct(_TIMED, {"nested": Struct(_NESTED, {"at": at})})]
)
def test_a_field_has_the_times_of_records_whatever_their_timestamps_are(make: Any) -> None:
    bound = IntervalBound("src", END, "nested.at")
    values = [make(at) for at in (END - 1, END, END - 2)]
    polled = [record(END + number, number=number, value=value) for number, value in enumerate(values, 1)]
    assert [each.value for each in bound.kept(polled)] == values[:1]
    assert (bound.held_back, bound.holds) == (2, True)


@pytest.mark.parametrize("value", [None, "text", {}, {"nested": None}, {"nested": {"at": None}}, {"nested": {"at": "soon"}}])
def test_a_record_without_a_time_in_its_field_fails_the_task(value: Any) -> None:
    bound = IntervalBound("src", END, "nested.at")
    with pytest.raises(ConnectError, match=r"a record without a time in its field nested\.at \(topic t"):
        bound.kept([record(1, value=value)])


@pytest.mark.parametrize("connector", [SOURCE, ACKNOWLEDGED_SOURCE])
def test_records_that_are_held_back_are_not_acknowledged_nor_is_commit_called(connector: str) -> None:
    made, _ = run(batch("p", 1, END), batch("q", 1), connector=connector)
    assert "commit" not in made.names()
    acknowledged = [call[1] for call in made.calls if call[0] == "commit_record"]
    assert acknowledged == (["p1@1", "q1@1"] if connector == ACKNOWLEDGED_SOURCE else [])
    assert run(batch("p", 1))[0].names()[-2:] == ["commit", "stop"], "all that was polled is in Kafka"


def test_an_offset_without_a_record_does_not_pass_records_that_are_held_back() -> None:
    idle = [({"file": "p"}, {"position": 99}), ({"file": "q"}, {"position": 98})]
    _, task = run(batch("q", 1), batch("p", 1, END), None, idle=idle)
    assert (stored(task), stored(task, "q")) == (1, 98)


class ColumnTask(ScriptedSourceTask):
    def poll_columns(self) -> Any:
        raise AssertionError("columns cannot be held back")


class ColumnConnector(ScriptedSourceConnector):
    task_class = ColumnTask


class DeclaredConnector(ScriptedSourceConnector):
    interval_by_timestamp = True


def test_a_task_that_could_return_columns_is_asked_for_rows() -> None:
    run(batch("p", 1, END), connector=f"{__name__}.ColumnConnector")
    assert sent() == ["p1@1"]


def test_encoded_records_are_refused() -> None:
    encoded = EncodedRecords(topic="t", keys=[None], values=[b"x"], headers=(), source_partition={"file": "p"}, source_offset={})
    _, task = run(encoded)
    assert "encoded records, which have no timestamps" in str(task.join().trace)
    assert FakeProducer.made[-1].sent == []


def test_a_class_that_declares_its_timestamps_needs_no_key() -> None:
    script("src", batch("p", 1, END))
    own = {**config(f"{__name__}.DeclaredConnector"), "airflow.interval.time": ""}
    with RunningTask(own, WORKER, bounded=True) as task:
        assert task.join().records == 1


@pytest.mark.parametrize("key", ["airflow.interval.time", "airflow.interval.end.ms"])
def test_other_runs_send_all(key: str) -> None:
    script("src", batch("p", 1, END, END + 5))
    with RunningTask({name: value for name, value in config().items() if name != key}, WORKER, bounded=True) as task:
        assert task.join().records == 3


def test_an_unreadable_record_behind_the_end_is_left_to_the_next_run() -> None:
    reported: list[SourceRecord] = []
    bound = IntervalBound("c", END)
    report = bound.reporter(lambda record, _error: reported.append(record))
    bound.kept(batch("p", 1, END))
    for each in (record(1, "p"), record(1, "q"), record(1, source_partition=None)):
        report(each, ConnectError("not a number"))
    assert [each.source_partition for each in reported] == [{"file": "q"}, None]


def test_what_java_has_held_back_counts() -> None:
    bound = IntervalBound("c", END)
    nothing = {"seen": [], "passed": [], "held": 0, "oldest": 0, "lacking": None}
    bound.asked([{"a": 1, "b": 2}])
    bound.told({**nothing, "seen": ['{"c":1}'], "passed": ['{"c":1}'], "held": 2, "oldest": 7})
    assert (bound.held_back, bound.is_behind, bound.holds, bound.reached) == (2, True, True, False)
    bound.told(None)
    assert (bound.held_back, bound.is_behind) == (0, False)
    soon, other = int(time.time() * 1000) + 5000, ['{"b":2,"a":1}']
    bound.told({**nothing, "seen": other, "passed": other, "held": 1, "oldest": soon})
    assert (bound.is_behind, bound.reached) == (False, True)
    lacking = {"what": "source offset", "topic": "t", "partition": '{"c":1}', "offset": None}
    with pytest.raises(
        ConnectError, match=r'a record without a source offset \(topic t, source partition {"c":1}, source offset null'
    ):
        bound.told({**nothing, "lacking": lacking})


class Log:
    """A source of several partitions with records in order, in which a run reads from the stored offsets on."""

    def __init__(self, partitions: Mapping[str, Sequence[int]]) -> None:
        self.partitions = partitions
        self.committed = dict.fromkeys(partitions, 0)
        self.sent: list[tuple[int, str, int]] = []

    def batches(self, sizes: Iterator[int]) -> Iterator[list[SourceRecord]]:
        """Yield the records from the committed offsets on, those of the partitions in turn."""
        left = {name: list(enumerate(times, 1))[self.committed[name] :] for name, times in self.partitions.items()}
        while any(left.values()):
            found: list[SourceRecord] = []
            size = next(sizes)
            while len(found) < size and any(left.values()):
                for name, records in left.items():
                    if records:
                        number, at = records.pop(0)
                        found.append(record(at, name, number))
            yield found

    def move(self, number: int, end: int, sizes: Iterator[int], dies_after: int | None) -> None:
        """Run interval ``number``; with ``dies_after``, only so many batches, each with its offsets in one transaction."""
        bound = IntervalBound("c", end)
        bound.asked([{"file": name} for name in self.partitions])
        for count, polled in enumerate(self.batches(sizes)):
            if bound.reached or count == dies_after:
                return
            for each in bound.kept(polled):
                self.sent.append((number, each.source_partition["file"], each.source_offset["position"]))  # type: ignore[index]
                self.committed[each.source_partition["file"]] = each.source_offset["position"]  # type: ignore[index]


@settings(deadline=None)
@given(
    partitions=st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 6 * HOUR - 1), max_size=30), min_size=1),
    in_order=st.booleans(),
    sizes=st.lists(st.integers(1, 9), min_size=1),
    deaths=st.lists(st.lists(st.integers(0, 4), max_size=3), min_size=6, max_size=6),
)
def test_in_any_sequence_of_runs_and_kills_each_record_is_in_one_run(
    partitions: dict[str, list[int]], in_order: bool, sizes: list[int], deaths: list[list[int]]
) -> None:
    log = Log({name: sorted(times) if in_order else times for name, times in partitions.items()})
    endless = (sizes[index % len(sizes)] for index in range(1_000_000))
    for number, kills in enumerate(deaths):
        for kill in (*kills, None):
            log.move(number, (number + 1) * HOUR, endless, kill)
    expected = {(name, position): at for name, times in log.partitions.items() for position, at in enumerate(times, 1)}
    runs = {(name, position): number for number, name, position in log.sent}
    assert len(log.sent) == len(runs)
    assert sorted(runs) == sorted(expected)
    for place, at in expected.items():
        assert runs[place] >= at // HOUR, "no record is in an earlier run than its own"
        if in_order:
            assert runs[place] == at // HOUR
