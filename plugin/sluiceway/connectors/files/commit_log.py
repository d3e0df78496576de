"""The log of a topic partition's commits, stored beside the data. It says which offsets the files contain.

Each entry is a small file whose number is in its name. An entry is created only if there is none with its number, so of two
writers with the same knowledge, one is fenced. An entry holds the next offset to read and the files of the commit: a
commit of several files is decided by one entry. The files get their final names afterwards; who opens the partition next
repeats that step if it was interrupted.

The newest entry is never deleted. It wins over the offsets of the consumer group.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from sluiceway.connectors.files.filesystem import FileSystem
from sluiceway.errors import ConnectError, FencedError

log = logging.getLogger(__name__)

TEMPORARY = ".tmp"
_VERSION = 1
_ATTEMPTS = 5
_ENTRY = re.compile(r"(\d{20})\.json")


class NewFile(NamedTuple):
    """A file of a commit: its temporary path and its final one."""

    temporary: str
    path: str


class TableFiles(NamedTuple):
    """Additions of a commit to a topic's Hive table: folders, and columns with their names and types."""

    topic: str
    folders: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    avro_schema: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A commit, a claim by a task that opened the partition, or offsets that a user has set.

    Attributes:
        number: counts the entries of the partition.
        epoch: counts the times that offsets were set by a user or by a new topic; part of the names of files.
        end: the next offset to read; None if the consumer group's offset decides.
        files: the files of the commit.
        tables: what the newest commit adds to Hive tables; empty without Hive integration.
        writer: identifies the attempt that created the entry.
    """

    number: int
    epoch: int = 0
    end: int | None = None
    files: tuple[NewFile, ...] = ()
    tables: tuple[TableFiles, ...] = ()
    writer: str = ""


class CommitLog:
    """The entries of one topic partition, in one folder. Not thread-safe."""

    def __init__(self, fs: FileSystem, folder: str) -> None:
        self._fs = fs
        self.folder = folder

    def newest(self) -> Entry | None:
        """Return the newest entry, or None if there is none. Raises StorageError."""
        for _ in range(_ATTEMPTS):
            numbers = self._numbers()
            if not numbers:
                return None
            try:
                return self._read(max(numbers))
            except FileNotFoundError:  # a newer one has been added meanwhile
                continue
        raise FencedError(f"The commits in {self.folder} change faster than they can be read: another task writes them.")

    def append(
        self,
        after: Entry | None,
        *,
        epoch: int,
        end: int | None,
        files: Sequence[NewFile] = (),
        tables: Sequence[TableFiles] = (),
    ) -> Entry:
        """Add an entry after the newest one known. Raises FencedError if there is a newer one, and StorageError.

        Without ``files`` it keeps the tables of the entry before, which may not be registered yet.
        """
        kept = after.tables if after is not None and not files else tuple(tables)
        entry = Entry(after.number + 1 if after else 1, epoch, end, tuple(files), kept, uuid.uuid4().hex)
        data = json.dumps({"version": _VERSION, **asdict(entry)}).encode()
        if not self._fs.create(self._path(entry.number), data) and not self._is_own(entry):
            raise FencedError(self._fenced())
        numbers = self._numbers()
        if max(numbers, default=0) > entry.number:  # the entries in between were deleted since this writer read them
            self._fs.delete(self._path(entry.number))
            raise FencedError(self._fenced())
        for number in numbers:
            if number < entry.number - 1:
                self._fs.delete(self._path(number))
        return entry

    def claim(self) -> Entry:
        """Fence all other writers: finish the newest commit, add an entry, delete what was left unfinished."""
        newest = self.newest()
        if newest is not None:
            self.publish(newest)
        claimed = self.append(newest, epoch=newest.epoch if newest else 0, end=newest.end if newest else None)
        for name in self._fs.names(self.folder):
            if name.endswith(TEMPORARY):
                self._fs.delete(f"{self.folder}/{name}")
        return claimed

    def set_offset(self, offset: int | None) -> Entry:
        """Set the next offset to read; None leaves it to the consumer group. Starts a new epoch of names."""
        newest = self.newest()
        if newest is not None:
            self.publish(newest)
        return self.append(newest, epoch=newest.epoch + 1 if newest else 1, end=offset)

    def publish(self, entry: Entry) -> None:
        """Give the files of a commit their final names, as often as needed."""
        for file in entry.files:
            try:
                published = self._fs.publish(file.temporary, file.path)
            except FileExistsError:
                raise ConnectError(
                    f"{file.path} exists already and is not from this connector. Move it away, or set another topics.dir."
                ) from None
            if not published:
                log.warning("%s, written before, is not there any more: another program has moved or deleted it", file.path)

    def temporary(self) -> str:
        """Return the path for a new file until its commit."""
        return f"{self.folder}/{uuid.uuid4().hex}{TEMPORARY}"

    def _is_own(self, entry: Entry) -> bool:
        """Return whether the entry is this writer's, created by an attempt whose answer was lost."""
        try:
            return self._read(entry.number).writer == entry.writer
        except FileNotFoundError:
            return False

    def _numbers(self) -> list[int]:
        found = (_ENTRY.fullmatch(name) for name in self._fs.names(self.folder))
        return sorted(int(match[1]) for match in found if match)

    def _read(self, number: int) -> Entry:
        path = self._path(number)
        data = self._fs.read(path)
        try:
            found = json.loads(data)
            if found["version"] != _VERSION:
                raise ValueError(f"version {found['version']}")
            files = tuple(NewFile(*file) for file in found["files"])
            tables = tuple(_table_files(*each) for each in found.get("tables", ()))
            return Entry(found["number"], found["epoch"], found["end"], files, tables, found["writer"])
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectError(
                f"{path} is not an entry of a file sink's commit log ({error}). Restore it, or set the connector's offsets after "
                "moving the folder away."
            ) from error

    def _path(self, number: int) -> str:
        return f"{self.folder}/{number:020d}.json"

    def _fenced(self) -> str:
        return f"Another task has taken over the partition with the commits in {self.folder}. This task must not write any more."


def _table_files(topic: str, folders: list[str], columns: list[list[str]], avro_schema: str) -> TableFiles:
    return TableFiles(topic, tuple(folders), tuple((name, kind) for name, kind in columns), avro_schema)
