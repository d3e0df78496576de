"""Follows a growing file through truncation and replacement."""

from __future__ import annotations

import logging
import os
import select
import time
from pathlib import Path
from typing import IO, Protocol

from sluiceway.connectors.file.lines import LineCutter

log = logging.getLogger(__name__)

_CHUNK = 1 << 17  # the lines of a chunk stay in the processor's cache until they are produced
_WARNING_SECONDS = 1.0


class Tail(Protocol):
    """Gives the lines of a file or stream as they come."""

    def read(self) -> list[tuple[str, int | None]]:
        """Return the next lines, each with the position behind it; an empty list where nothing new is there now."""

    def close(self) -> None: ...


class StreamTail:
    """Reads complete lines from an open stream that has no positions, such as standard input."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._cutter = LineCutter()

    def read(self) -> list[tuple[str, int | None]]:
        readable, _, _ = select.select([self._descriptor], [], [], 0)
        chunk = os.read(self._descriptor, _CHUNK) if readable else b""
        return [(line, None) for line, _ in self._cutter.feed(chunk)] if chunk else []

    def close(self) -> None:
        """The stream is not ours to close."""


class FileTail:
    """Reads complete lines from a file at a path, from a position on, and goes on as the file grows.

    A file shorter than the position was truncated and is read again from its start. A file that was replaced (another
    inode) is read to its end, and then its successor from the start. A missing file is waited for.
    """

    def __init__(self, path: Path, position: int = 0) -> None:
        self._path = path
        self._cutter = LineCutter(position)
        self._file: IO[bytes] | None = None
        self._warned = 0.0

    def read(self) -> list[tuple[str, int | None]]:
        """Return the next lines, each with the position behind it; an empty list where nothing new is there now."""
        if self._file is None and not self._open():
            return []
        while chunk := self._chunk():
            if lines := self._cutter.feed(chunk):
                return list(lines)
        return self._look_for_change()

    def close(self) -> None:
        """Close the file; the position stays behind the last line given out."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _chunk(self) -> bytes:
        return b"" if self._file is None else self._file.read(_CHUNK)

    def _open(self) -> bool:
        try:
            file = self._path.open("rb", buffering=0)
        except FileNotFoundError:
            self._warn("Couldn't find file %s for FileStreamSourceTask, sleeping to wait for it to be created")
            return False
        except IsADirectoryError:
            self._warn("%s is a directory, not a file; waiting for a file to take its place")
            return False
        self._file = file
        if os.fstat(file.fileno()).st_size < self._cutter.position:
            self._restart("is shorter than the stored position")
        else:
            file.seek(self._cutter.position)
        return True

    def _look_for_change(self) -> list[tuple[str, int | None]]:
        """At the end of what is there: has the file become another one?"""
        assert self._file is not None  # noqa: S101 (read opened it)
        here = os.fstat(self._file.fileno())
        if here.st_size < self._cutter.position + self._cutter.held:
            self._restart("was truncated below position")
            return self.read()
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return []  # removed; a successor may come
        if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
            return []
        if chunk := self._chunk():  # written between the last read and the replacement
            return list(self._cutter.feed(chunk))
        log.info("File %s was replaced by another one; reading the new one from its start", self._path)
        last = self._cutter.finish()
        self.close()
        self._cutter = LineCutter()
        # Position 0 goes with an unfinished last line: what follows it is the new file's start.
        return [(line, 0) for line in last] or self.read()

    def _restart(self, why: str) -> None:
        assert self._file is not None  # noqa: S101 (the caller has it open)
        log.warning("File %s %s %d; reading it again from its start", self._path, why, self._cutter.position)
        self._file.seek(0)
        self._cutter = LineCutter()

    def _warn(self, message: str) -> None:
        now = time.monotonic()
        if now - self._warned >= _WARNING_SECONDS:
            self._warned = now
            log.warning(message, self._path)
