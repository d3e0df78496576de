"""Reads files block by block: logs through their rotations, and files that are complete at some time. Runs on executors."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from sluiceway.connectors.folder.content import BrokenFileError, File
from sluiceway.connectors.folder.formats import Format, Records, Row
from sluiceway.connectors.folder.identity import HEAD_BYTES, MARK_BYTES, Checksum, Cursor, FileStatus, Identity
from sluiceway.connectors.folder.local_files import files_in, open_file, status_of, written_at
from sluiceway.connectors.folder.parts import file_of, part_of
from sluiceway.connectors.folder.rotation import Generation, newer, oldest_first, rotated_generations
from sluiceway.connectors.folder.storage import Storage
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 18  # small enough that a chunk's records stay in the processor's cache until they are sent
_GENERATIONS = 100  # of a log that one read passes, so that other logs have their turn
_SEARCH_SECONDS = 0.2
_NANOSECONDS = 1e9
_NEVER = 1 << 63


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of reading.

    Attributes:
        record_bytes: the most bytes of a record.
        quiet_seconds: how long a file that is rotated, or may be complete, must not have changed before its end counts as such.
        flush_seconds: after how long without new bytes the last record of a format that waits for the next one is complete.
    """

    record_bytes: int = 1 << 20
    quiet_seconds: float = 1.0
    flush_seconds: float = 1.0


class Block(NamedTuple):
    """Complete records of a file.

    Attributes:
        data: their bytes, or an array of rows.
        before: the cursor before the first of them.
        records: what finds them.
        path: the path of the log or file.
        file: the path of the file when it was opened, which may be a rotated generation.
        is_last: whether the file has no more.
        unfinished: why the file has not all of its records, if it is the last block.
    """

    data: Any
    before: Cursor
    records: Records
    path: str
    file: str
    is_last: bool = False
    unfinished: str = ""

    @property
    def after(self) -> Cursor:
        return self.before.after(self.data, len(self.data))

    def rest(self, length: int) -> Block:
        """Return the records after the first ``length`` bytes."""
        return self._replace(data=self.data[length:], before=self.before.after(self.data, length))


class _Oversized(Records):
    """A record of too many bytes, as a bad one."""

    def __init__(self, of: Records, most: int) -> None:
        self.schema = of.schema
        self._most = most

    def complete(self, data: bytes, *, final: bool) -> int:
        return len(data)

    def rows(self, data: bytes) -> Iterator[Row]:
        yield Row(None, len(data), f"a record has more than record.max.bytes={self._most} bytes, or its quote is never closed")


class ReplacedError(Exception):
    """A file has other bytes than were read of it."""


class BadFileError(ConnectError):
    """A file cannot be read as its format says."""


