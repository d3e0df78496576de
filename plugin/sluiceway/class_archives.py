"""Names, makes, and uses archives of loaded classes (class data sharing), with which Java processes start faster.

A JVM maps an archive if it fits its Java runtime and its class path. Otherwise it starts without, as it does if there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from sluiceway.folders import cache_home, file_lock
from sluiceway.java_runtime import ARCHIVE_IN_PLACE, JavaRuntime

_QUIET = "-Xlog:cds*=off"  # an archive that does not fit is no problem


def archive_path(kind: str, java: JavaRuntime, class_path: Sequence[Path]) -> Path:
    """Return the path of an archive, which changes with the Java runtime and with any jar: the JVM rejects one made with others.

    ``kind`` is the beginning of its path in the user's cache folder.
    """
    digest = hashlib.sha256()
    for file in (java.home / "release", java.executable, *class_path):
        digest.update(f"{file}\0".encode())
        with contextlib.suppress(OSError):
            status = file.stat()
            digest.update(f"{status.st_size} {status.st_mtime_ns}\0".encode())
    return cache_home() / f"{kind}-{digest.hexdigest()[:16]}.jsa"


def are_chosen_by(java_opts: str) -> bool:
    """Return whether Java options of the user choose an archive, or none."""
    return "rchive" in java_opts or "-Xshare" in java_opts


def using(archive: Path) -> list[str]:
    """Return the options of a JVM that uses an archive."""
    return [f"-XX:SharedArchiveFile={archive}", *ARCHIVE_IN_PLACE, _QUIET]


def recording(archive: Path) -> list[str]:
    """Return the options of a JVM that writes an archive when it ends. Other processes must not see a part of it."""
    return [f"-XX:ArchiveClassesAtExit={archive}", _QUIET]


def make_once(target: Path, record: Callable[[Path], None]) -> Path:
    """Make an archive unless it exists: ``record`` writes it to the path it is given. One process makes it; others wait.

    ``record`` must raise if the JVM did not end normally: a JVM that is given a part of an archive crashes.
    """
    with file_lock(target.with_suffix(".lock")):
        if not target.is_file():
            scratch = target.with_suffix(f".{os.getpid()}.tmp")
            try:
                record(scratch)
                with scratch.open("rb") as file:
                    os.fsync(file.fileno())
                scratch.replace(target)
            finally:
                scratch.unlink(missing_ok=True)
    return target
