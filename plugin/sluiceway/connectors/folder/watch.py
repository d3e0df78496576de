"""Tells a task which files of its folders have changed, by inotify. Linux only.

Unlike FileStreamSource, which watches one file until its next change, a task of many files must know which of them to read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from sluiceway.connectors import inotify

log = logging.getLogger(__name__)

_EVENTS = inotify.MODIFY | inotify.CREATE | inotify.MOVED_TO | inotify.DELETE | inotify.MOVED_FROM | inotify.ATTRIB

OnChange = Callable[[str], None]
"""Called with the path of a file that has changed, or "" if any may have. Runs on the thread of ``FolderChanges``."""


class FolderChanges:
    """Announces the changes in folders. One inotify instance with its thread. Thread-safe."""

    def __init__(self) -> None:
        self._inotify = inotify.Inotify()
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[str, set[OnChange]]] = {}
        threading.Thread(target=self._run, name="folder-changes", daemon=True).start()

    def watch(self, folder: str, on_change: OnChange) -> int:
        """Announce each change of a file in a folder until ``forget``. Returns the watch's number. Raises OSError."""
        with self._lock:
            number = self._inotify.add(Path(folder), _EVENTS)
            self._watched.setdefault(number, (folder, set()))[1].add(on_change)
        return number

    def has(self, number: int) -> bool:
        """Return whether a watch is there: that of a folder which was deleted is not."""
        with self._lock:
            return number in self._watched

    def forget(self, number: int, on_change: OnChange) -> None:
        with self._lock:
            _, callbacks = self._watched.get(number, ("", set()))
            callbacks.discard(on_change)
            if not callbacks and self._watched.pop(number, None) is not None:
                self._inotify.remove(number)

    def _run(self) -> None:
        while True:
            for event in self._inotify.read():
                self._announce(event)

    def _announce(self, event: inotify.Event) -> None:
        with self._lock:
            if event.watch < 0:  # the queue was full
                called, path = {each for _, callbacks in self._watched.values() for each in callbacks}, ""
            else:
                folder, callbacks = self._watched.get(event.watch, ("", set()))
                called, path = set(callbacks), f"{folder}/{event.name}"
                if event.mask & inotify.IGNORED:  # the folder is gone
                    self._watched.pop(event.watch, None)
                    path = ""
        for on_change in called:
            on_change(path)


_shared = inotify.PerProcess(FolderChanges)


class FolderWatch:
    """The files of a task that have changed since it asked last. ``wake`` is called for each, on another thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._numbers: dict[str, tuple[FolderChanges, int]] = {}
        self._lock = threading.Lock()
        self._changed: set[str] = set()

    def watch(self, folders: Iterable[str]) -> None:
        """Watch these folders only. One that cannot be watched is not, so files must be looked at now and then anyway."""
        wanted, changes = set(folders), _shared.get()
        for folder, (known, number) in list(self._numbers.items()):
            if folder not in wanted or not known.has(number):
                self._forget(folder)
        if changes is None:
            return
        for folder in wanted - self._numbers.keys():
            try:
                self._numbers[folder] = changes, changes.watch(folder, self._on_change)
            except OSError as error:
                log.debug("Cannot watch %s for changes: %s", folder, error.strerror)

    def changed(self) -> set[str]:
        """Return the paths of files that have changed; "" is among them if any may have."""
        with self._lock:
            found, self._changed = self._changed, set()
        return found

    def close(self) -> None:
        for folder in list(self._numbers):
            self._forget(folder)

    def _forget(self, folder: str) -> None:
        changes, number = self._numbers.pop(folder)
        changes.forget(number, self._on_change)

    def _on_change(self, path: str) -> None:
        """Runs on the thread of ``FolderChanges``."""
        with self._lock:
            known = path in self._changed
            self._changed.add(path)
        if not known:
            self._wake()
