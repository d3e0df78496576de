"""Names the folders of Sluiceway's own files, and locks and replaces files safely between processes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

_LOCK = ".lock"


def state_home() -> Path:
    """Return the folder of one installation's state: ``$SLUICEWAY_HOME``, or ``.sluiceway`` in the current directory."""
    return Path(os.environ.get("SLUICEWAY_HOME") or ".sluiceway").absolute()


def cache_home() -> Path:
    """Return the folder of files that can be made again: ``$XDG_CACHE_HOME/sluiceway`` or ``~/.cache/sluiceway``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG Base Directory specification ignores relative paths.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "sluiceway"


def private_folder(path: Path) -> Path:
    """Create a folder that only this user can enter, or make an existing one so.

    Raises:
        PermissionError: another user owns it, or it is a link: in a shared folder such as ``/tmp``, anybody can make it first.
        OSError: it cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "It is a link or belongs to another user. Remove it, or use another folder", str(path))
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o700)
    return path


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


@contextlib.contextmanager
def scratch_folder(kind: str) -> Iterator[Path]:
    """Yield a temporary folder that only this user can read, and remove it in the end.

    A process that is killed removes nothing, and such a folder may hold secrets. So each holds a lock, which the kernel releases,
    and the next use of ``kind`` on the machine removes the folders whose locks are free.

    Raises:
        OSError: the folder cannot be created.
    """
    with scratch_folder_with_lock(kind) as (folder, _lock):
        yield folder


@contextlib.contextmanager
def scratch_folder_with_lock(kind: str) -> Iterator[tuple[Path, int]]:
    """Yield a ``scratch_folder`` and its lock's file descriptor.

    A child process that inherits the descriptor keeps the folder from being removed while it lives, also if this process is
    killed before it.
    """
    prefix = f"sluiceway-{kind}-"
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{prefix}*"):
        _remove_if_left(left)
    # Others see the folder under this name once it has its lock.
    made = Path(tempfile.mkdtemp(prefix=f".{prefix}"))
    with (made / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = made.rename(parent / made.name.removeprefix("."))
        try:
            yield folder, lock.fileno()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_if_left(folder: Path) -> None:
    """Remove a scratch folder of this user whose process has ended."""
    with contextlib.suppress(OSError):  # it is removed by another process, or is not ours
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return
        with (folder / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Replace a file so that other processes see either the old content or the new content, never a part.

    The process's umask restricts ``mode``, as for any new file.

    Raises:
        OSError: the folder cannot be created or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as handle:
            handle.write(content.encode() if isinstance(content, str) else content)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
