"""Where Sluiceway keeps files of its own: state of one installation, and downloads that any installation may share."""

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
    """Return the folder for what can be fetched or made again: ``$XDG_CACHE_HOME/sluiceway`` or ``~/.cache/sluiceway``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "sluiceway"


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, waiting for it; the kernel gives it back when the process dies.

    Raises:
        OSError: the file cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file so that another process sees the old content or the new, never a part.

    Raises:
        OSError: the folder cannot be made or written.
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
