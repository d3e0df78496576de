"""Tells whether a folder source has files to read that it did not have before. Runs in Airflow's triggerer."""

from __future__ import annotations

import errno
import time

from sluiceway.connectors.folder.config import MARKER, FolderOptions
from sluiceway.connectors.folder.identity import FileStatus
from sluiceway.connectors.folder.listing import Listing
from sluiceway.connectors.folder.watch import FolderWatch
from sluiceway.errors import RetriableError

_REST = 20  # times the duration of a scan: of 100,000 files it takes seconds


class FileChanges:
    """Counts files that are new, have changed, or have another name. Files that are gone do not count: a run may move them.

    It has the source's listing and its times between two scans, and asks for no file's content. Of local folders, the kernel
    announces changes between two scans. A number of eight bytes is kept for each file.
    """

    def __init__(self, options: FolderOptions) -> None:
        if options.complete_when == MARKER:  # a file is read when its marker is there
            options = options.with_markers()
        self._options = options
        self._storage = options.storage()
        self._listing: Listing = options.listing(self._storage)
        self._announced = FolderWatch(lambda: None)
        self._seen: set[int] | None = None
        self._changes = 0
        self._due = 0.0

    def mark(self) -> int | None:
        """Return the number of changes since the first call; None while there is no file. Raises RetriableError if the storage
        does not answer.
        """
        try:
            if time.monotonic() >= self._due or not self._saw_announced():
                self._scan()
        except OSError as error:
            raise RetriableError(f"{self._options.paths[0]} cannot be listed: {error.strerror or error}") from error
        return self._changes if self._seen else None

    def _saw_announced(self) -> bool:
        """Look at the files whose changes were announced. Return False if all must be looked at."""
        announced = self._announced.changed()
        for path in announced:
            if path and self._listing.matches(path) and (status := self._storage.status(path)) is not None:
                self._note(_number(path, status))
        return "" not in announced

    def _note(self, number: int) -> None:
        assert self._seen is not None  # noqa: S101 (the first call scans)
        if number not in self._seen:
            self._seen.add(number)
            self._changes += 1

    def _scan(self) -> None:
        began = time.monotonic()
        self._announced.changed()
        present: set[int] = set()

        def takes(path: str, status: FileStatus) -> bool:
            present.add(_number(path, status))
            return True

        scan = self._listing.scan(self._refused, takes)
        if self._storage.announces:
            self._announced.watch(scan.folders)
        if self._seen is not None:
            self._changes += len(present - self._seen)
        self._seen = present if scan.is_whole or self._seen is None else self._seen | present
        now = time.monotonic()
        self._due = now + max(self._options.scan_seconds, _REST * (now - began))

    def _refused(self, folder: str, error: OSError) -> None:
        """Pass over a folder that may not be read. Raises OSError if the storage did not answer."""
        if not self._storage.announces and error.errno != errno.EACCES:
            raise error

    def close(self) -> None:
        self._announced.close()
        self._storage.close()


def _number(path: str, status: FileStatus) -> int:
    """Return a number for a file as it is. The number of its links is no change of it."""
    return hash((path, status.device, status.inode, status.size, status.modified))
