"""FileStreamSinkConnector and its task: append the value of each record as a line to a file."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sluiceway.api import ColumnBatch, NotColumnar, RowFormReason, SinkConnector, SinkRecord, SinkTask, TopicPartition
from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.file import config as keys
from sluiceway.data import Type, java_text
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import pyarrow as pa


class FileStreamSinkTask(SinkTask):
    """Appends lines. They are in the file when ``put`` returns and on the disk when ``flush`` returns."""

    takes_columns = takes_schemaless_columns = True

    _path: Path | None = None
    _file: IO[bytes] | None = None
    _unflushed = False

    def start(self, config: Mapping[str, str]) -> None:
        file = keys.SINK.parse(config)[keys.FILE]
        if file is None:
            self._file = sys.stdout.buffer
        else:
            self._path = Path(str(file))
            self._file = _append_to(self._path)

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        self._write(_lines([record.value for record in records]))

    def put_columns(self, batch: ColumnBatch) -> None:
        schema, values, objects = batch.value
        if objects is not None:
            self._write(_lines(objects))
            return
        if schema is None or values is None or schema.type not in (Type.STRING, Type.STRUCT):
            raise NotColumnar(f"lines of {schema}", RowFormReason.TASK)
        from sluiceway.columns.text import java_texts, lines  # loads Arrow

        self._write(lines(java_texts(schema, values)))

    def _write(self, data: bytes | pa.Buffer) -> None:
        self._file = file = self._reopened()
        file.write(data)
        file.flush()
        self._unflushed = True

    def _reopened(self) -> IO[bytes]:
        """Return the file, opened again if it was deleted or replaced: lines written to a deleted file would be lost."""
        if self._path is None:
            return sys.stdout.buffer
        if self._file is not None and _is_same_file(self._file, self._path):
            return self._file
        if self._file is not None:
            self._file.close()
        return _append_to(self._path)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._file is None or not self._unflushed:  # an idle task's file is on the disk
            return
        self._file.flush()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, None):  # pipes and terminals have no disk
                raise
        self._unflushed = False

    def stop(self) -> None:
        if self._file is not None and self._path is not None:
            self._file.close()


class FileStreamSinkConnector(SinkConnector):
    """Appends the records of its topics to one file (or to standard output)."""

    task_class = FileStreamSinkTask
    java_class = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    java_task_class = "org.apache.kafka.connect.file.FileStreamSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.SINK

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str]:
        file = keys.SINK.parse(config)[keys.FILE]
        return [f"{'standard output' if file is None else file}: {java_text(record.value)}" for record in records]

    def start(self, config: Mapping[str, str]) -> None:
        keys.SINK.parse(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        return True  # any offset is valid, since writing does not depend on it


def _lines(values: Sequence[Any]) -> bytes:
    lines = [*values, ""]  # so that the last line ends with a line feed, too
    try:
        text = "\n".join(lines)
    except TypeError:  # not all values are strings
        text = "\n".join(map(java_text, lines))
    return text.encode("utf-8", "replace")


def _append_to(path: Path) -> IO[bytes]:
    try:
        return path.open("ab")
    except OSError as error:
        raise ConnectError(f"Couldn't find or create file '{path}' for FileStreamSinkTask: {error.strerror}") from error


def _is_same_file(file: IO[bytes], path: Path) -> bool:
    """Return True if ``path`` still names the open file."""
    try:
        current = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(current, os.fstat(file.fileno()))
