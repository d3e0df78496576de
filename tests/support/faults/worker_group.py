"""A worker group with drivers and connectors on a faulty broker, and the verdict about their records."""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.config.worker import WorkerConfig
from sluiceway.connectors.verifiable.checker import Verdict, check
from sluiceway.connectors.verifiable.numbering import NumberedRecord, TopicRecord, from_topic, task_and_seqno
from sluiceway.herder import Herder
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import State
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import LIMIT, eventually
from support.faults.processes import Role, send

SOURCE = "sluiceway.connectors.verifiable.source.VerifiableSourceConnector"
SINK = "sluiceway.connectors.verifiable.sink.VerifiableSinkConnector"

RATE = 500  # records per second
POLL = 50  # records per poll
FLUSH_SECONDS = 1.0
#: The maximum of records that one fault may repeat: one commit interval's, a second's that the throttle catches up with, and
#: those of a slow commit on a busy machine.
BATCH = int(RATE * (FLUSH_SECONDS + 1.5))

_READ_SECONDS = 60.0
_numbers = itertools.count(1)
_quiet = logging.getLogger("faults.progress")  # the test makes its broker unavailable
_quiet.setLevel(logging.CRITICAL)


NumberOf = Callable[["bytes | None", "bytes | None"], int]
"""Returns the number in a record's key and value."""


class Progress:
    """Follows the numbers of the only task that writes to a topic, in a thread, so that a test can wait for higher ones.

    ``number_of`` extracts a record's number, by default a verifiable source's.
    """

    def __init__(self, address: str, topic: str, number_of: NumberOf = lambda key, value: task_and_seqno(key, value)[1]) -> None:
        self.highest = -1
        self._number_of = number_of
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": uuid.uuid4().hex,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            },
            logger=_quiet,
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self._thread = threading.Thread(target=self._run, name=f"progress-{topic}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(1000, 0.2):
                if message.error() is None:
                    self.highest = max(self.highest, self._number_of(message.key(), message.value()))
        self._consumer.close()

    def more(self, records: int, within: float = LIMIT, driver: BackgroundProcess | None = None) -> float:
        """Wait for ``records`` more records, not counting repeated ones; return the seconds that this took.

        Fails if ``driver`` ends.
        """
        started, before = time.monotonic(), self.highest
        source = "" if driver is None else f" of {driver.log}"

        def arrived() -> bool:
            assert driver is None or driver.is_running(), f"{driver.name} has ended\n{driver.log_tail(30)}"
            return self.highest >= before + records

        eventually(arrived, within=within, what=f"{records} more records{source}")
        return time.monotonic() - started

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)


