"""Opens and lists local files, compressed ones as what they contain. Runs on executors."""

from __future__ import annotations

import contextlib
import io
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sluiceway.connectors.folder import after_read
from sluiceway.connectors.folder.content import DecompressedFile, File, is_compressed
from sluiceway.connectors.folder.identity import FileStatus
from sluiceway.connectors.folder.storage import Entry, by_length

_GZIP_HEADER = struct.Struct("<4sI")


class LocalFile(File):
    """It stays readable when it is renamed or deleted."""

    def __init__(self, path: str) -> None:
        """Open the file. Raises OSError."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

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

    def raw(self) -> BinaryIO:
        return io.BufferedReader(io.FileIO(self._descriptor, closefd=False))

    def close(self) -> None:
        os.close(self._descriptor)


def open_file(path: str) -> File:
    """Open a file; a compressed one is known by its name. Raises OSError."""
    file = LocalFile(path)
    return DecompressedFile(file) if is_compressed(path) else file


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


def files_in(folder: str) -> Iterator[Entry]:
    """Yield the regular files in a folder, those with short names first; none if there is no folder. Raises OSError."""
    for name in sorted(_names_in(folder), key=by_length):  # of 100,000 files, names take little memory, statuses much
        with contextlib.suppress(OSError):  # deleted, or a link to itself
            yield Entry(name, _status(Path(folder, name).stat()))


def _names_in(folder: str) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_file():
                    yield entry.name


def _status(found: os.stat_result) -> FileStatus:
    return FileStatus(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_nlink)


class LocalStorage:
    """The file systems that this machine has mounted."""

    announces = True
    open = staticmethod(open_file)
    status = recent_status = staticmethod(status_of)
    files = staticmethod(files_in)
    is_folder = staticmethod(os.path.isdir)
    is_file = staticmethod(os.path.isfile)
    delete = staticmethod(after_read.delete)
    move = staticmethod(after_read.move)
    tag = staticmethod(after_read.tag)

    def seems_gone(self, path: str) -> bool:
        return not os.path.lexists(path)

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)

    def subfolders(self, folder: str) -> list[str]:
        try:
            with os.scandir(folder or "/") as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except OSError:  # there is none, or it may not be read; os.walk leaves these out, too
            return []

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def below(self, folder: str) -> Iterator[str]:
        """Links to folders are not followed, which may lead above."""
        for path, subfolders, _ in os.walk(folder or "/"):
            subfolders.sort()
            yield path.rstrip("/")
