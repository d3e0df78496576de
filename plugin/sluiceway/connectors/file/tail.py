"""Reads lines from a growing file, which may be truncated or replaced, or from a stream."""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

from sluiceway.connectors.file.lines import Lines, LineSplitter

log = logging.getLogger(__name__)

_CHUNK = 1 << 18  # small enough that a chunk's lines stay in the processor's cache until they are sent
_WARNING_SECONDS = 1.0


_NONE = Lines(b"", 0)


class Tail(Protocol):
    """Reads the lines of a file or stream as they are appended."""

    def read(self) -> Lines:
        """Return the next lines, without any if there is no new one. Positions in streams have no meaning."""

    def close(self) -> None: ...


class EmptyTail:
    """Has no lines."""

    def read(self) -> Lines:
        return _NONE

    def close(self) -> None:
        """Do nothing."""


class StreamTail:
    """Reads complete lines from an open stream that has no positions, such as standard input.

    Args:
        descriptor: the stream.
        owned: whether ``close`` closes it. Otherwise the process does.
    """

    def __init__(self, descriptor: int, *, owned: bool = False) -> None:
        self._descriptor = descriptor
        self._owned = owned
        self._splitter = LineSplitter()

    def read(self) -> Lines:
        readable, _, _ = select.select([self._descriptor], [], [], 0)
        chunk = os.read(self._descriptor, _CHUNK) if readable else b""
        return self._splitter.feed(chunk) if chunk else _NONE

    def close(self) -> None:
        if self._owned:
            self._owned = False
            os.close(self._descriptor)


class FileTail:
    """Reads complete lines from a file, starting at a position in bytes, and continues as the file grows.

    A file shorter than the position was truncated and is read again from the start. A replaced file (another inode at the
    path) is read to its end, then the new file from its start. Files that were there in between are not read, but said. A missing
    file has no lines until it is created; ``waiting`` is a task context's, which shows that.
    """

    def __init__(self, path: Path, position: int = 0, waiting: Callable[..., None] = lambda *_: None) -> None:
        self._path = path
        self._waiting = waiting
        self._splitter = LineSplitter(position)
        self._file: IO[bytes] | None = None
        self._ended_at: float | None = None  # when the end was read last, by the monotonic clock
        self._warned = 0.0
        self.generations_lost = 0
        """The number of rotations with which lines may have been lost."""

    def read(self) -> Lines:
        file = self._file or self._open()
        if file is None:
            return _NONE
        while chunk := self._chunk(file):
            lines = self._splitter.feed(chunk)
            if lines.raw:
                return lines
        return self._at_end(file)

    def lag(self) -> tuple[float | None, float]:
        """Return the seconds since the end was read, and the bytes of the file after what was read. Any thread may ask.

        Both are 0 while all bytes are read, and the seconds None if the end was never read.
        """
        try:
            size = self._path.stat().st_size
        except OSError:  # no such file: nothing to read
            size = 0
        splitter, ended_at = self._splitter, self._ended_at
        left = max(0, size - splitter.position - splitter.held)
        if not left:
            return 0.0, 0.0
        return None if ended_at is None else time.monotonic() - ended_at, float(left)

    def close(self) -> None:
        """Close the file. The position stays after the last line returned."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _chunk(self, file: IO[bytes]) -> bytes:
        return file.read(_CHUNK)

    def _open(self) -> IO[bytes] | None:
        try:
            file = self._path.open("rb", buffering=0)
        except FileNotFoundError:
            self._warn("Couldn't find file %s for FileStreamSourceTask, sleeping to wait for it to be created")
            return None
        except IsADirectoryError:
            self._warn("%s is a directory, not a file; waiting for a file to replace it")
            return None
        self._file = file
        self._waiting()
        position = self._splitter.position
        if os.fstat(file.fileno()).st_size < position:
            self._restart(file, "is shorter than the stored position")
            return file
        if position and os.pread(file.fileno(), 1, position - 1) not in (b"\n", b"\r"):
            self._lost(1, "it was another file that was read up to byte %d, where this one is in the middle of a line", position)
        file.seek(position)
        return file

    def _at_end(self, file: IO[bytes]) -> Lines:
        """Check at the end of the file whether it was truncated or replaced, and return the lines available then."""
        self._ended_at = time.monotonic()
        status = os.fstat(file.fileno())
        if status.st_size < self._splitter.position + self._splitter.held:
            self._restart(file, "was truncated below position")
            return self.read()
        try:
            replaced = not os.path.samestat(self._path.stat(), status)
        except FileNotFoundError:
            return _NONE  # deleted; a new file may be created
        if not replaced:
            return _NONE
        if chunk := self._chunk(file):  # written between the last read and the replacement
            return self._splitter.feed(chunk)
        log.info("File %s was replaced by another one; reading the new one from its start", self._path)
        self._look_for_others(status)
        last = self._splitter.finish()
        self.close()
        self._splitter = LineSplitter()
        # Position 0 follows an incomplete last line, since reading resumes after it at the start of the new file.
        return Lines(last, -len(last)) if last else self.read()

    def _look_for_others(self, last: os.stat_result) -> None:
        """Say how many generations there were between the file that was read and the one that has its name now."""
        from sluiceway.connectors.folder.local_files import files_in
        from sluiceway.connectors.folder.rotation import newer, rotated_generations

        entries = [each for each in files_in(str(self._path.parent)) if each.status[:2] != (last.st_dev, last.st_ino)]
        missed = newer(rotated_generations(str(self._path), entries), None, last.st_mtime_ns)
        if missed:
            names = ", ".join(Path(each.path).name for each in missed)
            self._lost(len(missed), "these came after the file that was read and are not read: %s", names)

    def _lost(self, count: int, reason: str, *args: object) -> None:
        """Say that the file was rotated in a way that cannot be followed by a path and a position."""
        self.generations_lost += count
        log.warning("%s: %s. FolderSource follows such rotations.", self._path, reason % args)

    def _restart(self, file: IO[bytes], reason: str) -> None:
        self.generations_lost += 1
        log.warning("File %s %s %d; reading it again from its start", self._path, reason, self._splitter.position)
        file.seek(0)
        self._splitter = LineSplitter()

    def _warn(self, message: str) -> None:
        now = time.monotonic()
        if now - self._warned >= _WARNING_SECONDS:
            self._warned = now
            log.warning(message, self._path)
            self._waiting(message % self._path, _WARNING_SECONDS)
