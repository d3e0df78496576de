"""Tests of the temporary connector that moves an interval."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.provider.driver.interval_connector import IntervalConnector, WantedInterval
from sluiceway.provider.driver.run_variables import run_variables
from sluiceway.storage.intervals import IntervalEntry, IntervalState, Window, begun

START, END = datetime(2024, 5, 1, tzinfo=timezone.utc), datetime(2024, 5, 2, tzinfo=timezone.utc)
_MS = (1714521600000, 1714608000000)
DAY = Interval(*_MS)
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


def test_a_run_without_an_interval_moves_what_came_since_the_last_one() -> None:
    wanted = _wanted({"topics": "t"}, END, END)
    assert wanted.given(None, None) == Interval(0, _MS[1])
    last = IntervalEntry(Interval(5, _MS[0]), IntervalState.DONE)
    assert wanted.given(last, None) == DAY
    own = IntervalEntry(Interval(9, 10), IntervalState.RUNNING)
    assert wanted.given(last, own) == own.interval, "a retry continues its own"
    with pytest.raises(ConfigError, match="moved already"):
        wanted.given(IntervalEntry(DAY, IntervalState.DONE), None)
    assert _wanted({"topics": "t"}).given(last, own) == DAY, "a run with an interval moves that"


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
    assert _wanted({"topics": "t", "pk.mode": "record_key", **config}).repeats is repeats


def test_an_attempt_continues_until_it_is_done() -> None:
    first = begun(None, DAY, "r1", 1)
    assert (first.state, first.attempt, first.runs) == (IntervalState.RUNNING, 1, ("r1",))
    failed = IntervalEntry(DAY, IntervalState.FAILED, runs=("r1",), error="why")
    assert begun(failed, DAY, "r1", 2) == IntervalEntry(DAY, IntervalState.RUNNING, runs=("r1",), updated=2)
    done = IntervalEntry(DAY, IntervalState.DONE, runs=("r1", "r2"), records=5)
    assert begun(done, DAY, "r1", 3) == IntervalEntry(DAY, IntervalState.RUNNING, 2, runs=("r2", "r1"), updated=3)
