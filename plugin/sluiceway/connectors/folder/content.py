"""Open files of any storage, and the content of compressed ones. Runs on executors."""

from __future__ import annotations

import abc
import bz2
import contextlib
import errno
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Protocol

from sluiceway.connectors.folder.identity import Cursor, FileStatus

_PIECES = (4096, 64, 1)  # bytes; a read that meets the damage returns nothing
_BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


class BrokenFileError(OSError):
    """A compressed file is damaged, or not complete yet."""


class File(abc.ABC):
    """An open file."""

    path: str
    may_change = True
    """Whether what was read may be overwritten."""
    is_live = True
    """Whether the status is that of now. Otherwise it is that of the opening, and what was written since is not seen."""

    @abc.abstractmethod
    def read_at(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes from a position on; fewer only at the end. Raises OSError."""

    @abc.abstractmethod
    def status(self) -> FileStatus:
        """Return the file's status. Raises OSError."""

    @abc.abstractmethod
    def raw(self) -> BinaryIO:
        """Return its bytes as a file object, which must be closed first. Raises BrokenFileError."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release the file."""

    def has(self, cursor: Cursor) -> bool:
        """Return whether the file still has what was read. Raises OSError."""
        return cursor.fits(self)

    def check_end(self, position: int) -> None:  # noqa: B027 (most files end anywhere)
        """Check that the file ends where it should, given the position after its last byte. Raises BrokenFileError."""


class _Content(Protocol):
    """The content of a compressed file."""

    def read(self, size: int = ..., /) -> bytes: ...
    def seek(self, offset: int, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...


class _KeptOpen:
    """A file object that Arrow does not close when it releases its stream."""

    closed = False

    def __init__(self, raw: BinaryIO) -> None:
        self.read = raw.read

    def close(self) -> None:
        self.closed = True


class _ZstdContent:
    """The content of a .zst file. To go back means to read from the start."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._begin()

    def _begin(self) -> None:
        import pyarrow as pa

        self._raw.seek(0)
        raw: Any = _KeptOpen(self._raw)  # the stubs ask for a base class that not all file objects have
        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
        self._position = 0

    def read(self, size: int = -1, /) -> bytes:
        data: bytes = self._stream.read(size)
        self._position += len(data)
        return data

    def seek(self, offset: int, /) -> int:
        if offset < self._position or offset == 0:  # which also begins again after damage
            self._begin()
        while self._position < offset and self.read(min(1 << 18, offset - self._position)):
            pass
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        """Do nothing: the stream holds nothing but the raw file."""


def _zip_content(raw: BinaryIO) -> _Content:
    """Return the content of an archive's only file. Raises BadZipFile."""
    try:
        archive = zipfile.ZipFile(raw)
        members = [each for each in archive.infolist() if not each.is_dir()]
        if len(members) != 1:
            raise zipfile.BadZipFile(f"it has {len(members)} files, and only archives of one file can be read")
        return archive.open(members[0])
    except (RuntimeError, ValueError) as error:  # it has a password, or an unknown version or compression
        raise zipfile.BadZipFile(str(error)) from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise zipfile.BadZipFile("its directory has a wrong position") from error


_OPENERS: Mapping[str, Callable[[BinaryIO], _Content]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _ZstdContent,
    ".zip": _zip_content,
}
COMPRESSED = tuple(_OPENERS)


class DecompressedFile(File):
    """The content of a compressed file.

    Positions are those of the decompressed bytes. To go back means to decompress from the start.
    """

    def __init__(self, file: File) -> None:
        self.path = file.path
        self._file = file
        self._raw = file.raw()
        self.is_live = file.is_live
        self.may_change = file.may_change and not file.is_live  # nobody writes into a compressed file, but another may replace it
        self._open = next(opener for extension, opener in _OPENERS.items() if file.path.endswith(extension))
        self._opened: _Content | None = None

    def status(self) -> FileStatus:
        return self._file.status()

    def has(self, cursor: Cursor) -> bool:
        return self._file.has(cursor)

    def raw(self) -> BinaryIO:
        raise BrokenFileError(f"{self.path} can be read only without its compression, since its parts are not read in order")

    def read_at(self, position: int, size: int) -> bytes:
        """Raises BrokenFileError."""
        try:
            return self._read(position, size)
        except OSError as error:
            if error.errno is not None:
                raise
            return self._readable(position, size, error)  # the errors of bz2 and Arrow for damaged data have no number
        except _BROKEN as error:
            return self._readable(position, size, error)

    def check_end(self, position: int) -> None:
        self.read_at(position, 1)

    @property
    def _content(self) -> _Content:
        if self._opened is None:
            self._raw.seek(0)
            self._opened = self._open(self._raw)
        return self._opened

    def _read(self, position: int, size: int) -> bytes:
        content = self._content
        if content.tell() != position:
            content.seek(position)
        return content.read(size) if content.tell() == position else b""

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
        if self._opened is not None:
            self._opened.close()
        self._raw.close()
        self._file.close()


def is_compressed(path: str) -> bool:
    """Return whether a file is read as what it contains, which its name says."""
    return path.endswith(COMPRESSED)