class Reader:
    """Reads one file at a time. Subclasses say which, and when it has ended."""

    def __init__(self, path: str, format_: Format, limits: ReadLimits) -> None:
        self.path = path
        self._format = format_
        self._limits = limits
        self._file: File | None = None
        self._cursor = Cursor()
        self._records: Records | None = None
        self._skips = False  # whether the rest of a line that is too long is left out
        self._seen: FileStatus | None = None  # at the last read that found no complete record
        self._grown = time.monotonic()  # when there were new bytes last
        self.lag_bytes = 0

    @property
    def cursor(self) -> Cursor:
        return self._cursor

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _use(self, file: File, cursor: Cursor) -> None:
        """Read an open file from a cursor on."""
        self.close()
        self._file, self._cursor, self._records, self._seen = file, cursor.of(file.status()), None, None
        self._skips = False

    def _take(self, file: File, status: FileStatus, *, final: bool) -> Block | None:
        """Return complete records after the cursor, None if there are none yet. Raises OSError and ReplacedError."""
        if status == self._seen and not final and not self._is_flushed():
            return None
        size = CHUNK_BYTES
        while True:
            data = file.read_at(self._cursor.position, size)
            # Compared after the bytes are read: what was truncated or overwritten meanwhile does not count.
            if file.may_change and not file.has(self._cursor):
                raise ReplacedError
            ends = len(data) < size
            longest = size >= self._limits.record_bytes
            damage = _damage(file, self._cursor.position + len(data)) if ends else None
            block = self._block(file, data, final=final and ends and damage is None, ends=ends, longest=longest)
            if block is None and damage is not None:
                raise damage
            if block is not None or ends or longest:
                break
            size = min(4 * size, self._limits.record_bytes)
        self.lag_bytes = max(0, status.size - self._cursor.position)
        if block is None:
            if self._seen is None or status.size != self._seen.size:
                self._grown = time.monotonic()
            self._seen = status
        else:
            self._seen = None
        return block

    def _block(self, file: File, data: bytes, *, final: bool, ends: bool, longest: bool) -> Block | None:
        """Return the complete records of the bytes after the cursor.

        Args:
            file: the file.
            data: its next bytes.
            final: whether the file has no more.
            ends: whether it has no more now.
            longest: whether no record may be longer than the data.
        """
        records = self._records
        if records is None:
            begun = self._begin(file, data, final=final)
            if begun is None:
                if data and (final or longest):
                    raise BadFileError(
                        f"{file.path} has no header, and no start of its records, in its first {len(data)} bytes: is a quote "
                        "never closed?"
                    )
                return None
            skipped, records = begun
            data = data[skipped:]
        is_too_long = self._skips
        length = 0 if is_too_long else records.complete(data, final=final)
        if not length and ends and data and self._is_flushed():
            length = data.rfind(b"\n") + 1
        if not length and not ends and longest:
            if not records.has_lines:
                raise BadFileError(
                    f"{file.path} has a record of more than record.max.bytes={self._limits.record_bytes} bytes at byte "
                    f"{self._cursor.position}, and the rest of it is not read"
                )
            is_too_long = True
        if is_too_long:
            length, records = data.find(b"\n") + 1 or len(data), _Oversized(records, self._limits.record_bytes)
            self._skips = not data[:length].endswith(b"\n")
        if not length:
            return None
        is_last = final and length == len(data)
        unfinished = records.unfinished(data) if is_last else ""
        block = Block(data[:length], self._cursor, records, self.path, file.path, is_last=is_last, unfinished=unfinished)
        self._cursor = block.after.of(file.status())
        return block

    def _begin(self, file: File, data: bytes, *, final: bool) -> tuple[int, Records] | None:
        """Return the length of what precedes the first record in ``data``, and what finds records; None if the file's start is
        not there yet.
        """
        at_start = self._cursor.position == 0
        start = data if at_start else file.read_at(0, self._limits.record_bytes)
        try:
            begun = self._format.begin(start, final=final or not at_start)
        except ConnectError as error:
            raise BadFileError(f"{file.path}: {error}") from error
        if begun is None:
            return None
        before, self._records = begun
        if not at_start:
            return 0, self._records
        self._cursor = self._cursor.after(data, before)
        return begun

    def _is_flushed(self) -> bool:
        """Whether the last complete line has waited long enough for what may belong to its record."""
        return time.monotonic() - self._grown >= self._limits.flush_seconds

    @property
    def _is_held(self) -> bool:
        """Whether a record waits for what may belong to it, or for ``flush_seconds``."""
        return self.lag_bytes > 0 and self._limits.flush_seconds < float("inf")

    def _is_quiet(self, status: FileStatus) -> bool:
        """Whether a file has not changed for a while. A time in the future is that of another clock."""
        return abs(time.time_ns() - status.modified) >= self._limits.quiet_seconds * _NANOSECONDS


def _written(generation: Generation) -> int:
    """Return when a generation was written, which a .gz says in whole seconds if it was compressed later."""
    modified = generation.entry.status.modified
    written = written_at(generation.path)
    return written if written and abs(modified - written) > 2 * _NANOSECONDS else modified


