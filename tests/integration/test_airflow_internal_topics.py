"""Tests of what operators, sensors and triggers read from a real Kafka: progress, records since a time, intervals."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import pytest
from confluent_kafka import Producer

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import Interval, IntervalSettings
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, KafkaClientError, NotFoundError
from sluiceway.herder import Herder
from sluiceway.kafka import reachability
from sluiceway.kafka.admin import create_topic
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.group_offsets import ConsumerGroups
from sluiceway.kafka.reachability import check_brokers
from sluiceway.kafka.windows import decode_windows
from sluiceway.provider.driver.internal_topics import KafkaInternalTopics
from sluiceway.provider.driver.interval_connector import (
    IntervalConnector,
    MovedBefore,
    NotClosed,
    Outcome,
    WantedInterval,
)
from sluiceway.provider.progress.cluster_view import open_view
from sluiceway.storage.factory import open_stores
from sluiceway.storage.interval_ledger import read_ledger
from sluiceway.storage.intervals import IntervalState, Ledger
from sluiceway.storage.model import LeaseOwner, State, Status, TargetState, TaskId
from sluiceway.worker.kafka_channel import KafkaChannels, KafkaControlChannel
from support.eventually import eventually

pytestmark = pytest.mark.kafka

_DAY = 86_400_000


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Callable[[str], str]) -> WorkerConfig:
    properties = {"bootstrap.servers": kafka_bootstrap, "group.id": unique("group"), "offset.storage.partitions": "1"}
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    return WorkerConfig.of(properties)


@pytest.fixture
def topic(worker: WorkerConfig, unique: Callable[[str], str]) -> str:
    """Three records of three days in one partition; a second partition is empty."""
    name = unique("topic")
    create_topic(admin_client(worker), name, 2, 1)
    producer = Producer({"bootstrap.servers": worker.bootstrap_servers})
    today = int(time.time() * 1000) // _DAY * _DAY
    for days in (2, 1, 0):
        producer.produce(name, str(days), partition=0, timestamp=today - days * _DAY)
    producer.flush()
    return name


@contextmanager
def _herder(worker: WorkerConfig) -> Iterator[Herder]:
    with open_stores(worker) as stores:
        yield Herder(worker, stores.config, stores.status, stores.offsets)


def test_a_sinks_lag_counts_uncommitted_records(worker: WorkerConfig, topic: str, unique: Callable[[str], str]) -> None:
    name = unique("sink")
    config = {"connector.class": "FileStreamSink", "file": "/f", "topics": topic}
    with _herder(worker) as herder:
        herder.create(name, config, TargetState.STOPPED)
        topics = KafkaInternalTopics(worker)
        before = topics.progress(name)
        assert before is not None
        assert (before.lag, before.count, list(before.offsets)) == (3, 0, [])
        herder.alter_offsets(name, [({"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": 2})])
    assert topics.progress_reader(name)().lag == 1
    after = topics.progress(name)
    assert after is not None
    assert (after.count, list(after.offsets)) == (2, [({"kafka_partition": 0, "kafka_topic": topic}, {"kafka_offset": 2})])
    assert topics.progress("none") is None


def test_the_task_whose_driver_runs_a_connector_is_known_until_another_one_takes_over(
    worker: WorkerConfig, unique: Callable[[str], str]
) -> None:
    name, topics = unique("source"), KafkaInternalTopics(worker)
    first, second = LeaseOwner("d", "r1", "t"), LeaseOwner("d", "r2", "t", 4)

    def begin(worker_id: str, owner: LeaseOwner) -> tuple[KafkaChannels, KafkaControlChannel]:
        driver = KafkaChannels(worker, worker_id, stores, f"connector-{name}", owner=owner)
        channel = driver.channel(name)
        channel.acquire()
        channel.publish_connector(State.RUNNING)
        channel.verify()
        return driver, channel

    with open_stores(worker) as stores:
        assert topics.driver(name).owner is None
        fenced, channel = begin("one:1", first)
        assert (topics.driver(name).lives, topics.driver(name).owner) == (True, first)
        newer, other = begin("two:2", second)
        channel.close()
        fenced.close(taken_over=True)
        assert (topics.driver(name).lives, topics.driver(name).owner) == (True, second)
        other.publish_connector(State.UNASSIGNED)
        newer.close()
        other.close()
        assert (topics.driver(name).lives, topics.driver(name).owner) == (False, None)


def test_failed_tasks_are_those_of_the_driver_that_runs(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    name, topics = unique("source"), KafkaInternalTopics(worker)
    with open_stores(worker) as stores:
        stores.status.put_connector(name, Status(State.RUNNING, "w:1", 1))
        stores.status.put_task(TaskId(name, 0), Status(State.RUNNING, "w:1", 1))
        stores.status.put_task(TaskId(name, 1), Status(State.FAILED, "w:1", 1, "a.b.E: no table\n\tat x"))
        stores.status.put_task(TaskId(name, 2), Status(State.FAILED, "w:1", 1))
    assert topics.failed(name, time.time() - 60) == ("task 1: a.b.E: no table", "task 2: no trace")
    assert topics.failed(name, time.time() + 60) == ()
    assert topics.failed("none", 0) == ()


def test_brokers_answer_and_a_server_that_is_no_broker_is_named(worker: WorkerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    check_brokers(worker)
    monkeypatch.setattr(reachability, "_ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(KafkaClientError, match=f"Cannot reach Kafka at {address}: "):
            check_brokers(WorkerConfig.of({**worker.raw, "bootstrap.servers": address}))


def test_an_entry_is_followed_over_one_connection(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    name, topics = unique("source"), KafkaInternalTopics(worker)
    with _herder(worker) as herder, topics.watched_entry(name) as read:
        assert read() is None
        herder.create(name, {"connector.class": "FileStreamSource", "topic": "t"})
        eventually(lambda: (entry := read()) and entry.target_state is TargetState.STARTED, what="the connector")
        herder.pause(name)
        eventually(lambda: (entry := read()) and entry.target_state is TargetState.PAUSED, what="the pause")


def test_records_are_counted_from_a_timestamp(worker: WorkerConfig, topic: str) -> None:
    midnight = int(time.time() * 1000) // _DAY * _DAY
    with open_view(worker) as view:
        assert view.records_since(topic, midnight - 5 * _DAY) == 3
        assert view.records_since(topic, midnight - _DAY) == 2
        assert view.records_since(topic, midnight + 1) == 0
        assert view.records_since(topic, midnight - 5 * _DAY, midnight - _DAY) == 1
        assert view.records_since(topic, midnight - 5 * _DAY, midnight + 1) == 3, "there is no record at or after the end"
        assert view.records_since("not-there", 0) is None


def test_an_intervals_connector_starts_at_its_records_and_is_deleted_completely(
    worker: WorkerConfig, topic: str, unique: Callable[[str], str]
) -> None:
    name = unique("sink")
    midnight = int(time.time() * 1000) // _DAY * _DAY
    live = {"name": name, "connector.class": "FileStreamSink", "file": "/f", "topics": topic}
    wanted = WantedInterval(name, live, "r1", midnight - _DAY, midnight, IntervalSettings.of(live))
    topics = KafkaInternalTopics(worker)
    with _herder(worker) as herder:
        herder.create(name, live)
    made = topics.intervals().begin(wanted)
    assert isinstance(made, IntervalConnector)
    entry = topics.entry(made.name)
    assert entry is not None
    assert entry.target_state is TargetState.STARTED
    progress = topics.progress(made.name)
    assert progress is not None
    assert progress.lag == 2, "yesterday's record and today's"
    assert topics.intervals().begin(wanted) == made, "a retry"
    topics.intervals().fail(made.name, "why")
    with _herder(worker) as herder:
        assert [(entry.state, entry.error) for entry in herder.intervals(name)] == [(IntervalState.FAILED, "why")]
    assert topics.intervals().begin(wanted) == made, "another retry"
    with pytest.raises(ConnectError, match="is committed up to offset 1 of 3"):
        topics.intervals().end(made.name, None)
    ConsumerGroups(worker).alter(f"connect-{made.name}", {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 0})
    with open_stores(worker, brief=True) as stores:
        stores.status.put_topic(made.name, 0, topic)
    assert topics.intervals().end(made.name, None).state is IntervalState.DONE
    assert topics.entry(made.name) is None
    assert topics.topics(name) == [topic], "it is the live connector that uses it"
    with _herder(worker) as herder:
        assert herder.connectors() == [name]
        assert herder.offsets(name) == [], "the live connector's offsets are unchanged"
        [done] = herder.intervals(name)
    assert topics.intervals().begin(wanted) == MovedBefore(done), "a file that is appended to would keep both"
    with pytest.raises(NotFoundError, match="which moves an interval, not found"):
        topics.intervals().end(made.name, None)


def test_an_interval_waits_until_its_records_have_come(worker: WorkerConfig, topic: str, unique: Callable[[str], str]) -> None:
    name = unique("sink")
    hour = int(time.time() * 1000) + 3_600_000
    live = {"name": name, "connector.class": "FileStreamSink", "file": "/f", "topics": topic, "airflow.interval.lateness": "1m"}
    runs = KafkaInternalTopics(worker).intervals()
    found = runs.begin(WantedInterval(name, live, "r1", hour - 1000, hour, IntervalSettings.of(live)))
    assert found == NotClosed(Interval(hour - 1000, hour), hour + 60_000)
    source = {"name": name, "connector.class": "JdbcSource"}
    found = runs.begin(WantedInterval(name, source, "r1", hour - 1000, hour, IntervalSettings.of(source)))
    assert found == NotClosed(Interval(hour - 1000, hour), hour + 10_000)
    with open_stores(worker, brief=True) as stores:
        assert read_ledger(stores.offsets, name) == Ledger(), "nothing was decided"


def test_of_two_runs_that_close_a_boundary_one_decides(worker: WorkerConfig, topic: str, unique: Callable[[str], str]) -> None:
    name = unique("sink")
    midnight = int(time.time() * 1000) // _DAY * _DAY
    live = {"name": name, "connector.class": "FileStreamSink", "file": "/f", "topics": topic}
    days = [Interval(midnight - number * _DAY, midnight - (number - 1) * _DAY) for number in range(1, 5)]
    settings = IntervalSettings.of(live)

    def begin(day: Interval) -> Outcome:
        return KafkaInternalTopics(worker).intervals().begin(WantedInterval(name, live, str(day), day.start, day.end, settings))

    with ThreadPoolExecutor(len(days)) as pool:
        made = [each for each in pool.map(begin, days) if isinstance(each, IntervalConnector)]
    assert {each.run.interval for each in made} == set(days)
    read = {each.run.interval: decode_windows(each.config["airflow.interval.positions"]) for each in made}
    for later, earlier in pairwise(days):
        ends = {place: window.end for place, window in read[earlier].items()}
        assert {place: window.closed for place, window in read[later].items()} == ends, "one ends where the next one begins"