@dataclass(slots=True)
class WorkerGroup:
    """A worker group, its herder, and its connectors' drivers."""

    address: str
    folder: Path
    worker: WorkerConfig
    worker_file: Path
    herder: Herder
    name: str
    drivers: list[BackgroundProcess]

    def source(self, **config: str) -> str:
        """Create a verifiable source with a topic of its own, and return the topic; keyword arguments are config keys."""
        topic = f"{self.name}-numbers"
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.create_topics([NewTopic(topic, 1, 1, config={"message.timestamp.type": "LogAppendTime"})])[topic].result(LIMIT)
        given = {key.replace("_", "."): value for key, value in config.items()}
        settings = {"connector.class": SOURCE, "topic": topic, "throughput": str(RATE), "batch.size": str(POLL), **given}
        self.herder.create(self.name, settings)
        return topic

    def sink(self, topic: str, file: Path, **config: str) -> str:
        """Create a verifiable sink from a topic to a file, and return its name."""
        name = f"{self.name}-sink"
        given = {key.replace("_", "."): value for key, value in config.items()}
        self.herder.create(name, {"connector.class": SINK, "topics": topic, "file": str(file), **given})
        return name

    def driver(self, connector: str | None = None, mode: str = "long-running", master: str = "local[2]") -> BackgroundProcess:
        """Start another driver of a connector (by default the source) in a folder of its own."""
        folder = self.folder / f"driver-{len(self.drivers)}"
        folder.mkdir()
        driver = submitted_driver(connector or self.name, self.worker_file, folder, master=master, mode=mode)
        self.drivers.append(driver)
        driver.start()
        return driver

    def batch(self, connector: str) -> BackgroundProcess:
        """Run a micro-batch of a connector, and return its driver."""
        driver = self.driver(connector, mode="micro-batch")
        self.ended(driver)
        return driver

    def drain(self, driver: BackgroundProcess) -> None:
        """Drain a driver with SIGTERM to the Python driver, as Airflow does; the JVM would not let tasks commit."""
        if driver.is_running():
            send(driver, Role.DRIVER, signal.SIGTERM)
            self.ended(driver)

    def ended(self, driver: BackgroundProcess, within: float = LIMIT) -> None:
        """Wait until a driver has ended."""
        eventually(lambda: not driver.is_running(), within=within, what=f"the end of {driver.log}")

    def failed(self, connector: str | None = None, within: float = LIMIT) -> str:
        """Wait until a connector or one of its tasks is FAILED, and return the traces."""

        def traces() -> str:
            status = self.herder.status(connector or self.name)
            failures = [each.trace or "" for each in (status.connector, *status.tasks.values()) if each.state is State.FAILED]
            return "\n".join(failures)

        return eventually(traces, within=within, what=f"FAILED, not {self.states(connector)}\n{self.drivers[-1].log_tail(30)}")

    def states(self, connector: str | None = None) -> tuple[str, list[str]]:
        status = self.herder.status(connector or self.name)
        return status.connector.state.value, [task.state.value for task in status.tasks.values()]

    def running(self, connector: str | None = None, within: float = LIMIT) -> None:
        """Wait until the connector and its task are RUNNING."""
        eventually(
            lambda: self.states(connector) == ("RUNNING", ["RUNNING"]),
            within=within,
            what=f"RUNNING, not {self.states(connector)}\n{self.drivers[-1].log_tail(30)}",
        )

    def verdict(self, topic: str) -> Verdict:
        """Check the topic's committed records against the source's stored offset."""
        sent = {int(str(partition["id"])): int(str(offset["seqno"])) for partition, offset in self.stored_offsets()}
        return check(self.seen(topic), sent=sent)

    def verdict_so_far(self, topic: str) -> Verdict:
        """Check the topic's committed records without the stored offset."""
        return check(self.seen(topic))

    def seen(self, topic: str, isolation: str = "read_committed") -> Iterator[NumberedRecord]:
        messages = read(self.address, topic, isolation)
        return from_topic(TopicRecord(topic, 0, message.key, message.value) for message in messages)

    def stored_offsets(self) -> list[tuple[Mapping[str, object], Mapping[str, object]]]:
        with open_stores(self.worker) as stores:
            return list(stores.offsets.all(self.name))


@contextlib.contextmanager
def worker_group(address: str, folder: Path, worker: Mapping[str, str] | None = None) -> Iterator[WorkerGroup]:
    """Yield a worker group with its own topics; at the end, stop its drivers, including frozen ones."""
    name = f"fault-{uuid.uuid4().hex[:6]}-{next(_numbers)}"
    folder = folder / name
    folder.mkdir(parents=True)
    json = {
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    flush = {"offset.flush.interval.ms": str(int(FLUSH_SECONDS * 1000))}
    properties = worker_properties(address, name, **{**flush, **json, **(worker or {})})
    file = write_properties(folder / "worker.properties", properties)
    settings = worker_of(properties)
    with open_stores(settings) as stores:
        herder = Herder(settings, stores.config, stores.status, stores.offsets)
        made = WorkerGroup(address, folder, settings, file, herder, name, [])
        try:
            yield made
        finally:
            for driver in made.drivers:
                driver.stop(10)


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """A committed record; ``appended`` is in milliseconds since the epoch."""

    key: bytes | None
    value: bytes | None
    appended: int


def read(address: str, topic: str, isolation: str = "read_committed") -> Iterator[TopicMessage]:
    """Read a topic with one partition from its first record to its current end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    deadline = time.monotonic() + _READ_SECONDS
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            for message in consumer.consume(5000, 0.5):
                error = message.error()
                if error is None:
                    yield TopicMessage(message.key(), message.value(), message.timestamp()[1])
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
            assert time.monotonic() < deadline, f"{topic} was not read to its end within {_READ_SECONDS:g} s"
    finally:
        consumer.close()