class LogReader(Reader):
    """Follows a log through its rotations.

    While it runs, it keeps the file open that it reads, and reads it to its end however it is renamed or deleted. After a
    restart, or when the log was truncated or overwritten, it finds the file by what was read of it: renamed, copied, or
    compressed. Then it reads the generations that came after, oldest first, and then the current one.

    Args:
        path: the path of the log.
        format_: how records are found.
        limits: how files are read.
        identity: the stored position, None if there is none.
        since: a log without a stored position begins with the generations that were modified after this time, in nanoseconds
            since the epoch; None for its current one only.
        is_other: whether a file is a log of its own although its name is that of a generation.
        lost: called with a text when a generation with unread bytes may be lost.
    """

    def __init__(
        self,
        path: str,
        format_: Format,
        limits: ReadLimits,
        identity: Identity | None,
        *,
        since: int | None,
        is_other: Callable[[str], bool],
        lost: Callable[[str], None],
    ) -> None:
        super().__init__(path, format_, limits)
        self._identity = identity
        self._since = since
        self._is_other = is_other
        self._damaged: set[tuple[int, int]] = set()  # devices and inodes of generations that cannot be read
        self._lost = lost
        self.is_idle = False
        """Whether there is nothing to do before the log changes."""
        self.looked_at: FileStatus | None = None
        """The status of the log at the last read, None if there was no file."""
        self._left = False  # whether the generation of the identity was read to its end
        self._began: FileStatus | None = None  # of the file that is read, when it was opened at its start
        self._searched = -_SEARCH_SECONDS

    def read(self) -> Block | None:
        """Return the next complete records, None if there are none now. Raises OSError."""
        self.is_idle = False
        for _ in range(_GENERATIONS):
            self.looked_at = current = status_of(self.path)
            if self._file is None and not self._open():
                self.is_idle = current is None
                return None
            file = self._file
            assert file is not None  # noqa: S101 (for mypy)
            status = file.status()
            is_current = current is not None and current.is_file_of(self._cursor)
            if is_current and self._cursor.position == 0 and status != self._began:
                self._leave(ended=True)  # it may have been copied and truncated since, with bytes that were never read
                continue
            over = not is_current and self._is_quiet(status)
            try:
                block = self._take(file, status, final=over)
            except ReplacedError:
                self._leave(ended=False)
                continue
            except BrokenFileError as error:
                if not over:
                    return None
                self._lost(f"{error}. What follows after {self._cursor.position} bytes of it is lost.")
                self._damaged.add(status[:2])
                block = None
            self.is_idle = block is None and is_current and not self._is_held
            if block is not None or not over:
                return block
            self._leave(ended=True)
        return None

    @property
    def identity(self) -> Identity | None:
        """The identity of the file that was read last, None if nothing was read."""
        return self._cursor.identity() if self._cursor.position else self._identity

    @property
    def is_untouched(self) -> bool:
        """Whether nothing of the log was ever read, although there is a file."""
        return self._identity is None and self.is_open and not self._cursor.position

    def rest(self) -> None:
        """Close the file until the log has changed. It is found again by what was read of it."""
        self._leave(ended=False)

    def _leave(self, *, ended: bool) -> None:
        """Close the file, to search for it if it has not ended, or to continue with the next generation."""
        if self._cursor.position:
            self._identity, self._left = self._cursor.identity(), ended
        self._searched = -_SEARCH_SECONDS
        self.close()

    def _open(self) -> bool:
        """Open what to read next: the file of the stored position, or the generation after it. Return False if there is none."""
        if time.monotonic() - self._searched < _SEARCH_SECONDS:
            return False
        self._searched = time.monotonic()
        identity = self._identity
        if self._open_current(identity):
            return True
        current, rotated = self._generations()
        if identity is None or not identity.position:
            return self._start(newer(rotated, None, self._unread_since(identity)), current)
        found = self._find(identity, current, rotated)
        if found is None:
            if not self._left:
                self._left = True
                self._lost(
                    f"the file that was read up to byte {identity.position} is not there any more, renamed, copied, or "
                    "compressed. What was written to it after that is lost."
                )
            return self._start(newer(rotated, None, identity.modified), current)
        generation, file, cursor = found
        # A program that still has a rotated log open may have written to it.
        if generation is current or not self._left or self._has_late_lines(file, cursor):
            self._use(file, cursor)
            return True
        file.close()
        return self._start(newer(rotated, generation, identity.modified), current)

    def _has_late_lines(self, file: File, cursor: Cursor) -> bool:
        return file.status()[:2] not in self._damaged and _has_more(file, cursor)

    def _open_current(self, identity: Identity | None) -> bool:
        """Open the current generation if it is the one to read without a look at the others, as nearly always."""
        if self._unread_since(identity) < _NEVER and (identity is None or not identity.position):
            return False
        try:
            file = open_file(self.path)
        except FileNotFoundError:
            return False
        status = file.status()
        cursor = Cursor() if identity is None else identity.cursor(file) if status.is_file_of(identity) else None
        if cursor is None:
            file.close()
            return False
        if not cursor.position:
            self._began = status
        self._use(file, cursor)
        return True

    def _unread_since(self, identity: Identity | None) -> int:
        """Return the time after which nothing was read of a log of which nothing was read at all."""
        if self._began is not None:
            return self._began.modified
        if identity is not None:
            return identity.modified
        return _NEVER if self._since is None else self._since

    def _generations(self) -> tuple[Generation | None, list[Generation]]:
        """Return the current generation, None if there is no file, and the rotated ones."""
        folder, _, name = self.path.rpartition("/")
        entries = list(files_in(folder))
        current = next((Generation(self.path, each) for each in entries if each.name == name), None)
        rotated = [each for each in rotated_generations(self.path, entries) if not self._is_other(each.path)]
        return current, [each._replace(written=_written(each)) for each in rotated]

    def _find(
        self, identity: Identity, current: Generation | None, rotated: list[Generation]
    ) -> tuple[Generation, File, Cursor] | None:
        """Return the generation that has the bytes that were read, open; None if no file has them."""
        generations = [*([current] if current else []), *reversed(oldest_first(rotated))]
        same = [each for each in generations if each.entry.status.is_file_of(identity)]
        others = [each for each in generations if each not in same] if identity.position else []
        for generation in (*same, *others):
            with contextlib.suppress(FileNotFoundError, BrokenFileError):
                file = open_file(generation.path)
                cursor = None
                try:
                    cursor = identity.cursor(file)
                finally:
                    if cursor is None:
                        file.close()
                if cursor is not None:
                    return generation, file, cursor
        return None

    def _start(self, generations: list[Generation], current: Generation | None) -> bool:
        """Read the first of these generations, or the current one, from its start. Return False if there is none."""
        for generation in (*generations, *([current] if current else [])):
            try:
                file = open_file(generation.path)
            except FileNotFoundError:
                break
            status = file.status()
            if (status.device, status.inode) != generation.entry.status[:2]:  # rotated meanwhile
                file.close()
                break
            if generation is not current and (status[:2] in self._damaged or not _has_more(file, Cursor())):
                file.close()
                continue
            self._began = status
            self._use(file, Cursor())
            return True
        self._searched = -_SEARCH_SECONDS if current else self._searched
        return False


