"""Opens and lists local files, compressed ones as what they contain. Runs on executors."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from sluiceway.connectors.folder.identity import FileStatus


class _Content(Protocol):
    """The content of a compressed file."""

    def read(self, size: int = ..., /) -> bytes: ...
    def seek(self, offset: int, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...


_OPENERS: Mapping[str, Callable[[io.FileIO], _Content]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=io.BufferedReader(raw), mode="rb"),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
COMPRESSED = tuple(_OPENERS)
_PIECES = (4096, 64, 1)  # bytes; a read that meets the damage returns nothing
_GZIP_HEADER = struct.Struct("<4sI")
_BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)


class BrokenFileError(OSError):
    """A compressed file is damaged, or not complete yet."""


class File:
    """An open file. It stays readable when it is renamed or deleted."""

    may_change = True
    """Whether what was read may be overwritten."""

    def __init__(self, path: str) -> None:
        """Open the file. Raises OSError."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def check_end(self, position: int) -> None:
        """Check that the file ends where it should, given the position after its last byte. Raises BrokenFileError."""

    def read_at(self, position: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if not data or len(data) == size:
            return data
        parts, length = [data], len(data)
        while length < size and (data := os.pread(self._descriptor, size - length, position + length)):
            parts.append(data)
            length += len(data)
        return b"".join(parts)

    def status(self) -> FileStatus:
        return _status(os.fstat(self._descriptor))

    def close(self) -> None:
        os.close(self._descriptor)


class CompressedFile(File):
    """Positions are those of the decompressed bytes. To go back means to decompress from the start."""

    may_change = False  # nobody writes into a compressed file

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._raw = io.FileIO(self._descriptor, closefd=False)
        self._content = _OPENERS[Path(path).suffix](self._raw)

    def read_at(self, position: int, size: int) -> bytes:
        """Raises BrokenFileError."""
        try:
            return self._read(position, size)
        except OSError as error:
            if error.errno is not None:
                raise
            return self._readable(position, size, error)  # bz2's error for damaged data has no number
        except _BROKEN as error:
            return self._readable(position, size, error)

    def check_end(self, position: int) -> None:
        self.read_at(position, 1)

    def _read(self, position: int, size: int) -> bytes:
        if self._content.tell() != position:
            self._content.seek(position)
        return self._content.read(size) if self._content.tell() == position else b""

    def _readable(self, position: int, size: int, error: Exception) -> bytes:
        """Return what can be read before the damage. Raises BrokenFileError if that is nothing."""
        found = bytearray()
        for piece in _PIECES:
            with contextlib.suppress(*_BROKEN, OSError):
                self._content.seek(0)
                while len(found) < size and (part := self._read(position + len(found), min(piece, size - len(found)))):
                    found += part
        if not found:
            raise BrokenFileError(f"{self.path} cannot be decompressed: {error}") from error
        return bytes(found)

    def close(self) -> None:
        self._content.close()
        self._raw.close()
        super().close()


def open_file(path: str) -> File:
    """Open a file; a compressed one is known by its name. Raises OSError."""
    return CompressedFile(path) if path.endswith(COMPRESSED) else File(path)


def status_of(path: str) -> FileStatus | None:
    """Return a file's status, None if there is no file. Raises OSError."""
    try:
        return _status(Path(path).stat())
    except (FileNotFoundError, NotADirectoryError):
        return None


def written_at(path: str) -> int:
    """Return when the content of a .gz was written, in nanoseconds since the epoch; 0 if the file does not say (RFC 1952)."""
    if not path.endswith(".gz"):
        return 0
    with contextlib.suppress(OSError), Path(path).open("rb") as file:
        header = file.read(_GZIP_HEADER.size)
        if len(header) == _GZIP_HEADER.size:
            return int(_GZIP_HEADER.unpack(header)[1]) * 1_000_000_000
    return 0


class Entry(NamedTuple):
    """A file in a folder."""

    name: str
    status: FileStatus


def files_in(folder: str) -> Iterator[Entry]:
    """Yield the regular files in a folder, none if there is no folder. Raises OSError."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # deleted, or a link to nothing or to itself
                if entry.is_file():
                    yield Entry(entry.name, _status(entry.stat()))


def _status(found: os.stat_result) -> FileStatus:
    return FileStatus(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_nlink)
