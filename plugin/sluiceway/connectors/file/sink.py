"""FileStreamSink: each record's value becomes a line of a file."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from sluiceway.api import SinkConnector, SinkRecord, SinkTask, TopicPartition
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import java_text
from sluiceway.errors import ConnectError

FILE = "file"

CONFIG = ConfigDef(
    [
        ConfigKey(
            name=FILE,
            type=Type.STRING,
            default=None,
            importance=Importance.HIGH,
            doc="Path of the file to append to; without one, records go to standard output.",
        ),
    ]
)


class FileStreamSinkTask(SinkTask):
    """Appends lines; they are in the file when ``put`` returns, and on the disk after ``flush``."""

    _path: Path | None = None
    _file: IO[bytes] | None = None

    def start(self, config: Mapping[str, str]) -> None:
        file = CONFIG.parse(config)[FILE]
        if file is None:
            self._file = sys.stdout.buffer
        else:
            self._path = Path(str(file))
            self._file = _append_to(self._path)

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        values = [record.value for record in records]
        values.append("")  # a line end behind the last one, too
        try:
            text = "\n".join(values)
        except TypeError:  # not all are texts
            text = "\n".join(map(java_text, values))
        file = self._current_file()
        file.write(text.encode("utf-8", "replace"))
        file.flush()

    def _current_file(self) -> IO[bytes]:
        """Return the open file; one that was removed or replaced meanwhile is opened anew, so that lines are not lost."""
        assert self._file is not None  # noqa: S101 (start opened it)
        if self._path is not None and not _is_at(self._file, self._path):
            self._file.close()
            self._file = _append_to(self._path)
        return self._file

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._file is None:
            return
        self._file.flush()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, None):  # pipes and terminals have no disk
                raise

    def stop(self) -> None:
        if self._file is not None and self._path is not None:
            self._file.close()


class FileStreamSinkConnector(SinkConnector):
    """Appends the records of its topics to one file (or standard output)."""

    task_class = FileStreamSinkTask
    java_class = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    java_task_class = "org.apache.kafka.connect.file.FileStreamSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    def start(self, config: Mapping[str, str]) -> None:
        CONFIG.parse(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        return True  # lines that were written are not taken back


def _append_to(path: Path) -> IO[bytes]:
    try:
        return path.open("ab")
    except OSError as error:
        raise ConnectError(f"Couldn't find or create file '{path}' for FileStreamSinkTask: {error.strerror}") from error


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Whether ``path`` still names the open file."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(file.fileno())
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