def _damage(file: File, end: int) -> BrokenFileError | None:
    """Return the error of a compressed file that should have more than these bytes."""
    try:
        file.check_end(end)
    except BrokenFileError as error:
        return error
    return None


def _has_more(file: File, cursor: Cursor) -> bool:
    """Return whether a file has bytes after a cursor."""
    try:
        return bool(file.read_at(cursor.position, 1))
    except BrokenFileError:
        return cursor.position == 0  # is said when it is read


class FileReader(Reader):
    """Reads a file until it is complete.

    Args:
        path: the file's path, or that of a part of it.
        format_: how records are found.
        limits: how files are read.
        identity: the stored position, None if there is none.
        was_done: whether all of the file was read. Another file with its name is read from its start then.
        is_complete: whether a file with this status is complete, so that nothing follows its end.
        storage: where the file is.
    """

    def __init__(
        self,
        path: str,
        format_: Format,
        limits: ReadLimits,
        identity: Identity | None,
        is_complete: Callable[[str, FileStatus], bool],
        storage: Storage,
        *,
        was_done: bool = False,
    ) -> None:
        super().__init__(path, format_, limits)
        self._identity = identity
        self._is_complete = is_complete
        self._storage = storage
        self._was_done = was_done
        self.is_done = False
        """Whether all of the file was returned."""

    def read(self) -> Block | None:
        """Return the next complete records, None if there are none now. Raises OSError, and BrokenFileError for a file that is
        complete.
        """
        status = self._storage.recent_status(file_of(self.path))
        if status is None:
            if self._file is None:
                return None
            status = self._file.status()  # deleted: it has all that it will have
        complete = self._is_complete(file_of(self.path), status) or not status.links
        if status == self._seen and not complete and not self._is_flushed():
            return None
        try:
            file = self._file or self._opened()
            # If another file has the name, this one has all that it will have.
            complete = complete or not status.is_file_of(self._cursor)
            block = self._take(file, file.status(), final=complete)
        except ReplacedError:
            self._begin_again()
            return None
        except OSError as error:
            self._close_for_now()  # a connection may be lost, or the content replaced
            if isinstance(error, BrokenFileError) and not complete:
                return None
            raise
        self.is_done = complete and (block is None or block.is_last)
        if self.is_done and status.is_file_of(self._cursor):
            # It may have been touched since its last byte was read.
            self._cursor = self._cursor.of(status if file.is_live else file.status())
        if block is None:
            self._close_for_now()
        return block

    def _begin_again(self) -> None:
        """Open a file again, whose content was replaced, as what it is now."""
        is_known = self._file is not None and self._file.is_live  # to have other content than was read
        self._close_for_now()
        if is_known:
            log.warning("%s has other content than was read of it, and is read from its start", file_of(self.path))
            self._identity = None

    def _close_for_now(self) -> None:
        if self._file is not None:
            self._identity = self._cursor.identity()
            self.close()

    def _opened(self) -> File:
        file = self._storage.open(file_of(self.path))
        identity = self._identity
        if identity is not None and self._was_done and file.status().inode != identity.inode:
            identity = None
        self._was_done = False
        try:
            cursor = identity.cursor(file) if identity is not None else Cursor()
        except OSError:
            file.close()
            raise
        if cursor is None:
            log.info("%s is another file than the one that was read, and is read from its start", file_of(self.path))
        try:
            self._use(file, cursor or Cursor())
        except (OSError, BadFileError):
            file.close()
            raise
        return self._file or file


