"""Tells a task at once when its file changes, by inotify. Linux only.

All tasks of a process share one inotify instance, because a user may have only 128 of them, and the thread that reads it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

_MODIFY, _ATTRIB, _MOVED_TO, _CREATE, _DELETE_SELF, _MOVE_SELF = 0x2, 0x4, 0x80, 0x100, 0x400, 0x800
_MASK_ADD, _ONE_SHOT = 0x2000_0000, 0x8000_0000
_CLOSE_ON_EXEC = 0o2000000
_FILE = _MODIFY | _ATTRIB | _DELETE_SELF | _MOVE_SELF  # a file that another one is renamed to has one link less: ATTRIB
_FOLDER = _CREATE | _MOVED_TO | _DELETE_SELF | _MOVE_SELF
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_BUFFER = 1 << 16
_MISSES = 3


class FileChanges:
    """Calls back once a path's file may have changed. One inotify instance with its thread. Thread-safe.

    Each call of ``watch`` announces one change only, so that a busy file, which is read without waiting, causes no events.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._add, self._remove = libc.inotify_add_watch, libc.inotify_rm_watch
        self._add.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
        self._remove.argtypes = (ctypes.c_int, ctypes.c_int)
        self._descriptor: int = libc.inotify_init1(_CLOSE_ON_EXEC)
        if self._descriptor < 0:
            raise _os_error("inotify_init1")
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
                self._remove(self._descriptor, number)

    def _added(self, path: Path, events: int) -> int:
        # MASK_ADD, because another task may watch the same file or folder for other events.
        number: int = self._add(self._descriptor, os.fsencode(path), events | _MASK_ADD | _ONE_SHOT)
        if number < 0:
            raise _os_error(str(path))
        return number

    def _run(self) -> None:
        while True:
            events = os.read(self._descriptor, _BUFFER)
            position = 0
            while position < len(events):
                number, _, _, length = _EVENT.unpack_from(events, position)
                position += _EVENT.size + length
                self._call_back(number)

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
        changes = _changes() if self._missed < _MISSES else None
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


def _os_error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), what)


_shared: list[FileChanges | None] = []
_sharing = threading.Lock()


def _changes() -> FileChanges | None:
    """Return the process's instance, None if there can be none."""
    if not sys.platform.startswith("linux"):
        return None
    with _sharing:
        if not _shared:
            _shared.append(None)
            try:
                _shared[0] = FileChanges()
            except (OSError, AttributeError) as error:  # as many instances as a user may have; a C library without inotify
                log.info("Files are read every 50 ms to find changes, because inotify is not available: %s", error)
        return _shared[0]


def _after_fork() -> None:
    """Forget the parent's instance, whose thread the child does not have."""
    global _sharing
    _sharing = threading.Lock()
    _shared.clear()


with contextlib.suppress(AttributeError):  # systems that cannot fork
    os.register_at_fork(after_in_child=_after_fork)
