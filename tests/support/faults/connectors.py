"""Connectors of the fault matrix. Drivers find them with tests/ on PYTHONPATH (the fixture ``own_connectors``)."""

from __future__ import annotations

import contextlib
import json
import pickle
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sluiceway.api import SinkConnector, SinkRecord, SinkTask, SourceConnector, SourceRecord, SourceTask, TopicPartition
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.connectors.verifiable.numbering import task_and_seqno
from sluiceway.connectors.verifiable.source import VerifiableSourceConnector, VerifiableSourceTask
from sluiceway.data import Headers
from sluiceway.errors import RetriableError
from support.faults.target import TAKEN

TCP_SINK = "support.faults.connectors.TcpSinkConnector"
FOLDER_SOURCE = "support.faults.connectors.FolderSourceConnector"
KEEPING_SINK = "support.faults.connectors.KeepingSinkConnector"
KEPT_SOURCE = "support.faults.connectors.KeptSourceConnector"

_PORT, _FOLDER, _FILE, _TOPIC = "port", "folder", "file", "topic"
_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 0.5


def _text(name: str, type_: Type = Type.STRING) -> ConfigKey:
    return ConfigKey(name=name, type=type_, importance=Importance.HIGH)


class TcpSinkTask(SinkTask):
    """Sends each batch to a ``Target``; all connection errors are retriable."""

    _connection: socket.socket | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._port = int(config[_PORT])

    def put(self, records: Sequence[SinkRecord]) -> None:
        rows = [[*task_and_seqno(each.key, each.value), each.original_topic, each.original_kafka_partition] for each in records]
        if not rows:
            return
        try:
            if self._connection is None:
                self._connection = socket.create_connection(("127.0.0.1", self._port), _ANSWER_SECONDS)
            self._connection.sendall(json.dumps(rows).encode() + b"\n")
            taken = self._connection.recv(len(TAKEN), socket.MSG_WAITALL) == TAKEN
        except OSError as error:
            self._hang_up()
            raise RetriableError(f"The target cannot be reached: {error}") from error
        if not taken:
            self._hang_up()
            raise RetriableError("The target went away before it took the batch.")

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Return the offsets: ``put`` returns only after the target has acknowledged."""

    def stop(self) -> None:
        self._hang_up()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class TcpSinkConnector(SinkConnector):
    task_class = TcpSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([_text(_PORT, Type.INT)])

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks


class FolderSourceTask(VerifiableSourceTask):
    """Appends its number to the file ``starts`` beside the folder when it starts."""

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        with (Path(config[_FOLDER]).parent / "starts").open("a") as file:
            file.write(f"{self.id}\n")


class FolderSourceConnector(VerifiableSourceConnector):
    """Has a task for each file in a folder; the files' names are task numbers, in the order of creation."""

    task_class = FolderSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return super().config_def().define(_text(_FOLDER))

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self._folder = Path(config[_FOLDER])
        self._stopping = threading.Event()
        self._known = self._inputs()
        threading.Thread(target=self._watch, name="folder", daemon=True).start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self._known = self._inputs()
        return [{**self._config, "id": name} for name in self._known[:max_tasks]]

    def stop(self) -> None:
        self._stopping.set()

    def _inputs(self) -> list[str]:
        return sorted(each.name for each in self._folder.iterdir())

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            if self._inputs() != self._known:
                self.context.request_task_reconfiguration()


class Kept(NamedTuple):
    """A record as a sink received it."""

    key: Any
    value: Any
    headers: Headers
    timestamp: int | None


def kept(path: Path) -> Iterator[Kept]:
    """Return the records that a ``KeepingSinkTask`` wrote to a file."""
    with path.open("rb") as file, contextlib.suppress(EOFError):
        while True:
            yield pickle.load(file)  # noqa: S301 (our own)


class KeepingSinkTask(SinkTask):
    """Writes converted records to a file for ``KeptSourceTask``."""

    def start(self, config: Mapping[str, str]) -> None:
        self._path = Path(config[_FILE])
        self._unflushed: list[SinkRecord] = []

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._unflushed += records

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._path.open("ab") as file:
            for each in self._unflushed:
                pickle.dump(Kept(each.key, each.value, tuple(each.headers), each.timestamp), file)
        self._unflushed.clear()


class KeepingSinkConnector(SinkConnector):
    task_class = KeepingSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([_text(_FILE)])

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]


class KeptSourceTask(SourceTask):
    """Returns the records of a ``KeepingSinkTask``'s file once."""

    def start(self, config: Mapping[str, str]) -> None:
        self._topic, self._path = config[_TOPIC], Path(config[_FILE])
        self._partition = {_FILE: str(self._path)}
        stored = self.context.offset_storage_reader.offset(self._partition)
        self._given = 0 if stored is None else int(stored["given"])

    def poll(self) -> Sequence[SourceRecord] | None:
        records = [
            SourceRecord(
                self._partition,
                {"given": number},
                self._topic,
                each.value,
                key=each.key,
                headers=each.headers,
                timestamp=each.timestamp,
            )
            for number, each in enumerate(kept(self._path), start=1)
            if number > self._given
        ]
        self._given += len(records)
        return records


class KeptSourceConnector(SourceConnector):
    task_class = KeptSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([_text(_FILE), _text(_TOPIC)])

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]
