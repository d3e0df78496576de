"""Connectors for tests of previews, in configs ``support.preview_connectors.OddSourceConnector``.

The key ``behavior`` says what the source does; ``trace`` is a file to which it appends the calls that a preview must not make.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from sluiceway.api import SinkConnector, SinkRecord, SinkTask, SourceConnector, SourceRecord, SourceTask
from sluiceway.api.task import SourceTaskContext
from sluiceway.config.definition import ConfigDef
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.java_plugins.source_task import JavaSourceTask

SOURCE = "support.preview_connectors.OddSourceConnector"
SINK = "support.preview_connectors.OddSinkConnector"
PARTITION = {"from": "here"}


def numbered(first: int, count: int = 5) -> list[SourceRecord]:
    """Return records with the values n1, n2, ..., and their numbers as offsets."""
    return [SourceRecord(PARTITION, {"n": n}, "odd", f"n{n}", STRING_SCHEMA) for n in range(first, first + count)]


class OddSourceTask(SourceTask):
    def start(self, config: Mapping[str, str]) -> None:
        self._behavior = config.get("behavior", "")
        self._trace = Path(config["trace"]) if "trace" in config else None
        self._secret = config.get("secret", "")
        offset = self.context.offset_storage_reader.offset(PARTITION)
        self._next = 1 if offset is None else int(offset["n"]) + 1

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._behavior == "hang" and self._next > 1:
            threading.Event().wait()
        if self._behavior == "print and crash":
            print("not JSON", flush=True)
            if self._next > 1:
                os.kill(os.getpid(), signal.SIGSEGV)
        if self._behavior == "nothing":
            return None
        if self._behavior == "write":
            self._did("poll")
        if self._behavior == "tell":
            raise ConnectError(f"the secret is {self._secret}")
        if self._behavior == "environment":
            shown = [f"{name}={value}" for name, value in os.environ.items()]
            return [SourceRecord(PARTITION, {"n": 1}, "odd", text, STRING_SCHEMA) for text in shown]
        if self._behavior == "retry" and self._next == 1:
            self._next = 2
            raise RetriableError("away")
        if self._behavior == "huge":
            return [SourceRecord(PARTITION, {"n": 1}, "odd", "x" * 1_000_000, STRING_SCHEMA)]
        records = numbered(self._next)
        self._next += len(records)
        return records

    def commit(self) -> None:
        self._did("commit")

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        self._did("commit_record")

    def stop(self) -> None:
        if self._behavior == "bad stop":
            raise ConnectError("cannot stop")

    def _did(self, call: str) -> None:
        if self._trace is not None:
            with self._trace.open("a") as file:
                file.write(f"{call}\n")


class OddSourceConnector(SourceConnector):
    task_class: ClassVar[type[SourceTask]] = OddSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([])

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it turns the lights off" if config.get("behavior", "").startswith("effects") else ""

    @classmethod
    def preview(cls, context: SourceTaskContext, most: int) -> Sequence[SourceRecord] | None:
        return numbered(100) if context.configs.get("behavior") == "effects with preview" else None

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)
        if config.get("behavior", "").startswith("effects"):
            raise AssertionError("A preview has started a connector with effects.")
        if config.get("behavior") == "bad start":
            raise ConnectError(f"cannot start with {config['secret']}")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [] if self._config.get("behavior") == "no tasks" else [self._config] * max_tasks


class OddJavaConnector(OddSourceConnector):
    task_class = JavaSourceTask


class OddSinkTask(SinkTask):
    def start(self, config: Mapping[str, str]) -> None:
        raise AssertionError("A preview has started a sink's task.")

    def put(self, records: Sequence[SinkRecord]) -> None:
        raise AssertionError("A preview has put records.")


class OddSinkConnector(SinkConnector):
    task_class = OddSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([])

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str] | None:
        if config.get("behavior") == "bad preview":
            raise ConnectError("cannot tell")
        return [f"row {record.value}" for record in records] if config.get("behavior") == "tells" else None

    def start(self, config: Mapping[str, str]) -> None:
        raise AssertionError("A preview has started a sink.")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return []
