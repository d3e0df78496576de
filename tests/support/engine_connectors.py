"""Scripted connectors for tests of tasks, in configs ``support.engine_connectors.Scripted...Connector``.

A test sets a script under the connector's name: for a source, the results or errors of its ``poll`` calls, then None; for a
sink, the errors of its ``put`` calls (None: the records are accepted).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sluiceway.api import (
    Offset,
    Partition,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
)
from sluiceway.config.definition import ConfigDef

SOURCE = "support.engine_connectors.ScriptedSourceConnector"
ACKNOWLEDGED_SOURCE = "support.engine_connectors.AcknowledgedSourceConnector"
SINK = "support.engine_connectors.ScriptedSinkConnector"


@dataclass
class Script:
    """The results of a task's calls, and a record of the calls."""

    steps: list[Any] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    taken: list[SinkRecord] = field(default_factory=list)
    pre_commit: Any = None
    on_put: Any = None
    on_open: Any = None
    on_start: Any = None
    idle: Any = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    by_name: ClassVar[dict[str, Script]] = {}

    def names(self) -> list[str]:
        with self.lock:
            return [call[0] for call in self.calls]

    def did(self, *call: Any) -> None:
        with self.lock:
            self.calls.append(call)

    def step(self) -> Any:
        with self.lock:
            return self.steps.pop(0) if self.steps else None


def script(name: str, *steps: Any, **settings: Any) -> Script:
    """Set and return the script of the connector of this name."""
    Script.by_name[name] = Script(list(steps), **settings)
    return Script.by_name[name]


class ScriptedSourceTask(SourceTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.script = Script.by_name[config["name"]]
        self.script.did("start")
        if self.script.on_start is not None:
            self.script.on_start(self)

    def poll(self) -> Sequence[SourceRecord] | None:
        step = self.script.step()
        if isinstance(step, Exception):
            raise step
        if step is None:
            time.sleep(0.01)
        return step

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset]]:
        return self.script.idle

    def commit(self) -> None:
        self.script.did("commit")

    def stop(self) -> None:
        self.script.did("stop")


class AcknowledgedSourceTask(ScriptedSourceTask):
    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        self.script.did("commit_record", record.value, partition, offset)


class ScriptedSinkTask(SinkTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.script = Script.by_name[config["name"]]
        self.script.did("start")

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.script.did("open", frozenset(partitions))
        if self.script.on_open is not None:
            self.script.on_open(self, partitions)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.script.did("close", frozenset(partitions))

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records:
            self.script.did("put", [record.kafka_offset for record in records])
            step = self.script.step()
            if isinstance(step, Exception):
                raise step
            with self.script.lock:
                self.script.taken += records
        if self.script.on_put is not None:
            self.script.on_put(self, records)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self.script.did("pre_commit", dict(offsets))
        return offsets if self.script.pre_commit is None else self.script.pre_commit(offsets)

    def stop(self) -> None:
        self.script.did("stop")


class ScriptedSourceConnector(SourceConnector):
    task_class = ScriptedSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def start(self, config: Mapping[str, str]) -> None: ...

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return []


class AcknowledgedSourceConnector(ScriptedSourceConnector):
    task_class = AcknowledgedSourceTask


class ScriptedSinkConnector(SinkConnector):
    task_class = ScriptedSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def start(self, config: Mapping[str, str]) -> None: ...

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return []


def scripted_sink(name: str, topic: str, **more: str) -> dict[str, str]:
    return {"name": name, "connector.class": SINK, "topics": topic, **dotted(more)}


def dotted(settings: dict[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in settings.items()}


def file_source(name: str, topic: str, file: Path, **more: str) -> dict[str, str]:
    """Return the config of a FileStreamSource; keyword arguments have underscores for dots."""
    return {"name": name, "connector.class": "FileStreamSource", "file": str(file), "topic": topic, **dotted(more)}


def file_sink(name: str, topic: str, file: Path, **more: str) -> dict[str, str]:
    """Return the config of a FileStreamSink; keyword arguments have underscores for dots."""
    return {"name": name, "connector.class": "FileStreamSink", "file": str(file), "topics": topic, **dotted(more)}


def lines(file: Path) -> list[str]:
    """Return the lines of a file, none while it does not exist."""
    return file.read_text().splitlines() if file.exists() else []
