"""Verifiable connectors whose processes are killed at a named point. Drivers find them by the fixture ``own_connectors``."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.api import TopicPartition as ConnectTopicPartition
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.connectors.verifiable.sink import VerifiableSinkConnector, VerifiableSinkTask
from sluiceway.connectors.verifiable.source import VerifiableSourceConnector, VerifiableSourceTask
from support.eventually import LIMIT

CRASHING_SOURCE = "support.faults.crashes.CrashingSourceConnector"
CRASHING_SINK = "support.faults.crashes.CrashingSinkConnector"
CRASH_FILE = "crash.file"
CRASH_BOOTSTRAP = "crash.bootstrap"

_CRASH_FILE = ConfigKey(name=CRASH_FILE, type=Type.STRING, importance=Importance.HIGH)
_CRASH_BOOTSTRAP = ConfigKey(name=CRASH_BOOTSTRAP, type=Type.STRING, importance=Importance.LOW, default="")


class Point(enum.Enum):
    """The point in the processing of a batch at which all processes are killed."""

    POLLED = "polled, nothing of it written"
    SENT = "sent, its offset not"
    ACKNOWLEDGED = "acknowledged, its offset not stored"
    COMMITTED = "committed with its offset"
    GIVEN = "given to put"
    PUT = "put, not flushed"
    FLUSHED = "flushed, its offset not committed"


class Crash:
    """Kills all processes of this process's driver once, at the point whose name the test writes to a file."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._file = Path(config[CRASH_FILE])

    def at(self, point: Point, when: Callable[[], bool] = lambda: True) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self._file.read_text() == point.name and when():
                self._file.unlink()
                _kill_all()


def _in_open_transaction(address: str, topic: str) -> bool:
    """Return True if the broker has records of an open transaction, which the producer sends a few milliseconds after a poll."""
    admin = AdminClient({"bootstrap.servers": address})
    partition = TopicPartition(topic, 0)
    ends = [
        admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=level)[partition].result(LIMIT).offset
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    ]
    return ends[0] < ends[1]


def _kill_all() -> None:
    """Kill the JVM, the Python driver and the workers with SIGKILL, this process last."""
    own = psutil.Process()
    jvm = next(each for each in own.parents() if each.name() == "java")
    for process in [jvm, *(each for each in jvm.children(recursive=True) if each != own), own]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


class CrashingSourceTask(VerifiableSourceTask):
    """Dies at a point. With ``crash.bootstrap``, a batch counts as sent once it is in the broker, in an open transaction."""

    _sent = False

    def start(self, config: Mapping[str, str]) -> None:
        self._crash = Crash(config)
        self._bootstrap, self._topic = config.get(CRASH_BOOTSTRAP), config["topic"]
        super().start(config)

    def _has_arrived(self) -> bool:
        return not self._bootstrap or _in_open_transaction(self._bootstrap, self._topic)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._sent:
            self._crash.at(Point.SENT, self._has_arrived)
        records = super().poll()
        self._sent = bool(records)
        if records:
            self._crash.at(Point.POLLED)
        return records

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        self._crash.at(Point.ACKNOWLEDGED)

    def commit(self) -> None:
        self._crash.at(Point.COMMITTED)


class CrashingSourceConnector(VerifiableSourceConnector):
    task_class = CrashingSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return super().config_def().define(_CRASH_FILE).define(_CRASH_BOOTSTRAP)


class CrashingSinkTask(VerifiableSinkTask):
    def start(self, config: Mapping[str, str]) -> None:
        self._crash = Crash(config)
        super().start(config)

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records:
            self._crash.at(Point.GIVEN)
        super().put(records)
        if records:
            self._crash.at(Point.PUT)

    def flush(self, offsets: Mapping[ConnectTopicPartition, int]) -> None:
        super().flush(offsets)
        self._crash.at(Point.FLUSHED)


class CrashingSinkConnector(VerifiableSinkConnector):
    task_class = CrashingSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return super().config_def().define(_CRASH_FILE)
