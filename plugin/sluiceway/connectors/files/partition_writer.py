"""Writes the files of one topic partition and commits them. Runs on executors."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from sluiceway.api import TopicPartition
from sluiceway.connectors.files.commit_log import CommitLog, Entry, NewFile, TableFiles
from sluiceway.connectors.files.filesystem import FileSystem, Output, StorageError
from sluiceway.connectors.files.formats import FileWriter, Format
from sluiceway.connectors.files.formats.base import Piece
from sluiceway.connectors.files.hive.registrar import Registrar
from sluiceway.connectors.files.options import FileOptions
from sluiceway.connectors.files.rotation import Rotation
from sluiceway.connectors.path_elements import path_element
from sluiceway.data import Schema

log = logging.getLogger(__name__)

_MAX_OPEN_FILES = 200
_REPORT_SECONDS = 60.0


class FileKey(NamedTuple):
    """Identifies the open file of a record; ``schema`` is None if the format takes any."""

    topic: str
    folder: str
    schema: Schema | None


@dataclass(frozen=True, slots=True)
class Span:
    """The number of records in a piece, with the first and the last offset."""

    count: int
    first: int
    last: int


@dataclass(slots=True)
class _OpenFile:
    output: Output
    writer: FileWriter
    first: int
    last: int


class PartitionWriter:
    """The open files of a topic partition and its commit log. Not thread-safe.

    After StorageError, call ``discard`` and ``open``. ``position`` is the next offset to write; None if nothing is known yet.
    """

    def __init__(
        self,
        fs: FileSystem,
        options: FileOptions,
        file_format: Format,
        partition: TopicPartition,
        registrar: Registrar | None = None,
    ) -> None:
        self._fs = fs
        self._registrar = registrar
        self._unregistered: tuple[TableFiles, ...] = ()
        self._options = options
        self._format = file_format
        self._partition = partition
        self._log = CommitLog(fs, commit_folder(options, partition))
        self._entry: Entry | None = None
        self._files: dict[FileKey, _OpenFile] = {}
        self._reports: list[Future[None]] = []
        self._new = True
        self._start: int | None = None
        self.rotation = Rotation(options.limits)
        self.position: int | None = None

    def open(self) -> int | None:
        """Fence other writers and return the next offset to read; None if the consumer group decides. Raises StorageError."""
        self._entry = entry = self._log.claim()
        self._unregistered = entry.tables
        self._new = True
        self.position = entry.end if entry.end is not None else self._start
        return self.position

    def begins_at(self, offset: int) -> None:
        """Take the offset of the next record. If it was written already, the topic is another one: start a new epoch."""
        if not self._new:
            return
        self._new = False
        end = None if self._entry is None else self._entry.end
        if end is not None and offset < end:
            log.warning(
                "Records of %s-%d continue at offset %d, but files contain those before %d: the topic was created again, or "
                "its records were deleted. They are written as new records.",
                *self._partition,
                offset,
                end,
            )
            epoch = self._entry.epoch + 1 if self._entry else 1
            self._entry = self._log.append(self._entry, epoch=epoch, end=offset)
            self.position = offset
        if self.position is None:
            self.position = self._start = offset

    def write(self, key: FileKey, piece: Piece, span: Span) -> None:
        """Write a piece. Raises StorageError, and DataError if the format refuses the schema."""
        file = self._files.get(key)
        if file is None:
            output = self._fs.open(self._log.temporary())
            try:
                file = _OpenFile(output, self._format.open(output, key.topic, key.schema), span.first, span.last)
            except BaseException:
                output.abort()
                raise
            self._files[key] = file
        file.writer.write(piece)
        file.last = span.last

    def advance(self, offset: int) -> None:
        """Set the next offset to write, after all records before it were written, skipped or reported."""
        self.position = offset

    def reported(self, report: Future[None]) -> None:
        """Wait for the report of a bad record before the next commit."""
        self._reports.append(report)

    @property
    def pending(self) -> int:
        """The bytes that the open files keep in memory."""
        return sum(file.writer.pending for file in self._files.values())

    @property
    def buffered(self) -> int:
        """The bytes that the storage keeps in memory until an upload's part is complete."""
        return sum(file.output.buffered for file in self._files.values())

    def flush_largest(self) -> None:
        """Write the file that keeps the most in memory. Raises StorageError."""
        if self._files:
            max((file.writer for file in self._files.values()), key=lambda writer: writer.pending).flush()

    def due(self, now: int) -> bool:
        """Return whether the open files have to be committed."""
        largest = max((file.output.position for file in self._files.values()), default=0)
        return self.rotation.due(now, largest) or len(self._files) > _MAX_OPEN_FILES

    @property
    def safe_offset(self) -> int | None:
        """The next offset to read if the task ended now; None if it is not known."""
        if self._files or self._reports:
            return self._start if self._entry is None or self._entry.end is None else self._entry.end
        return self.position

    def register(self) -> None:
        """Register the files of the last commit in Hive, if that is not done. Raises MetastoreError and StorageError."""
        if self._registrar is not None and self._unregistered:
            self._registrar.register(self._fs, self._unregistered)
        self._unregistered = ()

    @property
    def registered(self) -> bool:
        """Whether the files of the last commit are registered in Hive, or need not be."""
        return self._registrar is None or not self._unregistered

    def commit(self) -> None:
        """Make the open files visible in one step, then register them. Raises StorageError, FencedError and MetastoreError.

        After MetastoreError the files are complete: only ``register`` has to be repeated.
        """
        self._wait_for_reports()
        if not self._files:
            self.rotation.reset()
            return
        assert self.position is not None  # noqa: S101 (records were written)
        new, tables = [], self._tables()
        for key, file in self._files.items():
            file.writer.close()
            file.output.finish()
            new.append(NewFile(file.output.path, self._path(key, file)))
        self._entry = entry = self._log.append(
            self._entry,
            epoch=self._entry.epoch if self._entry else 0,
            end=self.position,
            files=new,
            tables=tables,
        )
        self._files.clear()
        self.rotation.reset()
        self._log.publish(entry)
        log.info("Committed %d files of %s-%d up to offset %d", len(new), *self._partition, self.position)
        self._unregistered = entry.tables
        self.register()

    def _tables(self) -> list[TableFiles]:
        """Return what the open files add to Hive tables."""
        if self._registrar is None:
            return []
        folders: dict[tuple[str, Schema | None], list[str]] = {}
        for key in self._files:
            folders.setdefault((key.topic, key.schema), []).append(key.folder)
        return [self._registrar.files(topic, schema, found) for (topic, schema), found in folders.items()]

    def discard(self, *, delete: bool = True) -> None:
        """Drop the open files. Raises nothing; what is not deleted now is deleted when the partition is opened next."""
        for file in self._files.values():
            file.output.abort()
        try:
            for file in self._files.values() if delete else ():
                self._fs.delete(file.output.path)
        except StorageError as error:
            log.info("%s", error)
        self._files.clear()
        self.rotation.reset()
        self._reports.clear()

    def _path(self, key: FileKey, file: _OpenFile) -> str:
        names, epoch = self._options.names, self._entry.epoch if self._entry else 0
        name = names.name(self._partition.topic, self._partition.partition, file.first, file.last, self._format.extension, epoch)
        return f"{names.folder(key.topic, key.folder)}/{name}"

    def _wait_for_reports(self) -> None:
        for report in self._reports:
            report.result(_REPORT_SECONDS)
        self._reports.clear()


def commit_folder(options: FileOptions, partition: TopicPartition) -> str:
    """Return the folder of a topic partition's commit log."""
    return f"{connector_folder(options)}/{path_element(partition.topic)}/{partition.partition}"


def connector_folder(options: FileOptions) -> str:
    """Return the folder of a connector's commit logs."""
    return f"{options.logs_dir}/{path_element(options.name or 'connector')}"
