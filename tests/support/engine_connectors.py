"""Connectors for the engine's tests, named in configs as ``support.engine_connectors.Scripted...Connector``.

A test sets a script under the connector's name: a source's items are what ``poll`` returns or raises, one after the other,
and then nothing; a sink's are what ``put`` raises (None: it takes the records).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sluiceway.api import SinkConnector, SinkRecord, SinkTask, SourceConnector, SourceRecord, SourceTask, TopicPartition
from sluiceway.config.definition import ConfigDef

SOURCE = "support.engine_connectors.ScriptedSourceConnector"
ACKNOWLEDGED_SOURCE = "support.engine_connectors.AcknowledgedSourceConnector"
SINK = "support.engine_connectors.ScriptedSinkConnector"


@dataclass
class Script:
    """What a connector's tasks are to do, and what they did."""

    steps: list[Any] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    taken: list[SinkRecord] = field(default_factory=list)
    pre_commit: Any = None
    on_put: Any = None
    on_open: Any = None
    on_start: Any = None
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
