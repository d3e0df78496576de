"""Events of connectors that run all the time, with Kafka and Airflow's database in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.live_assets import partition_key
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.herder import Herder
from sluiceway.kafka.lag import Offsets
from sluiceway.provider.live_assets.completeness import PartitionPast
from sluiceway.provider.live_assets.live_assets import LiveAssets
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore

HOUR, MINUTE = 3_600_000, 60_000
START = 1_780_000_000_000 // HOUR * HOUR
SINK = {"connector.class": "FileStreamSink", "topics": "t", "file": "/out/f"}
SOURCE = {"connector.class": "FileStreamSource", "topic": "t", "file": "/in/f"}
PARTITIONED = {"airflow.partition": "hour", "airflow.start.date": "2026-05-28T20:26:40Z", "airflow.interval.lateness": "1m"}
PARTITION = TopicPartition("t", 0)
CONNECTOR = "sluiceway://connectors/c"


class Cluster:
    """One topic with a partition, whose records have these times."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.offsets: dict[TopicPartition, int] = {}
        self.counts: dict[str, int] = {}
        self.running = True
        self.logs: list[int] | None = None
        self.read: list[int] = []
        self.down = False

    def progress(self) -> Mapping[str, ConnectorProgress]:
        return {name: ConnectorProgress(count=count, positions={PARTITION: count}) for name, count in self.counts.items()}

    def committed(self, group: str, topics: Collection[str]) -> Offsets:
        if self.down:
            raise KafkaClientError("no broker", "_TRANSPORT")
        return dict(self.offsets)

    def past(self, topics: Collection[str], moment: int) -> dict[TopicPartition, PartitionPast]:
        end = len(self.times)
        at = next((offset for offset, time in enumerate(self.times) if time >= moment), -1)
        return {PARTITION: PartitionPast(0, end, end, at)} if "t" in topics else {}

    def sink_topics(self, name: str, config: Mapping[str, str]) -> Collection[str]:
        return ["t"]

    def topics(self, name: str) -> Collection[str]:
        return ["t"]

    def has_records(self, partition: TopicPartition, offset: int) -> bool:
        self.read.append(offset)
        return any(self.times[offset:])

    def is_running(self, name: str) -> bool:
        return self.running

    def log_times(self, name: str) -> list[int] | None:
        return self.logs


