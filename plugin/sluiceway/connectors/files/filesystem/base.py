"""The interface of file systems, and the errors of files. Runs on executors, and on the API server for validation."""

from __future__ import annotations

import abc
import errno
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from sluiceway.errors import RetriableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

log = logging.getLogger(__name__)

_ADVICE = {
    errno.ENOSPC: "Free some space, or write to another path.",
    errno.EDQUOT: "Raise the quota, or write to another path.",
    errno.EACCES: "Let the user that runs the task do so.",
    errno.EPERM: "Let the user that runs the task do so.",
    errno.EROFS: "Mount the file system with write access, or write to another path.",
    errno.ENAMETOOLONG: "Shorten the path, or partition by another field.",
}
_DEFAULT_ADVICE = "Check that the storage is reachable and that the task may use it."


class StorageError(RetriableError):
    """A file could not be read or written. The task tries again until ``sluiceway.unreachable.timeout.ms`` is over."""


@contextmanager
def storage_errors(action: str, path: str) -> Iterator[None]:
    """Raise StorageError for every failure but a missing or existing file; ``action`` is a verb, such as ``write``."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, StorageError):
        raise
    except Exception as error:  # the clients of file systems raise classes of their own
        advice = _ADVICE.get(getattr(error, "errno", None) or 0, _DEFAULT_ADVICE)
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise StorageError(f"Cannot {action} {path}: {reason}. {advice}") from error


class Output(io.RawIOBase):
    """A file being written. Writers of formats may flush and close it; only ``finish`` and ``abort`` end the file.

    ``position`` is the number of bytes written.
    """

    def __init__(
        self,
        path: str,
        write: Callable[[Buffer], object],
        finish: Callable[[], object],
        abort: Callable[[], object],
        buffered: Callable[[], int] = int,
    ) -> None:
        super().__init__()
        self.path = path
        self.position = 0
        self._write = write
        self._finish = finish
        self._abort = abort
        self._buffered = buffered

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def write(self, data: Buffer, /) -> int:
        view = memoryview(data).cast("B")
        with storage_errors("write", self.path):
            self._write(view)
        self.position += len(view)
        return len(view)

    @property
    def buffered(self) -> int:
        """The bytes that the storage keeps in memory."""
        return self._buffered()

    def finish(self) -> None:
        """Make the file durable and close it. Raises StorageError."""
        with storage_errors("write", self.path):
            self._finish()

    def abort(self) -> None:
        """Release the file without finishing it; whoever opened it deletes it. Writes are ignored from now on. Raises nothing."""
        self._write = _ignore
        try:
            self._abort()
        except Exception as error:  # noqa: BLE001 (the storage may be away)
            log.debug("Closing %s: %s", self.path, error)


def _ignore(_data: Buffer) -> None:
    return


class FileSystem(abc.ABC):
    """A file system or object store. Paths are absolute, with ``/`` between names.

    Methods raise StorageError unless they say otherwise.
    """

    @abc.abstractmethod
    def open(self, path: str) -> Output:
        """Create a file, and the folders above it, for writing."""

    @abc.abstractmethod
    def create(self, path: str, data: bytes) -> bool:
        """Create a small file with its whole content in one step. Return False if the file exists already."""

    @abc.abstractmethod
    def publish(self, temporary: str, path: str) -> bool:
        """Give a finished file its final name. Doing so twice is the same as once.

        Return False if neither file exists. Raises FileExistsError if another file has the name.
        """

    @abc.abstractmethod
    def read(self, path: str) -> bytes:
        """Return the content of a small file. Raises FileNotFoundError."""

    @abc.abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, none if it does not exist."""

    @abc.abstractmethod
    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, none if it does not exist."""

    @abc.abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file if it exists."""

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and what is in it, if it exists."""
        for name in self.names(folder):
            self.delete(f"{folder}/{name}")
        for name in self.folders(folder):
            self.delete_tree(f"{folder}/{name}")
        self._delete_empty(folder)

    def _delete_empty(self, folder: str) -> None:  # noqa: B027 (object stores have no folders)
        """Delete an empty folder if it exists."""

    def close(self) -> None:  # noqa: B027 (most have nothing to release)
        """Release the connection."""

    @abc.abstractmethod
    def check(self, folder: str) -> None:
        """Check that the storage is there and that a folder, or the one it would be created in, can be used. Writes nothing."""


class Entry(NamedTuple):
    """A file or folder.

    Attributes:
        name: its name in its folder.
        is_folder: whether it is a folder.
        size: bytes of the file.
        modified: when it was changed last, in nanoseconds since the epoch; 0 if the storage does not say.
        version: what the storage calls this content, such as an ETag; "" if it does not say.
    """

    name: str
    is_folder: bool
    size: int = 0
    modified: int = 0
    version: str = ""


class RemoteFileSystem(FileSystem):
    """A storage that is reached by a client of its own, which also reads large files."""

    has_versions = False
    """Whether a reader notices that its file is replaced, and raises an error."""

    @abc.abstractmethod
    def entries(self, folder: str) -> list[Entry]:
        """Return what is in a folder, nothing if it does not exist."""

    @abc.abstractmethod
    def entry(self, path: str) -> Entry | None:
        """Return a file or folder, None if it does not exist."""

    def objects(self, prefix: str, after: str, *, is_deep: bool) -> Iterator[tuple[str, Entry]]:
        """Yield the paths that begin with a prefix and sort after another one, with their objects, in this order.

        Unless ``is_deep``, these are only those that have no slash after the prefix. Raises OSError if the storage cannot do so.
        """
        raise OSError(errno.ENOTSUP, "the storage does not list from a key on", prefix)

    def tag(self, path: str, key: str, value: str) -> None:
        """Give a file a tag and keep its others, if it is there. Raises OSError if the storage has no tags."""
        raise OSError(errno.ENOTSUP, "the storage has no tags", path)

    @abc.abstractmethod
    def reader(self, path: str) -> BinaryIO:
        """Open a file for reading, with a buffer. Raises FileNotFoundError. Reading raises OSError or what the client raises."""

    def names(self, folder: str) -> list[str]:
        return [each.name for each in self.entries(folder) if not each.is_folder]

    def folders(self, folder: str) -> list[str]:
        return [each.name for each in self.entries(folder) if each.is_folder]
