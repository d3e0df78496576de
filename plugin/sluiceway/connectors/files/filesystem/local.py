"""Files on local disks and on mounted network disks."""

from __future__ import annotations

import errno
import os
import uuid
from contextlib import suppress
from pathlib import Path

from sluiceway.connectors.files.filesystem.base import FileSystem, Output, storage_errors


class LocalFileSystem(FileSystem):
    """Uses hard links to give names, because a link fails if the name exists and a rename does not."""

    def open(self, path: str) -> Output:
        with storage_errors("create", path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            file = Path(path).open("wb")  # noqa: SIM115 (closed by finish)

        def finish() -> None:
            try:
                file.flush()
                os.fsync(file.fileno())
            finally:
                file.close()

        return Output(path, file.write, finish, file.close)

    def create(self, path: str, data: bytes) -> bool:
        temporary = f"{path}.{uuid.uuid4().hex}.tmp"
        output = self.open(temporary)
        output.write(data)
        output.finish()
        with storage_errors("create", path):
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            finally:
                Path(temporary).unlink(missing_ok=True)
            _sync_folder(Path(path).parent)
        return True

    def publish(self, temporary: str, path: str) -> bool:
        target, source = Path(path), Path(temporary)
        with storage_errors("create", path):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(temporary, path)
            except FileNotFoundError:
                return target.exists()
            except FileExistsError:
                if not _is_same_file(source, target):
                    raise
            _sync_folder(target.parent)
            source.unlink(missing_ok=True)
        return True

    def read(self, path: str) -> bytes:
        with storage_errors("read", path):
            return Path(path).read_bytes()

    def names(self, folder: str) -> list[str]:
        return self._entries(folder, folders=False)

    def folders(self, folder: str) -> list[str]:
        return self._entries(folder, folders=True)

    @staticmethod
    def _entries(folder: str, *, folders: bool) -> list[str]:
        with storage_errors("list", folder):
            try:
                with os.scandir(folder) as entries:
                    return [entry.name for entry in entries if entry.is_dir() == folders]
            except FileNotFoundError:
                return []

    def delete(self, path: str) -> None:
        with storage_errors("delete", path):
            Path(path).unlink(missing_ok=True)

    def _delete_empty(self, folder: str) -> None:
        with storage_errors("delete", folder), suppress(FileNotFoundError):
            Path(folder).rmdir()

    def check(self, folder: str) -> None:
        with storage_errors("write to", folder):
            place = Path(folder)
            while not place.exists():
                place = place.parent
            if not place.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{place} is not a folder")
            if not os.access(place, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _is_same_file(source: Path, target: Path) -> bool:
    """Return whether a former attempt has linked the file, or another writer has finished this."""
    try:
        return source.samefile(target)
    except FileNotFoundError:
        return True


def _sync_folder(folder: Path) -> None:
    """Make new names durable: after a power failure, a commit must not be there without its files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems cannot
            raise
    finally:
        os.close(descriptor)
