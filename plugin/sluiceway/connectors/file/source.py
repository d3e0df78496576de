"""FileStreamSourceConnector and its task: produce a record for each line of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.api import (
    Column,
    ColumnBatch,
    ExactlyOnceSupport,
    Offset,
    OffsetTarget,
    Partition,
    SourceColumns,
    SourceConnector,
    SourceLag,
    SourceRecord,
    SourceTask,
)
from sluiceway.config.definition import ConfigDef
from sluiceway.config.environment import STANDARD_INPUT
from sluiceway.connectors.file import config as keys
from sluiceway.connectors.file.changes import FileWatch
from sluiceway.connectors.file.lines import Lines
from sluiceway.connectors.file.positions import find_position
from sluiceway.connectors.file.tail import EmptyTail, FileTail, StreamTail, Tail
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import BadRequestError, ConnectError

if TYPE_CHECKING:
    import pyarrow as pa


FILENAME_FIELD = "filename"
POSITION_FIELD = "position"

_RETRY_SECONDS = 0.05
_ATTEMPTS = 4
_WATCHED_SECONDS = 1.0  # after which a watched file is read anyway: not every file system announces every change
_FEWEST_BYTES_FOR_COLUMNS = 1 << 15


class FileStreamSourceTask(SourceTask):
    """Reads lines as they are appended. The source offset ``{"position": n}`` is a number of bytes."""

    _tail: Tail = EmptyTail()
    _watch: FileWatch | None = None

    def start(self, config: Mapping[str, str]) -> None:
        values = keys.SOURCE.parse(config)
        file = None if values[keys.FILE] is None else str(values[keys.FILE])
        self._topic = str(values[keys.TOPIC])
        self._batch_size = max(1, int(str(values[keys.BATCH_SIZE])))
        self._partition = {FILENAME_FIELD: file}
        self._lines: Sequence[tuple[str, int]] = ()
        self._rest = Lines(b"", 0)  # what poll_columns has not returned yet
        self._has_positions = file is not None
        if file is None:
            self._tail = open_standard_input()
        else:
            self._tail = FileTail(Path(file), self._stored_position(), self.context.waiting)
            self._watch = FileWatch(Path(file), self.context.wake)

    def _stored_position(self) -> int:
        """Return the stored position in bytes, 0 if none is stored."""
        offset = self.context.offset_storage_reader.offset(self._partition)
        position = None if offset is None else offset.get(POSITION_FIELD)
        if position is None:
            return 0
        if type(position) is not int or position < 0:
            raise ConnectError(
                f"The stored offset of {self._partition} has the position {position!r}, not a number of bytes. "
                "Correct it with PATCH /connectors/<name>/offsets, or DELETE it to read from the start."
            )
        return position

    def poll(self) -> Sequence[SourceRecord] | None:
        lines = self._lines or self._next_lines().split()
        if not lines:
            return None
        self._lines, lines = lines[self._batch_size :], lines[: self._batch_size]
        return self._records(lines)

    def poll_columns(self) -> SourceColumns | Sequence[SourceRecord] | None:
        if self._lines or not self._has_positions:
            return self.poll()
        lines = self._next_lines()
        if not lines.raw:
            return None
        if len(lines.raw) >= _FEWEST_BYTES_FOR_COLUMNS:
            from sluiceway.connectors.file.columns import split_columns  # loads Arrow

            columns = split_columns(lines, self._batch_size)
            if columns is not None:
                taken, self._rest, values = columns
                return self._columns(taken, values)
        self._rest = lines
        return self.poll()

    def _columns(self, lines: Lines, values: pa.StringArray) -> SourceColumns:
        batch = ColumnBatch(
            topic=self._topic, partition=None, key=Column(None, None), value=Column(STRING_SCHEMA, values), count=len(values)
        )
        return SourceColumns(
            batch=batch,
            source_partition=self._partition,
            source_offset={POSITION_FIELD: lines.start + len(lines.raw)},
            records=lambda: self._records(lines.split()),
        )

    def _records(self, lines: Sequence[tuple[str, int]]) -> list[SourceRecord]:
        partition, topic = self._partition, self._topic
        if not self._has_positions:
            return [SourceRecord(partition, {POSITION_FIELD: None}, topic, line, STRING_SCHEMA) for line, _ in lines]
        return [SourceRecord(partition, {POSITION_FIELD: position}, topic, line, STRING_SCHEMA) for line, position in lines]

    def _next_lines(self) -> Lines:
        """Read, and wait for new lines if there are none. Lines are found at once where changes are announced, else soon."""
        if self._rest.raw:
            rest, self._rest = self._rest, Lines(b"", 0)
            return rest
        lines = self._tail.read()
        if lines.raw:
            return lines
        if self._watch is not None and self._watch.arm():
            return self._next_watched_lines(self._watch)
        for _ in range(_ATTEMPTS):
            self.context.wait(_RETRY_SECONDS)
            lines = self._tail.read()
            if lines.raw:
                break
        return lines

    def _next_watched_lines(self, watch: FileWatch) -> Lines:
        lines = self._tail.read()  # what was written before the watch began
        if not lines.raw:
            self.context.wait(_WATCHED_SECONDS)
            lines = self._tail.read()
            watch.looked(found=bool(lines.raw))
        return lines

    def metrics(self) -> Mapping[str, float]:
        return {"generations-lost": self._tail.generations_lost} if isinstance(self._tail, FileTail) else {}

    def source_lag(self) -> SourceLag:
        tail = self._tail
        return SourceLag(*tail.lag()) if isinstance(tail, FileTail) else SourceLag()

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._tail.close()


class FileStreamSourceConnector(SourceConnector):
    """Follows one file (or standard input) with one task, regardless of ``tasks.max``. It knows the file by its path and a
    position only, as Kafka Connect's does: use FolderSource for a log that is rotated.
    """

    task_class = FileStreamSourceTask
    java_class = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    java_task_class = "org.apache.kafka.connect.file.FileStreamSourceTask"
    interval_by_timestamp = False

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.SOURCE

    def start(self, config: Mapping[str, str]) -> None:
        keys.SOURCE.parse(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # After a restart, a position in standard input has no meaning.
        return ExactlyOnceSupport.SUPPORTED if config.get(keys.FILE) is not None else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        if config.get(keys.FILE) is None:
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified: standard input has no offsets."
            )
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True

    def find_offsets(
        self, config: Mapping[str, str], target: OffsetTarget, offsets: Sequence[tuple[Partition, Offset]]
    ) -> Sequence[tuple[Partition, Offset | None]]:
        file = config.get(keys.FILE)
        if file is None:
            raise BadRequestError("Without the key 'file' the connector reads standard input, which has no offsets.")
        partition = {FILENAME_FIELD: file}
        stored = next((offset.get(POSITION_FIELD) for each, offset in offsets if each == partition), None)
        return [(partition, {POSITION_FIELD: find_position(Path(file), target, stored)})]


def check_offset(partition: Partition | None, offset: Offset | None) -> None:
    """Raise ConnectError, with Connect's messages, for an offset that no task can start from. None deletes the offset."""
    if offset is None:
        return
    if POSITION_FIELD not in offset:
        raise ConnectError(f"Offset objects should either be null or contain the key '{POSITION_FIELD}'")
    position = offset[POSITION_FIELD]
    if type(position) is not int:
        raise ConnectError(f"The value for the '{POSITION_FIELD}' key in the offset is expected to be a Long value")
    if position < 0:
        raise ConnectError(f"The value for the '{POSITION_FIELD}' key in the offset should be a non-negative value")
    if partition is None:
        raise ConnectError("Partition objects cannot be null")
    if FILENAME_FIELD not in partition:
        raise ConnectError(f"Partition objects should contain the key '{FILENAME_FIELD}'")


def open_standard_input() -> StreamTail:
    """Return a reader of standard input. Raises ConnectError where a task has none, as on executors of a cluster."""
    if pipe := os.environ.get(STANDARD_INPUT):
        return StreamTail(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), owned=True)
    descriptor = sys.stdin.fileno()
    if os.fstat(descriptor).st_rdev == os.stat(os.devnull).st_rdev:  # noqa: PTH116 (compared with a descriptor's)
        raise ConnectError(
            "Without the key 'file' the connector reads standard input, which a task on Spark does not have. "
            "Set 'file', or run the connector with 'sluiceway standalone'."
        )
    return StreamTail(descriptor)
