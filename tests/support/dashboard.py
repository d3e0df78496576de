"""The connectors page with stores in memory, without Kafka and Spark."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.provider.progress.connector_progress import OffsetsSnapshot
from sluiceway.provider.progress.probe_request import ProbeRequest
from sluiceway.provider.ui.dag_facts import DagFacts
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TargetState, TaskId

WORKER = {
    "bootstrap.servers": "nowhere:9092",
    "group.id": "test",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "sluiceway.heartbeat.timeout.ms": "3600000",  # nobody sends heartbeats
}
SOURCE, SINK = "FileStreamSource", "FileStreamSink"


class StaticProbe:
    """Returns the offsets that a test has set."""

    def __init__(self) -> None:
        self.ends: dict[TopicPartition, int] = {}
        self.begins: dict[TopicPartition, int] = {}
        self.committed: dict[str, dict[TopicPartition, int]] = {}
        self.requests: list[Sequence[ProbeRequest]] = []
        self.failure: Exception | None = None
        self.at: float | None = None

    def snapshot(self, requests: Sequence[ProbeRequest]) -> OffsetsSnapshot:
        self.requests.append(requests)
        if self.failure is not None:
            raise self.failure
        return OffsetsSnapshot(self.at or time.time(), dict(self.committed), dict(self.begins), dict(self.ends))


class StaticAirflow:
    """Returns the DAGs and configs that a test has set."""

    def __init__(self) -> None:
        self.facts: dict[str, DagFacts] = {}
        self.configs: dict[tuple[str, str], dict[str, Any]] = {}

    def dags(self, dag_ids: Collection[str]) -> dict[str, DagFacts]:
        return {dag: facts for dag, facts in self.facts.items() if dag in dag_ids}

    def given_config(self, dag_id: str, task_id: str) -> dict[str, Any] | None:
        return self.configs.get((dag_id, task_id))


class MemoryConnectors:
    """Connectors with statuses, their herder and their dashboard."""

    def __init__(self) -> None:
        self.worker = WorkerConfig.of(WORKER)
        self.config = MemoryConfigBackingStore()
        self.status = MemoryStatusBackingStore()
        self.probe = StaticProbe()
        self.herder = Herder(self.worker, self.config, self.status)
        self.airflow = StaticAirflow()
        self.dashboard = Dashboard(self.worker, self.herder, self.config, self.probe, self.airflow)

    def add(
        self,
        name: str,
        kind: str = SOURCE,
        state: State = State.RUNNING,
        *,
        tasks: Sequence[State] = (),
        trace: str | None = None,
        target: TargetState | None = None,
        **config: str,
    ) -> None:
        """Create a connector in a state; ``trace`` is that of each FAILED status. Underscores in ``config`` are dots."""
        own = {"topic": name} if kind == SOURCE else {"topics": name}
        keys = {key.replace("_", "."): value for key, value in config.items()}
        self.config.put_connector(name, {"name": name, "connector.class": kind, **own, **keys}, target)
        self.config.put_task_configs(name, [{"task": str(number)} for number in range(len(tasks))])
        self.status.put_connector(name, Status(state, "10.0.0.7:8083", 1, trace if state is State.FAILED else None, "1.0"))
        for number, task in enumerate(tasks):
            self.status.put_task(TaskId(name, number), Status(task, "10.0.0.7:8083", 1, trace if task is State.FAILED else None))
        if kind == SOURCE:
            self.status.put_topic(name, 0, keys.get("topic", name))

    def follow(self, name: str) -> None:
        """Change the states as a driver would after a change of the target state."""
        target = self.target(name)
        state = {TargetState.STARTED: State.RUNNING, TargetState.PAUSED: State.PAUSED, TargetState.STOPPED: State.STOPPED}[target]
        self.status.put_connector(name, Status(state, "10.0.0.7:8083", 1))
        for number in self.status.tasks(name):
            self.status.put_task(TaskId(name, number), Status(state, "10.0.0.7:8083", 1))

    def target(self, name: str) -> TargetState:
        return self.config.snapshot().connectors[name].target_state

    def pretend_an_hour(
        self, rates: Mapping[str, float], minutes: int = 61, topics: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Fill the last hour of connectors with a lag, and with records at about these rates per second.

        ``topics``: of the connectors that move records of other topics than the one of their name.
        """
        now = time.time()
        places = [(name, topic) for name in rates for topic in (topics or {}).get(name, [name])]
        moved = dict.fromkeys(places, 0.0)
        for minute in range(minutes, -1, -1):
            for name, topic in places:
                rate = rates[name]
                wave = 1 + 0.6 * math.sin(minute / 7 + len(topic)) + 0.25 * math.sin(minute * 2.3 + rate)
                moved[name, topic] += 60 * rate * max(0.0, wave)
                place, count = TopicPartition(topic, 0), int(moved[name, topic])
                self.probe.ends[place] = max(self.probe.ends.get(place, 0), count + int(abs(math.sin(minute / 9)) * 40 * rate))
                group = f"connect-{name}"
                self.probe.committed[group] = {**self.probe.committed.get(group, {}), place: count}
            self.probe.at = now - 60 * minute
            self.dashboard.sampler.sample()
        self.probe.at = None
