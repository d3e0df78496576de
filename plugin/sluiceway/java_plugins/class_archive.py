"""Keeps an archive of loaded classes (class-data sharing), with which Java processes of plugins start faster.

It holds the classes of the class path, not those of plugins. The first process on a machine records them and writes the archive
when it ends, which takes it about a second. The others map the archive, if it fits their Java runtime and class path.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from sluiceway import class_archives
from sluiceway.java_runtime import JavaRuntime


class ClassArchive:
    """The archive for one Java process. ``options`` go into its command, and ``close`` is called after its end. Never raises."""

    def __init__(self, java: JavaRuntime, class_path: Sequence[Path], java_opts: str) -> None:
        self._file = class_archives.archive_path("java-plugins/classes", java, class_path)
        self._lock: IO[str] | None = None
        self.options: list[str] = []
        if class_archives.are_chosen_by(java_opts):
            return
        with contextlib.suppress(OSError):
            if self._file.is_file():
                self.options = class_archives.using(self._file)
            elif self._locked():
                self.options = class_archives.recording(self._recorded)

    @property
    def _recorded(self) -> Path:
        """The file that the recording process writes. Other processes must not see a part of it."""
        return self._file.with_suffix(f".{os.getpid()}")

    def _locked(self) -> bool:
        """Return whether this process is the one that records. The kernel releases the lock when it ends."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        lock = self._file.with_suffix(".lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return False
        self._lock = lock
        return True

    def close(self, exit_code: int) -> None:
        """Keep what the process has recorded, if it ended normally."""
        if self._lock is None:
            return
        with self._lock, contextlib.suppress(OSError):
            if exit_code == 0:
                self._recorded.replace(self._file)
            else:
                self._recorded.unlink(missing_ok=True)
