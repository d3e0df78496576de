"""Tells a task at once when its file changes, by inotify. Linux only.

All tasks of a process share one inotify instance, because a user may have only 128 of them, and the thread that reads it.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from sluiceway.connectors import inotify

log = logging.getLogger(__name__)

# A file that another one is renamed to has one link less: ATTRIB.
_FILE = inotify.MODIFY | inotify.ATTRIB | inotify.DELETE_SELF | inotify.MOVE_SELF
_FOLDER = inotify.CREATE | inotify.MOVED_TO | inotify.DELETE_SELF | inotify.MOVE_SELF
_MISSES = 3


class FileChanges:
    """Calls back once a path's file may have changed. One inotify instance with its thread. Thread-safe.

    Each call of ``watch`` announces one change only, so that a busy file, which is read without waiting, causes no events.
    """

    def __init__(self) -> None:
        self._inotify = inotify.Inotify()
        self._lock = threading.Lock()
        self._callbacks: dict[int, set[Callable[[], None]]] = {}
        threading.Thread(target=self._run, name="file-changes", daemon=True).start()

    def watch(self, path: Path, callback: Callable[[], None]) -> int:
        """Call back at the next change of the file, or of its folder while there is no file. Returns the watch's number.

        ``callback`` runs on the thread of this object and must not wait. Raises OSError if the path cannot be watched.
        """
        with self._lock:  # so that an event finds its callback
            try:
                number = self._added(path, _FILE)
            except FileNotFoundError:
                number = self._added(path.parent, _FOLDER)
            self._callbacks.setdefault(number, set()).add(callback)
        return number

    def forget(self, number: int, callback: Callable[[], None]) -> None:
        """Do not call back any more for a watch."""
        with self._lock:
            callbacks = self._callbacks.get(number, set())
            callbacks.discard(callback)
            if not callbacks and self._callbacks.pop(number, None) is not None:
                self._inotify.remove(number)

    def _added(self, path: Path, events: int) -> int:
        # MASK_ADD, because another task may watch the same file or folder for other events.
        return self._inotify.add(path, events | inotify.MASK_ADD | inotify.ONE_SHOT)

    def _run(self) -> None:
        while True:
            for event in self._inotify.read():
                self._call_back(event.watch)

    def _call_back(self, number: int) -> None:
        with self._lock:
            if number < 0:  # the queue was full, so any file may have changed
                called = {each for callbacks in self._callbacks.values() for each in callbacks}
                self._callbacks.clear()
            else:
                called = self._callbacks.pop(number, set())
        for callback in called:
            callback()


class FileWatch:
    """Wakes one task when its file changes. For the task's thread.

    Network file systems announce no change that another machine makes. A watch that misses several changes in a row gives up.
    """

    def __init__(self, path: Path, wake: Callable[[], None]) -> None:
        self._path = path
        self._wake = wake
        self._missed = 0
        self._heard = False
        self._watch: tuple[FileChanges, int] | None = None

    def arm(self) -> bool:
        """Watch for the next change. Return False if changes are not announced, so that the file must be read to find them."""
        changes = _shared.get() if self._missed < _MISSES else None
        if changes is None:
            return False
        self._heard = False
        try:
            self._watch = changes, changes.watch(self._path, self._changed)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EACCES):
                log.debug("Cannot watch %s for changes: %s", self._path, error.strerror)
            return False
        return True

    def looked(self, *, found: bool) -> None:
        """Note whether the file had new lines after a wait."""
        if found and not self._heard:
            self._missed += 1
            if self._missed == _MISSES:
                log.info("Changes of %s are not announced; reading it every 50 ms to find them", self._path)

    def close(self) -> None:
        self._missed = _MISSES
        if self._watch is not None:
            changes, number = self._watch
            changes.forget(number, self._changed)
            self._watch = None

    def _changed(self) -> None:
        """Runs on the thread of ``FileChanges``."""
        self._heard, self._missed = True, 0
        self._wake()


_shared = inotify.PerProcess(FileChanges)
