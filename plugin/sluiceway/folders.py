"""Names the folders of Sluiceway's own files, and locks and replaces files safely between processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def state_home() -> Path:
    """Return the folder of one installation's state: ``$SLUICEWAY_HOME``, or ``.sluiceway`` in the current directory."""
    return Path(os.environ.get("SLUICEWAY_HOME") or ".sluiceway").absolute()


def cache_home() -> Path:
    """Return the folder of files that can be made again: ``$XDG_CACHE_HOME/sluiceway`` or ``~/.cache/sluiceway``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG Base Directory specification ignores relative paths.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "sluiceway"


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait for an exclusive lock on a file and hold it. The kernel releases it if the process dies.

    Raises:
        OSError: the file cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Replace a file so that other processes see either the old content or the new content, never a part.

    Raises:
        OSError: the folder cannot be created or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content.encode() if isinstance(content, str) else content)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
