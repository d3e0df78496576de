"""Files of storages that are reached by a client: HDFS, S3, Google Cloud Storage, Azure. Runs on executors."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from sluiceway.connectors.files.filesystem import Entry as RemoteEntry
from sluiceway.connectors.files.filesystem import RemoteFileSystem, StorageError
from sluiceway.connectors.folder.content import DecompressedFile, File, is_compressed
from sluiceway.connectors.folder.identity import Cursor, FileStatus
from sluiceway.connectors.folder.storage import Entry, by_length

if TYPE_CHECKING:
    from typing_extensions import Buffer

_TRUSTED_SECONDS = 1.0
_MOST_RECENT = 10_000
_PIECE = 1 << 20


class _Raw(io.RawIOBase):
    """A client's file object, whose errors are OSErrors with a number: those without one are damages."""

    def __init__(self, inner: BinaryIO) -> None:
        super().__init__()
        self._inner = inner

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with _os_errors():
            return self._inner.seek(offset, whence)

    def tell(self) -> int:
        with _os_errors():
            return self._inner.tell()

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        with _os_errors():
            data = self._inner.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with contextlib.suppress(Exception):  # the connection may be lost
                self._inner.close()
        super().close()


class RemoteFile(File):
    """A file as it was when it was opened.

    A storage with versions notices by itself that the content is replaced: then reading raises OSError. Of others, the status
    tells.
    """

    is_live = False

    def __init__(self, storage: RemoteStorage, path: str) -> None:
        """Open the file. Raises OSError."""
        self.path = path
        self._storage = storage
        with _os_errors():
            found = storage.status(path)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
            self._status = found
            self._raw = _Raw(storage.filesystem.reader(storage.inner(path)))
        self.may_change = not storage.has_versions

    def read_at(self, position: int, size: int) -> bytes:
        if self._raw.tell() != position:
            self._raw.seek(position)
        parts = []
        while size > 0 and (data := self._raw.read(size)):
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def has(self, cursor: Cursor) -> bool:
        return self._storage.status(self.path) == self._status

    def status(self) -> FileStatus:
        return self._status

    def raw(self) -> BinaryIO:
        return cast("BinaryIO", self._raw)  # it has all that is needed of one

    def close(self) -> None:
        self._raw.close()


