"""A Connect cluster with many connectors whose records are written to the config and status topics directly.

No task runs, except those that a real Kafka Connect worker starts for them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import ensure_internal_topic
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.topic_writer import ProducerRecord, TopicWriter
from sluiceway.storage.codec import (
    encode_commit,
    encode_connector,
    encode_connector_status,
    encode_target_state,
    encode_task,
    encode_task_status,
    encode_topic_status,
)
from sluiceway.storage.heartbeats import Heartbeat, encode_heartbeat
from sluiceway.storage.model import State, Status, TargetState, TaskId
from sluiceway.storage.topics import config_topic, offset_topic, status_topic
from support.eventually import LIMIT
from support.peer import FILE_SINK, FILE_SOURCE

HEARTBEAT_SECONDS = 10.0
_DRIVER = "driver:1"


class ManyConnectors:
    """``count`` connectors with one task each, named c0, c1, and so on: the first ``running`` run, the others are paused.

    Those with an even number are sinks. ``folder`` holds an empty file that the sources read.
    """

    def __init__(self, worker: WorkerConfig, count: int, running: int, folder: Path) -> None:
        self._worker = worker
        self._running = running
        self._empty = folder / "empty.txt"
        self._empty.touch()
        self._folder = folder
        self.configs = {f"c{number}": self._config(number) for number in range(count)}

    def create(self, *, statuses: bool = True) -> None:
        """Create the internal topics and write the connectors to them; without ``statuses``, only their configs."""
        admin = admin_client(self._worker)
        for topic in (config_topic(self._worker), offset_topic(self._worker), status_topic(self._worker)):
            ensure_internal_topic(admin, topic)
        writer = TopicWriter(self._worker, "many-connectors")
        try:
            writer.write(list(self._configs()))
            if statuses:
                writer.write([*self._statuses(range(len(self.configs))), *self._topics()])
        finally:
            writer.close()

    @contextmanager
    def heartbeats(self) -> Iterator[None]:
        """Renew the statuses of the running connectors every 10 s, as one driver of all would."""
        ended = threading.Event()
        topic = status_topic(self._worker).name

        def beat() -> None:
            writer = TopicWriter(self._worker, "many-connectors-heartbeats")
            while not ended.wait(HEARTBEAT_SECONDS):
                writer.write([(topic, *encode_heartbeat("driver", self._heartbeat()))])
            writer.close()

        thread = threading.Thread(target=beat, name="heartbeats", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(LIMIT)

    def _heartbeat(self) -> Heartbeat:
        running = [f"c{number}" for number in range(min(self._running, len(self.configs)))]
        return Heartbeat(_DRIVER, dict.fromkeys(running, 1), {TaskId(name, 0): 1 for name in running})

    def _config(self, number: int) -> dict[str, str]:
        own = (
            {"connector.class": FILE_SOURCE, "topic": "t", "file": str(self._empty)}
            if number % 2
            else {"connector.class": FILE_SINK, "topics": "t", "file": str(self._folder / f"out-{number}.txt")}
        )
        filling = {f"some.further.option.{each}": "x" * 40 for each in range(15)}
        return {**own, "tasks.max": "1", **filling, "name": f"c{number}"}

    def _configs(self) -> Iterator[ProducerRecord]:
        topic = config_topic(self._worker).name
        for number, (name, config) in enumerate(self.configs.items()):
            state = TargetState.STARTED if number < self._running else TargetState.PAUSED
            kind = "Source" if number % 2 else "Sink"
            task = {**_without_class(config), "task.class": f"org.apache.kafka.connect.file.FileStream{kind}Task"}
            for record in (
                encode_target_state(name, state),
                encode_connector(name, config),
                encode_task(TaskId(name, 0), task),
                encode_commit(name, 1),
            ):
                yield (topic, *record)

    def _statuses(self, numbers: range) -> Iterator[ProducerRecord]:
        topic = status_topic(self._worker).name
        for number in numbers:
            state = State.RUNNING if number < self._running else State.PAUSED
            status = Status(state, _DRIVER, 1, version="4.3.0")
            yield (topic, *encode_connector_status(f"c{number}", status))
            yield (topic, *encode_task_status(TaskId(f"c{number}", 0), status))

    def _topics(self) -> Iterator[ProducerRecord]:
        topic = status_topic(self._worker).name
        for name in self.configs:
            yield (topic, *encode_topic_status(name, "t", 0, 1))


def worker_properties(bootstrap: str, group: str, rest: str) -> Mapping[str, str]:
    """Return the properties of a Sluiceway worker, also those of the Kafka Connect worker of the same cluster."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "listeners": rest,
        **{f"{store}.storage.topic": f"{group}-{store}" for store in ("config", "offset", "status")},
        **{f"{store}.storage.replication.factor": "1" for store in ("config", "offset", "status")},
        **{f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")},
        "offset.storage.partitions": "5",
    }


def _without_class(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if key != "connector.class"}
