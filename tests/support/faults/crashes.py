"""Verifiable connectors whose processes are killed at a named point. Drivers find them by the fixture ``own_connectors``."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from sluiceway.api import SinkRecord, SourceRecord, TopicPartition
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.connectors.verifiable.sink import VerifiableSinkConnector, VerifiableSinkTask
from sluiceway.connectors.verifiable.source import VerifiableSourceConnector, VerifiableSourceTask

CRASHING_SOURCE = "support.faults.crashes.CrashingSourceConnector"
CRASHING_SINK = "support.faults.crashes.CrashingSinkConnector"
CRASH_FILE = "crash.file"

_CRASH_FILE = ConfigKey(name=CRASH_FILE, type=Type.STRING, importance=Importance.HIGH)


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

    def at(self, point: Point) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self._file.read_text() == point.name:
                self._file.unlink()
                _kill_all()


def _kill_all() -> None:
    """Kill the JVM, the Python driver and the workers with SIGKILL, this process last."""
    own = psutil.Process()
    jvm = next(each for each in own.parents() if each.name() == "java")
    for process in [jvm, *(each for each in jvm.children(recursive=True) if each != own), own]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


class CrashingSourceTask(VerifiableSourceTask):
    _sent = False

    def start(self, config: Mapping[str, str]) -> None:
        self._crash = Crash(config)
        super().start(config)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._sent:
            self._crash.at(Point.SENT)
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
        return super().config_def().define(_CRASH_FILE)


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

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        super().flush(offsets)
        self._crash.at(Point.FLUSHED)


class CrashingSinkConnector(VerifiableSinkConnector):
    task_class = CrashingSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return super().config_def().define(_CRASH_FILE)
