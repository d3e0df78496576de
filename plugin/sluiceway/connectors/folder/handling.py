"""Moves, deletes, or tags the files whose records are all in Kafka. Runs on executors."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from sluiceway.api import Offset, OffsetStorageReader, Partition
from sluiceway.connectors.folder import config as keys
from sluiceway.connectors.folder.batches import DONE_FIELD
from sluiceway.connectors.folder.finished import FinishedFiles, key_of
from sluiceway.connectors.folder.identity import FileStatus
from sluiceway.connectors.folder.listing import Listing
from sluiceway.connectors.folder.parts import file_of, part_of, parts_of, source_partition
from sluiceway.connectors.folder.storage import Storage
from sluiceway.connectors.folder.stored import TAGGED_FIELD, stored_anywhere

log = logging.getLogger(__name__)

_PAST = {keys.DELETE: "deleted", keys.MOVE: "moved", keys.TAG: "tagged"}
_MOST_REMEMBERED = 10_000
_PART_SECONDS = 1.0
_RETRY_SECONDS = 60.0


class Handling:
    """Moves, deletes, or tags files after they were read.

    ``reader`` reads the offsets of parts that other tasks read.
    """

    def __init__(
        self,
        options: keys.FolderOptions,
        storage: Storage,
        listing: Listing,
        finished: FinishedFiles,
        reader: OffsetStorageReader,
    ) -> None:
        self._options = options
        self._storage = storage
        self._listing = listing
        self._finished = finished
        self._reader = reader
        self._unhandled: set[str] = set()
        self._try_again: dict[str, float] = {}  # files of which that failed, and parts that wait for others, and when it is due
        self._reasons: dict[str, str] = {}  # why it failed
        self._handled: dict[str, None] = {}  # files of which it was done, whose offsets are then removed, or say so
        self._ended: set[str] = set()  # files that were moved or deleted, also if a stored offset says otherwise
        self.failures = 0
        """The number of files of which it failed at first."""

    @property
    def stays(self) -> bool:
        """Whether files stay where they are."""
        return self._options.after_read in (keys.KEEP, keys.TAG)

    @property
    def waiting(self) -> int:
        """The number of offsets to store."""
        return len(self._handled)

    @property
    def unhandled(self) -> Collection[str]:
        """The files that are not handled yet."""
        return self._unhandled | self._try_again.keys()

    def add(self, path: str) -> None:
        """Handle a file once the offset is stored which says that it is done."""
        if self._options.after_read == keys.KEEP:
            return
        part = part_of(path)
        if part is None or part.number == 0 or not self.stays:
            self._unhandled.add(path)

    def moves_on(self, path: str) -> None:
        """Drop the offset to store, since the next records of a file have one."""
        self._handled.pop(path, None)

    def has_ended(self, path: str) -> bool:
        """Return whether a file was moved or deleted, and forget that. An offset that is still stored is then another file's."""
        has_ended = path in self._ended
        self._ended.discard(path)
        return has_ended

    def offsets(self) -> list[tuple[Partition, Offset | None]]:
        """Return the offsets to store of files that were handled."""
        stored = [(source_partition(path), self._offset(path)) for path in self._handled]
        self._handled.clear()
        return stored

    def _offset(self, path: str) -> Offset | None:
        identity = self._finished.get(path) if self.stays else None
        return None if identity is None else {**identity.offset(), DONE_FIELD: True, TAGGED_FIELD: True}

    def due(self, unstored: Collection[str]) -> list[str]:
        """Return the files to handle now: all but those that are not stored as done yet, and those that wait."""
        now = time.monotonic()
        again = [path for path, at in self._try_again.items() if at <= now]
        return [*again, *(path for path in self._unhandled if path not in unstored)]

    def handle(self, unstored: Collection[str]) -> None:
        """Handle the files that are due. Those of which it fails are tried again."""
        now = time.monotonic()
        for path in self.due(unstored):
            self._unhandled.discard(path)
            self._try_again.pop(path, None)
            try:
                status = self._storage.status(file_of(path))
                if status is None:
                    if part_of(path) is not None:  # another task has handled the file
                        self._end(path)
                elif self._finished.has(key_of(path), status):  # otherwise there is more to read
                    if self._is_whole(path, status):
                        self._handle(path)
                    else:
                        self._try_again[path] = now + _PART_SECONDS
                self._reasons.pop(path, None)
            except OSError as error:
                self._say(path, error.strerror or str(error))
                self._try_again[path] = now + _RETRY_SECONDS

    def _say(self, path: str, reason: str) -> None:
        if path not in self._reasons:
            self.failures += 1
        if self._reasons.get(path) != reason:
            self._reasons[path] = reason
            past = _PAST[self._options.after_read]
            log.warning("%s was read, but not %s, which is tried again each minute: %s", file_of(path), past, reason)

    def _is_whole(self, path: str, status: FileStatus) -> bool:
        """Return whether a path is a file's, or its first part's and all the others are done, too."""
        part = part_of(path)
        if part is None:
            return True
        if part.number:
            return False
        others = stored_anywhere(self._reader, parts_of(file_of(path), status.size, part.size)[1:])
        return all(each.done and each.identity is not None and each.identity.is_of(status) for each in others)

    def _handle(self, path: str) -> None:
        options, file = self._options, file_of(path)
        # The marker first: one that is left would say that the next file with this name is complete.
        for each in [file + options.marker, file] if options.complete_when == keys.MARKER else [file]:
            if options.after_read == keys.TAG:
                self._storage.tag(each, *options.tag)
            elif options.after_read == keys.DELETE:
                self._storage.delete(each)
            else:
                self._storage.move(each, options.folder, self._listing.base_of(each))
        if self.stays:
            self._handled[path] = None
        else:
            self._end(path)

    def _end(self, path: str) -> None:
        """Forget a file that was moved or deleted. What has its name later is another file."""
        self._finished.discard(path)
        self._handled[path] = None
        if len(self._ended) >= _MOST_REMEMBERED:
            self._ended.clear()
        self._ended.add(path)
