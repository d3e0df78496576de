"""Sluiceway and a real Kafka Connect 4.3.0 worker take turns on the same three topics and the same group.id."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from sluiceway.config.intervals import IntervalSettings
from sluiceway.herder import Herder
from sluiceway.provider.driver.interval_connector import IntervalConnector, WantedInterval
from sluiceway.provider.driver.interval_runs import IntervalRuns
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from sluiceway.storage.history import Origin
from sluiceway.storage.intervals import IntervalEntry
from support import peer
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.peer]


class Handover:
    """A source and a sink that Sluiceway and Kafka Connect run in turn."""

    def __init__(self, folder: Path, bootstrap: str, unique: Callable[[str], str]) -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.properties = worker_properties(bootstrap, unique("handover"))
        self.worker = worker_of(self.properties)
        self.worker_file = write_properties(folder / "worker.properties", self.properties)
        self.input, self.output = folder / "in.txt", folder / "out.txt"
        self.source, self.sink = unique("source"), unique("sink")
        topic = unique("lines")
        self.configs: Mapping[str, dict[str, str]] = {
            self.source: {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(self.input), "topic": topic},
            self.sink: {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(self.output), "topics": topic},
        }

    def append(self, lines: str) -> None:
        with self.input.open("a") as file:
            file.write(lines)

    def copied(self) -> None:
        eventually(
            lambda: self.output.exists() and self.output.read_text() == self.input.read_text(),
            what="the output equals the input, each line once",
        )

    @contextlib.contextmanager
    def herder(self) -> Iterator[Herder]:
        with open_stores(self.worker) as stores:
            herder = Herder(self.worker, stores.config, stores.status, stores.offsets)
            yield herder.acting_for(Origin("alice", client="test"))  # its records have headers, which Kafka Connect ignores

    @contextlib.contextmanager
    def ours(self) -> Iterator[Herder]:
        """Run both connectors on Sluiceway's drivers while the context lasts."""
        drivers: list[BackgroundProcess] = []
        with self.herder() as herder:
            try:
                for name in self.configs:
                    driver = submitted_driver(name, self.worker_file, self.folder, master="local[2]")
                    driver.start()
                    drivers.append(driver)
                yield herder
            finally:
                for driver in drivers:
                    driver.stop()

    def moved_interval(self) -> list[IntervalEntry]:
        """Move an interval of the sink, in which no record is; return the ledger."""
        config, runs = self.configs[self.sink], IntervalRuns(self.worker)
        begun = runs.begin(WantedInterval(self.sink, config, "run", 0, 3_600_000, IntervalSettings.of(config)))
        assert isinstance(begun, IntervalConnector)
        runs.end(begun.name, None)
        with self.herder() as herder:
            return herder.intervals(self.sink)

    def theirs(self) -> peer.PeerDistributed:
        topics = (self.worker.config_topic, self.worker.offset_topic, self.worker.status_topic)
        string = "org.apache.kafka.connect.storage.StringConverter"
        extra = {"key.converter": string, "value.converter": string, "offset.flush.interval.ms": "1000"}
        return peer.PeerDistributed(self.bootstrap, self.worker.group_id, self.folder / "peer", topics, extra)


@pytest.fixture
def handover(tmp_path: Path, kafka_bootstrap: str, unique: Callable[[str], str]) -> Handover:
    return Handover(tmp_path, kafka_bootstrap, unique)


@pytest.mark.long
def test_kafka_connect_takes_over_from_sluiceway_and_hands_back(handover: Handover) -> None:
    with handover.herder() as herder:
        for name, config in handover.configs.items():
            herder.create(name, config)
    handover.append("ours 1\nours 2\n")
    with handover.ours() as herder:
        handover.copied()
        for name in handover.configs:
            herder.stop(name)
        for name in handover.configs:
            eventually(lambda each=name: herder.status(each).connector.state.value == "STOPPED", what=f"{name} STOPPED")
    handover.append("theirs 1\n")
    ledger = handover.moved_interval()

    with handover.theirs() as worker:
        assert sorted(peer.list_connectors(worker.rest)) == sorted(handover.configs)
        for name, config in handover.configs.items():
            assert peer.get_config(worker.rest, name) == {**config, "name": name}
            peer.wait_for_state(worker.rest, name, "STOPPED", tasks=0)
        for name in handover.configs:
            peer.change_state(worker.rest, name, "resume")
        for name in handover.configs:
            peer.wait_for_state(worker.rest, name, "RUNNING")
        handover.copied()
        for name in handover.configs:
            peer.change_state(worker.rest, name, "pause")
        for name in handover.configs:
            peer.wait_for_state(worker.rest, name, "PAUSED")
        lines = worker.log.read_text(errors="replace").splitlines()
    assert [line for line in lines if ("] WARN " in line or "] ERROR " in line) and "Offset" in line.rpartition("(")[2]] == []
    handover.append("ours 3\n")

    with handover.herder() as herder:
        assert herder.intervals(handover.sink) == ledger, "Kafka Connect has left the ledger as it is"
        assert sorted(herder.connectors()) == sorted(handover.configs)
        for name, config in handover.configs.items():
            assert herder.info(name).config == {**config, "name": name}
            assert herder.status(name).connector.state.value == "PAUSED"
        for name in handover.configs:
            herder.resume(name)
    with handover.ours() as herder:
        handover.copied()
        for name in handover.configs:
            assert herder.status(name).connector.state.value == "RUNNING"
