"""FileStreamSource: each line of a file becomes a record."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyString
from sluiceway.connectors.file.positions import FILENAME_FIELD, POSITION_FIELD, check_offset
from sluiceway.connectors.file.tail import FileTail, StreamTail, Tail
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConnectError

FILE = "file"
TOPIC = "topic"
BATCH_SIZE = "batch.size"

_LOOK_SECONDS = 0.05
_LOOKS = 4

CONFIG = ConfigDef(
    [
        ConfigKey(
            name=FILE,
            type=Type.STRING,
            default=None,
            importance=Importance.HIGH,
            doc="Path of the file to follow; without one, lines come from standard input.",
        ),
        ConfigKey(
            name=TOPIC,
            type=Type.STRING,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            doc="Where the lines go: a topic's name.",
        ),
        ConfigKey(
            name=BATCH_SIZE, type=Type.INT, default=2000, importance=Importance.LOW, doc="Most lines that one poll returns."
        ),
    ]
)


class FileStreamSourceTask(SourceTask):
    """Reads lines as they are appended. Offsets are ``{"position": bytes}`` of the partition ``{"filename": file}``."""

    _tail: Tail | None = None

    def start(self, config: Mapping[str, str]) -> None:
        values = CONFIG.parse(config)
        file = None if values[FILE] is None else str(values[FILE])
        self._topic = str(values[TOPIC])
        self._batch_size = max(1, int(str(values[BATCH_SIZE])))
        self._partition = {FILENAME_FIELD: file}
        self._lines: Sequence[tuple[str, int | None]] = ()
        if file is None:
            self._tail = StreamTail(sys.stdin.fileno())
        else:
            self._tail = FileTail(Path(file), self._stored_position())

    def _stored_position(self) -> int:
        """Return the position to go on from, 0 if none is stored."""
        offset = self.context.offset_storage_reader.offset(self._partition)
        position = None if offset is None else offset.get(POSITION_FIELD)
        if position is None:
            return 0
        if type(position) is not int or position < 0:
            raise ConnectError(
                f"The stored offset of {self._partition} has the position {position!r}, not a count of bytes. "
                "Set it right by PATCH /connectors/<name>/offsets, or DELETE it to read from the start."
            )
        return position

    def poll(self) -> Sequence[SourceRecord] | None:
        lines = self._lines or self._wait_for_lines()
        if not lines:
            return None
        self._lines, lines = lines[self._batch_size :], lines[: self._batch_size]
        partition, topic = self._partition, self._topic
        return [SourceRecord(partition, {POSITION_FIELD: position}, topic, line, STRING_SCHEMA) for line, position in lines]

    def _wait_for_lines(self) -> Sequence[tuple[str, int | None]]:
        """Look several times in a short while, so that an appended line is found soon and nothing spins."""
        assert self._tail is not None  # noqa: S101 (start made it)
        for look in range(_LOOKS):
            if look:
                time.sleep(_LOOK_SECONDS)
            if lines := self._tail.read():
                return lines
        time.sleep(_LOOK_SECONDS)
        return ()

    def stop(self) -> None:
        if self._tail is not None:
            self._tail.close()


class FileStreamSourceConnector(SourceConnector):
    """Follows one file (or standard input) with one task, whatever ``tasks.max`` says."""

    task_class = FileStreamSourceTask
    java_class = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    java_task_class = "org.apache.kafka.connect.file.FileStreamSourceTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    def start(self, config: Mapping[str, str]) -> None:
        CONFIG.parse(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # A position in standard input means nothing to the next process.
        return ExactlyOnceSupport.SUPPORTED if config.get(FILE) is not None else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        if config.get(FILE) is None:
            raise ConnectError("Offsets cannot be modified if the 'file' configuration is unspecified: standard input has none.")
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True
