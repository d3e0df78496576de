"""Tests of the temporary connector that moves an interval."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.config.worker import WorkerConfig
from sluiceway.connectors.replacement import IntervalReplacement
from sluiceway.kafka.windows import Window
from sluiceway.provider.driver.interval_connector import IntervalConnector, WantedInterval, connector_name
from sluiceway.provider.driver.run_variables import run_variables
from sluiceway.storage.intervals import IntervalEntry, IntervalState, Ledger, begun, introduced

START, END = datetime(2024, 5, 1, tzinfo=timezone.utc), datetime(2024, 5, 2, tzinfo=timezone.utc)
_MS = (1714521600000, 1714608000000)
DAY = Interval(*_MS)
_DONE = IntervalEntry(DAY, IntervalState.DONE)
_UPSERT = {"delta.tables.upsert-mode-enabled": "true", "delta.tables.default-id-columns": "id"}
_NO_IDS = {"key.ignore.id.strategy": "none"}
READ = {TopicPartition("t", 0): Window(5, 7, 9)}


def _wanted(config: dict[str, str], start: datetime = START, end: datetime = END) -> WantedInterval:
    run = SimpleNamespace(data_interval_start=start, data_interval_end=end, run_id="r", logical_date=end)
    return WantedInterval.of("c", config, run_variables({"dag_run": run}))


def _plan(config: dict[str, str], attempt: int = 1) -> IntervalConnector:
    return IntervalConnector.plan(_wanted(config), IntervalEntry(DAY, IntervalState.RUNNING, attempt), READ)


def test_a_sinks_connector_has_its_own_name_and_group_and_what_it_reads() -> None:
    live = {
        "name": "c",
        "topics": "t",
        "consumer.override.group.id": "mine",
        "transforms": "a",
        "sluiceway.application": "x",
        "airflow.config.task": "load",
    }
    made = _plan(live)
    assert (made.name, made.of, made.run) == ("c.interval.1714521600000", "c", IntervalRun("c", DAY, 1))
    config = made.config
    assert "consumer.override.group.id" not in config
    assert "airflow.config.task" not in config, "the run makes and deletes it"
    assert config["sluiceway.application"] == "x", "the warm application runs it"
    assert (config["name"], config["airflow.dag"], config["airflow.mode"]) == (made.name, "c.interval", "micro-batch")
    assert config["transforms"] == "a"
    assert config["airflow.interval.positions"] == '{"t":{"0":[5,7,9]}}'
    assert IntervalRun.of(config) == made.run
    assert made.starts == {TopicPartition("t", 0): 5}
    assert _plan(live, attempt=2).name == "c.interval.1714521600000.2", "which continues nothing of the first attempt"


def test_a_sinks_connector_has_its_own_group_even_if_the_worker_sets_one() -> None:
    made = _plan({"topics": "t"})
    shared = WorkerConfig.of({"consumer.group.id": "shared"})
    own = made.for_worker(shared)
    assert own.config == {**made.config, "consumer.override.group.id": f"connect-{made.name}"}
    assert made.for_worker(WorkerConfig.of({})) == made
    source = _plan({"query": "where day = '${airflow:run:ds}'"})
    assert source.for_worker(shared) == source
    assert "airflow.interval.positions" not in source.config


def _known(*intervals: tuple[int, int], run: str = "other") -> Ledger:
    entries = [IntervalEntry(Interval(*each), IntervalState.DONE, runs=(run,)) for each in intervals]
    return Ledger({entry.interval.start: entry for entry in entries})


def test_a_run_without_an_interval_moves_what_came_since_the_last_one() -> None:
    wanted = _wanted({"topics": "t"}, END, END)
    assert wanted.given(Ledger()) == Interval(0, _MS[1])
    assert wanted.given(_known((5, _MS[0]))) == DAY
    assert wanted.given(_known((5, _MS[0]), (9, 10))) == DAY
    assert wanted.given(_known((9, 10), run="r")) == Interval(9, 10), "a retry continues its own"
    later = _known((_MS[0], _MS[1] + 1))
    assert wanted.given(later) == later.last, "a later run has moved all of it"


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([], _MS),
        ([_MS], _MS),
        ([(0, _MS[0]), (_MS[1], _MS[1] + 5)], _MS),
        ([(0, _MS[0] + 100)], (_MS[0] + 100, _MS[1])),
        ([(_MS[0], _MS[0] + 100)], (_MS[0] + 100, _MS[1])),
        ([(_MS[0], _MS[0] + 100), (_MS[0] + 100, _MS[0] + 300)], (_MS[0] + 300, _MS[1])),
        ([(_MS[1] - 100, _MS[1] + 100)], (_MS[0], _MS[1] - 100)),
        ([(0, _MS[0] + 100), (_MS[1] - 100, _MS[1])], (_MS[0] + 100, _MS[1] - 100)),
    ],
)
def test_what_other_runs_have_moved_of_an_interval_is_left_out(known: list[tuple[int, int]], expected: tuple[int, int]) -> None:
    assert _wanted({"topics": "t"}).given(_known(*known)) == Interval(*expected)


def test_an_interval_that_others_have_moved_is_not_moved() -> None:
    known = _known((0, _MS[1] + 5))
    assert _wanted({"topics": "t"}).given(known) == known.last


_LOG = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector"}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([], _MS),
        ([(0, _MS[0])], _MS),
        ([(0, _MS[0] + 100)], (_MS[0] + 100, _MS[1])),
        ([(0, _MS[0] - 100)], _MS),
    ],
)
def test_an_interval_of_a_log_begins_behind_what_was_moved(known: list[tuple[int, int]], expected: tuple[int, int]) -> None:
    wanted = _wanted(_LOG)
    assert wanted.in_order
    assert wanted.given(_known(*known)) == Interval(*expected)


@pytest.mark.parametrize("later", [(_MS[1], _MS[1] + 5), (_MS[0], _MS[1]), (_MS[1] + 50, _MS[1] + 60)])
def test_an_interval_before_one_of_a_log_that_was_moved_has_nothing_left(later: tuple[int, int]) -> None:
    known = _known(later)
    given = _wanted(_LOG).given(known)
    assert given in (known.last, Interval(*later)), "its entry, or the same interval, which is done"
    assert not _wanted(_LOG).repeats(_DONE)
    failed = IntervalEntry(Interval(*later), IntervalState.FAILED)
    assert isinstance(_wanted(_LOG).given(Ledger({later[0]: failed})), Interval), "it may have moved nothing"


def test_the_live_connector_moves_the_intervals_of_a_log() -> None:
    made = _plan(_LOG)
    assert (made.name, made.is_temporary) == (made.of, False)
    assert "airflow.interval.end.ms" not in made.config, "the ledger tells the driver"
    assert _plan({"topics": "t"}).is_temporary


@pytest.mark.parametrize("length", [1, 180, 181, 400])
def test_the_name_stays_short_and_tells_connectors_apart(length: int) -> None:
    entry = IntervalEntry(DAY, IntervalState.RUNNING, 12)
    name = connector_name("c" * length, entry)
    assert len(name) <= 220
    assert name.endswith(f".interval.{DAY.start}.12")
    assert name != connector_name("c" * (length - 1) + "d", entry)


@pytest.mark.parametrize(
    ("config", "repeats"),
    [
        ({"connector.class": "FileStreamSink"}, False),
        ({"connector.class": "FileStreamSink", "airflow.interval.again": "append"}, True),
        ({"connector.class": "FileStreamSource"}, False),
        ({"connector.class": "FileStreamSource", "airflow.interval.again": "append"}, True),
        ({"connector.class": "ParquetSink"}, True),
        ({"connector.class": "JdbcSink", "connection.url": "jdbc:sqlite:/d", "insert.mode": "insert"}, False),
        ({"connector.class": "JdbcSink", "connection.url": "jdbc:sqlite:/d", "insert.mode": "upsert"}, True),
        ({"connector.class": "JdbcSink", "connection.url": "${airflow:connection:db}", "insert.mode": "upsert"}, True),
        ({"connector.class": "OpenSearchSink", "connection.url": "${env:SEARCH}"}, True),
        ({"connector.class": "DeltaSink", "delta.path": "/d", "delta.tables": "t"}, False),
        ({"connector.class": "DeltaSink", "delta.path": "/d", "delta.tables": "t", **_UPSERT}, True),
        ({"connector.class": "OpenSearchSink", "connection.url": "http://h:9200"}, True),
        ({"connector.class": "OpenSearchSink", "connection.url": "http://h:9200", "key.ignore": "true"}, True),
        ({"connector.class": "OpenSearchSink", "connection.url": "http://h:9200", "key.ignore": "true", **_NO_IDS}, False),
        ({"connector.class": "HBaseSink", "hbase.thrift": "h:9090", "hbase.table": "t"}, True),
        ({"connector.class": "HBaseSink", "hbase.thrift": "h:9090", "hbase.table": "t", "hbase.timestamp": "server"}, False),
    ],
)
def test_an_interval_is_moved_again_where_the_target_does_not_keep_both(config: dict[str, str], repeats: bool) -> None:
    assert _wanted({"topics": "t", "pk.mode": "record_key", **config}).repeats(_DONE) is repeats


@pytest.mark.parametrize(
    ("config", "replaces"),
    [
        ({"connector.class": "JdbcSink", "connection.url": "jdbc:postgresql://h/d"}, True),
        ({"connector.class": "JdbcSink", "connection.url": "jdbc:postgresql://h/d", "delete.enabled": "true"}, False),
        ({"connector.class": "DeltaSink", "delta.path": "/d", "delta.tables": "t"}, True),
        ({"connector.class": "DeltaSink", "delta.path": "/d", "delta.tables.dynamic-enabled": "true"}, False),
    ],
)
def test_rows_are_replaced_if_all_of_them_have_the_column(config: dict[str, str], replaces: bool) -> None:
    wanted = _wanted({"topics": "t", **config, "airflow.interval.column": "hour"})
    assert wanted.column == ("hour" if replaces else None)
    assert not wanted.repeats(_DONE), "they were added before the column was set"
    assert wanted.repeats(replace(_DONE, column="hour")) is replaces
    assert not wanted.repeats(replace(_DONE, column="other"))


def test_a_run_gives_each_row_the_start_of_its_interval_and_replaces_them_in_one_transaction() -> None:
    config = {"connector.class": "JdbcSink", "connection.url": "jdbc:postgresql://h/d", "transforms": "a", "tasks.max": "3"}
    wanted = _wanted({"topics": "t", **config, "airflow.interval.column": "day"})
    first = begun(introduced(Ledger(), DAY, None), DAY, "r1", 1, {}, wanted.column)
    made = IntervalConnector.plan(
        wanted, first, {TopicPartition("t", 0): Window(0, 0, 5), TopicPartition("t", 1): Window(7, 7, 7)}
    )
    prefix = "transforms.sluicewayIntervalColumn."
    assert made.config["transforms"] == "a,sluicewayIntervalColumn"
    assert made.config[f"{prefix}static.field"] == "day"
    assert (made.config["tasks.max"], IntervalReplacement.of(made.config)) == ("3", None)
    again = begun(replace(first, state=IntervalState.DONE), DAY, "r1", 2, {}, wanted.column)
    windows = {TopicPartition("t", 0): Window(0, 0, 5, ((6, 9),)), TopicPartition("t", 1): Window(7, 7, 7)}
    made = IntervalConnector.plan(wanted, again, windows)
    assert made.config["tasks.max"] == "1"
    found = IntervalReplacement.of(made.config)
    assert found == IntervalReplacement("day", made.config[f"{prefix}static.value"], {TopicPartition("t", 0): 9})
    assert [found.is_complete({TopicPartition("t", 0): offset}) for offset in (8, 9)] == [False, True]
    assert not found.is_complete({})
    assert [found.is_done({TopicPartition("t", 0): offset}) for offset in (None, 8, 9)] == [False, False, True]


def test_an_attempt_continues_until_it_is_done() -> None:
    first = begun(introduced(Ledger(), DAY, None), DAY, "r1", 1, {})
    assert (first.state, first.attempt, first.runs, first.number) == (IntervalState.RUNNING, 1, ("r1",), 1)
    failed = IntervalEntry(DAY, IntervalState.FAILED, runs=("r1",), error="why")
    assert begun(failed, DAY, "r1", 2, {}) == IntervalEntry(DAY, IntervalState.RUNNING, runs=("r1",), updated=2)
    assert begun(failed, DAY, "r1", 2, None).at_least, "a source does not tell how many records the first try has moved"
    done = IntervalEntry(DAY, IntervalState.DONE, runs=("r1", "r2"), records=5, number=4, leaves_from=7, rerun=1)
    again = IntervalEntry(DAY, IntervalState.RUNNING, 2, runs=("r2", "r1"), updated=3, number=4, leaves_from=7)
    assert begun(done, DAY, "r1", 3, {}) == again