class Airflow:
    """Keeps the events of each asset."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any], str | None]] = []
        self.down = False

    def complete_until(self, uri: str) -> int | None:
        found = [extra["complete_until"] for each, extra, _ in self.events if each == uri and "complete_until" in extra]
        return found[-1] if found else None

    def add_asset_events(self, uris: Collection[str], extra: Mapping[str, Any], partition: str | None = None) -> bool:
        if self.down:
            raise ConnectionError("no database")
        known = self.complete_until(next(iter(uris)))
        if partition is not None and known is not None and known >= extra["complete_until"]:
            return False
        self.events += [(uri, dict(extra), partition) for uri in uris]
        return True

    def keys(self, uri: str = CONNECTOR) -> list[str | None]:
        return [key for each, _, key in self.events if each == uri]


class World:
    def __init__(self, config: Mapping[str, str], name: str = "c") -> None:
        self.config = MemoryConfigBackingStore()
        self.herder = Herder(WorkerConfig.of({"bootstrap.servers": "b:1"}), self.config, MemoryStatusBackingStore())
        self.herder.create(name, {"name": name, **config})
        self.cluster, self.airflow, self.leads, self.now = Cluster(), Airflow(), True, float(START)
        self.assets = self.process()

    def process(self) -> LiveAssets:
        """Return what another process of the API server, or the same one after a restart, has."""
        return LiveAssets(
            WorkerConfig.of({"bootstrap.servers": "b:1"}),
            self.config,
            self.cluster,
            self.airflow,
            lambda: self.leads,
            lambda: self.now / 1000,
        )

    def after(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.assets.step()


def hours(first: int, last: int) -> list[str]:
    return [partition_key(START + number * HOUR) for number in range(first, last)]


def test_what_was_moved_has_one_event_in_a_minute_for_each_asset() -> None:
    world = World(SINK)
    world.cluster.counts = {"c": 100}
    world.after(0)
    assert world.airflow.events == []  # it was moved before
    world.cluster.counts = {"c": 150}
    world.after(5000)
    extra = {"connector": "c", "records": 50, "positions": {"t": {"0": 150}}}
    assert world.airflow.events == [(CONNECTOR, extra, None), ("file:///out/f", extra, None)]
    world.cluster.counts = {"c": 160}
    world.after(30_000)
    assert len(world.airflow.events) == 2
    world.cluster.counts = {"c": 170}
    world.after(30_000)
    assert [extra["records"] for _, extra, _ in world.airflow.events] == [50, 50, 20, 20]
    world.after(600_000)
    assert len(world.airflow.events) == 4


@pytest.mark.parametrize("change", ["micro-batch", "stopped"])
def test_others_have_no_events(change: str) -> None:
    world = World({**SINK, "airflow.mode": "micro-batch"} if change == "micro-batch" else SINK)
    if change == "stopped":
        world.herder.stop("c")
    for count in (1, 2):
        world.cluster.counts = {"c": count}
        world.after(MINUTE)
    assert world.airflow.events == []


def test_a_sinks_hour_is_complete_once_it_has_committed_all_before_the_first_later_record() -> None:
    world = World({**SINK, **PARTITIONED})
    world.cluster.times = [START + 5, START + HOUR - 1, START + HOUR + 5, START + HOUR + MINUTE]
    world.cluster.offsets = {PARTITION: 4}
    world.after(HOUR + MINUTE - 1)
    assert world.airflow.events == []  # more records of the hour may come
    world.cluster.offsets = {PARTITION: 2}
    world.after(1)
    assert world.airflow.events == []  # it is not written
    world.cluster.offsets = {PARTITION: 3}
    world.after(0)
    assert world.airflow.keys() == world.airflow.keys("file:///out/f") == hours(0, 1)
    assert world.airflow.events[0][1] == {
        "connector": "c",
        "records": 2,
        "partition_key": hours(0, 1)[0],
        "start": START,
        "end": START + HOUR,
        "complete_until": START + HOUR,
    }


def test_an_idle_hour_is_complete_by_the_clock_and_after_what_is_left() -> None:
    world = World({**SINK, **PARTITIONED})
    world.cluster.times, world.cluster.offsets = [START + 5, START + 6], {PARTITION: 1}
    world.after(HOUR + MINUTE)
    world.after(0)
    assert (world.airflow.events, world.cluster.read) == ([], [1])
    world.cluster.offsets = {PARTITION: 2}
    world.after(0)
    assert world.airflow.keys() == hours(0, 1)
    world.after(3 * HOUR)
    assert world.airflow.keys() == hours(0, 4)
    assert [extra["records"] for uri, extra, _ in world.airflow.events if uri == CONNECTOR] == [2, 0, 0, 0]


def test_only_markers_of_transactions_are_left() -> None:
    world = World({**SINK, **PARTITIONED})
    world.cluster.times, world.cluster.offsets = [START + 5, 0], {PARTITION: 1}
    world.after(HOUR + MINUTE)
    world.after(0)
    assert world.airflow.keys() == hours(0, 1)


def test_each_partition_has_its_event_once_whatever_process_makes_it() -> None:
    world = World({**SINK, **PARTITIONED})
    world.cluster.times = [START + number * HOUR // 4 for number in range(200)]
    world.now += 49 * HOUR + MINUTE
    other = world.process()
    for committed in range(0, 201, 10):
        world.cluster.offsets = {PARTITION: committed}
        for process in (world.assets, other):
            process.step()
        world.assets = world.process()
    assert world.airflow.keys() == hours(0, 49)


def test_a_process_that_does_not_lead_makes_none_before_it_does() -> None:
    world = World({**SINK, **PARTITIONED})
    world.leads = False
    world.after(2 * HOUR)
    assert world.airflow.events == []
    world.leads = True
    world.cluster.times, world.cluster.offsets = [START], {PARTITION: 1}
    world.after(0)
    assert world.airflow.keys() == hours(0, 1)


def test_nothing_is_left_out_while_the_database_does_not_answer() -> None:
    world = World({**SINK, **PARTITIONED})
    world.cluster.times, world.cluster.offsets, world.cluster.counts = [START], {PARTITION: 1}, {"c": 1}
    world.after(0)
    world.airflow.down, world.cluster.counts = True, {"c": 2}
    world.after(2 * HOUR)
    world.airflow.down = False
    world.after(0)
    assert world.airflow.keys() == [*hours(0, 1), None]
    assert world.airflow.events[-1][1]["records"] == 1


def test_without_a_start_the_first_partition_is_the_one_that_ended_last() -> None:
    world = World({**SINK, "airflow.partition": "hour"})
    world.now += 10 * MINUTE
    world.cluster.times, world.cluster.offsets = [START], {PARTITION: 1}
    world.after(0)
    assert world.airflow.keys() == hours(-1, 0)


def test_hours_that_end_while_no_process_lives_have_their_events_later() -> None:
    world = World({**SINK, "airflow.partition": "hour"})
    world.cluster.times, world.cluster.offsets = [START], {PARTITION: 1}
    world.after(10 * MINUTE)
    world.assets = world.process()
    world.after(3 * HOUR)
    assert world.airflow.keys() == hours(-1, 3)


@pytest.mark.parametrize("running", [True, False])
def test_a_sources_hour_is_complete_by_the_clock_while_it_runs(running: bool) -> None:
    world = World({**SOURCE, **PARTITIONED})
    world.cluster.times, world.cluster.running = [START], running
    world.after(HOUR + MINUTE - 1)
    assert world.airflow.events == []
    world.after(1)
    assert world.airflow.keys("kafka://b:1/t") == (hours(0, 1) if running else [])


def test_a_database_logs_hour_is_complete_by_commit_times() -> None:
    world = World({**SOURCE, **PARTITIONED})
    world.cluster.times, world.cluster.logs = [START, START + 9 * HOUR], [START + HOUR]
    world.after(9 * HOUR)
    assert world.airflow.events == []
    world.cluster.logs = [START + HOUR + MINUTE]
    world.after(0)
    assert world.airflow.keys() == hours(0, 1)
    assert world.airflow.events[0][1]["records"] is None


def test_a_connector_that_cannot_be_asked_is_said_once_and_keeps_nobody_else_waiting(caplog: pytest.LogCaptureFixture) -> None:
    world = World({**SINK, "airflow.partition": "hour"}, "a")
    world.herder.create("c", {"name": "c", **SOURCE})
    world.cluster.down, world.cluster.counts = True, {"c": 1}
    world.after(MINUTE)
    world.cluster.counts = {"c": 2}
    world.after(0)
    assert world.airflow.keys() == [None]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["[a|worker] No asset events: no broker"]


def test_a_connector_with_an_unexpected_failure_keeps_nobody_else_waiting(caplog: pytest.LogCaptureFixture) -> None:
    world = World({**SINK, "airflow.partition": "hour"}, "a")
    world.herder.create("c", {"name": "c", **SOURCE})
    world.cluster.offsets = None  # type: ignore[assignment]
    for count in (1, 2):
        world.cluster.counts = {"c": count}
        world.after(MINUTE)
    assert world.airflow.keys() == [None]
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


def test_what_goes_to_another_cluster_is_said() -> None:
    world = World({**SINK, **PARTITIONED, "consumer.override.bootstrap.servers": "other:1"})
    world.after(9 * HOUR)
    assert world.airflow.events == []
    assert "another cluster" in str(world.assets._seen["c"].problem)