class RemoteStorage:
    """The files of a remote file system.

    Args:
        filesystem: where they are.
        root: what their paths begin with, which the file system's do not have.
        inner_root: what the file system's paths begin with instead.
    """

    announces = False

    def __init__(self, filesystem: RemoteFileSystem, root: str, inner_root: str) -> None:
        self.filesystem = filesystem
        self._root = root
        self._inner_root = inner_root
        self._listed: dict[str, list[RemoteEntry]] = {}  # folders that the search for folders has listed
        self._recent: dict[str, tuple[float, FileStatus | None]] = {}  # statuses, and when they were asked for

    def inner(self, path: str) -> str:
        """Return the file system's path of a file."""
        return self._inner_root + path.removeprefix(self._root)

    def open(self, path: str) -> File:
        file = RemoteFile(self, path)
        return DecompressedFile(file) if is_compressed(path) else file

    @property
    def has_versions(self) -> bool:
        """Whether an open file stays what it is, or cannot be read any more when it is replaced."""
        return self.filesystem.has_versions

    def status(self, path: str) -> FileStatus | None:
        with _os_errors():
            found = self.filesystem.entry(self.inner(path))
        if found is None or found.is_folder:
            return None
        self._is_back(path)
        return _status(path, found)

    def recent_status(self, path: str) -> FileStatus | None:
        now = time.monotonic()
        asked, status = self._recent.get(path, (now - _TRUSTED_SECONDS, None))
        if now - asked < _TRUSTED_SECONDS:
            return status
        status = self.status(path)
        if len(self._recent) >= _MOST_RECENT:
            self._recent.clear()
        self._recent[path] = now, status
        return status

    def files(self, folder: str) -> Iterator[Entry]:
        entries = self._listed.pop(folder, None)
        for each in sorted(self._entries(folder) if entries is None else entries, key=lambda each: by_length(each.name)):
            if not each.is_folder:
                yield Entry(each.name, _status(f"{folder}/{each.name}", each))

    def objects(self, prefix: str, after: str, *, is_deep: bool) -> Iterator[tuple[str, FileStatus]]:
        """Yield the objects whose paths begin with a prefix and sort after another path, in this order. S3 only.

        Unless ``is_deep``, these are only those that have no slash after the prefix.
        """
        with _os_errors():
            for inner, entry in self.filesystem.objects(self.inner(prefix), self.inner(after) if after else "", is_deep=is_deep):
                path = self._root + inner.removeprefix(self._inner_root)
                self._is_back(path)
                yield path, _status(path, entry)

    def seems_gone(self, path: str) -> bool:
        """Return whether a file was not there when it was asked for last. Asks nothing."""
        return self._recent.get(path, (0.0, FileStatus(0, 0, 0, 0)))[1] is None

    def _is_back(self, path: str) -> None:
        if self.seems_gone(path):
            del self._recent[path]

    def is_folder(self, path: str) -> bool:
        found = self._entry(path)
        return found is not None and found.is_folder

    def is_file(self, path: str) -> bool:
        found = self._entry(path)
        return found is not None and not found.is_folder

    def _entry(self, path: str) -> RemoteEntry | None:
        """Return a file or folder, None for a pattern, and for what may not be asked for."""
        if any(each in path for each in "*?["):
            return None
        with contextlib.suppress(PermissionError), _os_errors():
            return self.filesystem.entry(self.inner(path))
        return None

    def subfolders(self, folder: str) -> list[str]:
        try:
            self._listed[folder] = entries = self._entries(folder)
        except PermissionError:  # is said when its files are listed
            return []
        return sorted(each.name for each in entries if each.is_folder)

    def below(self, folder: str) -> Iterator[str]:
        yield folder
        for name in self.subfolders(folder):
            yield from self.below(f"{folder}/{name}")

    def _entries(self, folder: str) -> list[RemoteEntry]:
        with _os_errors():
            return self.filesystem.entries(self.inner(folder) or "/")

    def real_path(self, path: str) -> str:
        return path

    def delete(self, path: str) -> None:
        with _os_errors():
            self.filesystem.delete(self.inner(path))

    def tag(self, path: str, key: str, value: str) -> None:
        with _os_errors():
            self.filesystem.tag(self.inner(path), key, value)

    def close(self) -> None:
        with contextlib.suppress(OSError), _os_errors():
            self.filesystem.close()

    def move(self, path: str, folder: str, below: str) -> str:
        status = self.status(path)
        if status is None:
            return ""
        target = f"{folder}/{path.removeprefix(below).lstrip('/')}"
        if target == path:
            raise OSError(errno.EINVAL, "it is in that folder already", path)
        suffix = f".{zlib.crc32(f'{path}:{status.modified}'.encode()):08x}"
        for candidate in (target, target + suffix):
            if self._give(path, status, candidate):
                return candidate
        raise FileExistsError(errno.EEXIST, "two other files have its name there", target)

    def _give(self, path: str, status: FileStatus, target: str) -> bool:
        """Give a file another name. Return False if another file has that name."""
        old, new = self.inner(path), self.inner(target)
        with _os_errors():
            existing = self.filesystem.entry(new)
            if existing is None:
                try:
                    return self.filesystem.publish(old, new)
                except FileExistsError:
                    return False
            if existing.is_folder or existing.size != status.size or not self._same_content(old, new):
                return False
            self.filesystem.delete(old)  # a crash came between the copy and the deletion
            return True

    def _same_content(self, one: str, other: str) -> bool:
        with self.filesystem.reader(one) as first, self.filesystem.reader(other) as second:
            pieces = itertools.zip_longest(iter(lambda: first.read(_PIECE), b""), iter(lambda: second.read(_PIECE), b""))
            return all(left == right for left, right in pieces)


def _status(path: str, entry: RemoteEntry) -> FileStatus:
    """Return a file's status. Its inode is a number for its path and its content, if the storage has a name for that."""
    digest = hashlib.blake2b(f"{path}\0{entry.version}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return FileStatus(0, int.from_bytes(digest, "big") >> 1, entry.size, entry.modified)


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise OSError for every failure, as local files do."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise OSError(_number(error), str(error) or type(error).__name__) from error
    except StorageError as error:
        raise OSError(_number(error.__cause__), str(error)) from error
    except Exception as error:  # the clients of storages raise classes of their own
        raise OSError(errno.EIO, str(error) or type(error).__name__) from error


def _number(error: BaseException | None) -> int:
    """Return the number of an error; some clients raise PermissionError without one."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    return errno.EACCES if isinstance(error, PermissionError) else errno.EIO