class FilePart(File):
    """The bytes of a file up to an end. Its status is that of the whole file."""

    def __init__(self, file: File, end: int) -> None:
        self.path, self.may_change, self.is_live = file.path, file.may_change, file.is_live
        self.end = end
        self._file = file

    def read_at(self, position: int, size: int) -> bytes:
        return self._file.read_at(position, max(0, min(size, self.end - position)))

    def status(self) -> FileStatus:
        return self._file.status()

    def raw(self) -> BinaryIO:
        return self._file.raw()

    def close(self) -> None:
        self._file.close()

    def has(self, cursor: Cursor) -> bool:
        return self._file.has(cursor)


class PartReader(FileReader):
    """Reads one part of a file that is complete: the records that begin in its bytes."""

    def _use(self, file: File, cursor: Cursor) -> None:
        part = part_of(self.path)
        assert part is not None  # noqa: S101 (for mypy)
        head = file.read_at(0, self._limits.record_bytes)
        try:
            begun = self._format.begin(head, final=True)
        except ConnectError as error:
            raise BadFileError(f"{file.path}: {error}") from error
        assert begun is not None  # noqa: S101 (with final, it raises)
        before, records = begun
        positions = part.first, min(part.end, file.status().size)
        start, end = (max(before, records.next_start(file, each, self._limits.record_bytes)) for each in positions)
        if part.number and not cursor.position:
            tail = file.read_at(start - MARK_BYTES, MARK_BYTES)
            cursor = Cursor(start, Checksum.of(head[:HEAD_BYTES]), tail)
        super()._use(FilePart(file, end), cursor)

    def _take(self, file: File, status: FileStatus, *, final: bool) -> Block | None:
        assert isinstance(file, FilePart)  # noqa: S101 (for mypy)
        block = super()._take(file, status, final=final)
        self.lag_bytes = max(0, file.end - self._cursor.position)
        if block is not None and block.is_last and file.end < status.size:
            complete = block.records.complete(block.data, final=False)
            if complete < len(block.data):
                raise BadFileError(
                    f"{file.path} has a record that does not end at byte {file.end}, where the records of the next part begin, "
                    "as if a quote were missing. Correct the file, or set part.bytes=0 to read the file as a whole."
                )
        return block
