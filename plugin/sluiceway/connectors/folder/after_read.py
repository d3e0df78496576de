"""Moves or deletes files that were read. Runs on executors."""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
import zlib
from pathlib import Path

_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP)
"""Errors of file systems that cannot give a file a second name, or not there."""


def delete(path: str) -> None:
    """Delete a file, if it is there. Raises OSError."""
    Path(path).unlink(missing_ok=True)


def tag(path: str, key: str, value: str) -> None:
    """Raise OSError: local files have no tags."""
    raise OSError(errno.ENOTSUP, f"local files have no tags such as {key}={value}", path)


def move(path: str, folder: str, below: str) -> str:
    """Move a file to a folder, with the folders that it has below another one. It never replaces a file.

    Returns:
        Its new path, "" if it is not there any more.

    Raises:
        OSError: the file stays where it is.
    """
    source = Path(path)
    target = Path(folder, os.path.relpath(path, below))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.parent.samefile(source.parent):
        raise OSError(errno.EINVAL, "it is in that folder already", path)
    try:
        before = source.stat()
    except FileNotFoundError:
        return ""
    modified = before.st_mtime_ns
    suffix = f".{zlib.crc32(f'{path}:{modified}'.encode()):08x}"
    for candidate in (target, target.with_name(target.name + suffix)):
        if _link(source, candidate):
            now = source.stat()
            if (now.st_ino, now.st_size, now.st_mtime_ns) != (before.st_ino, before.st_size, modified):
                candidate.unlink()
                raise OSError(errno.EAGAIN, "it has changed meanwhile", path)
            source.unlink()
            return str(candidate)
    raise FileExistsError(errno.EEXIST, "two other files have its name there", str(target))


def _link(source: Path, target: Path) -> bool:
    """Give a file another name, on another file system by a copy. Return False if another file has that name."""
    if target.exists():
        return target.samefile(source) or _same_content(source, target)  # a crash came before the deletion
    if source.is_symlink():
        return _copy(source, target)
    try:
        os.link(source, target)  # unlike a rename, it fails if there is a file
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _copy(source, target)
    return True


def _copy(source: Path, target: Path) -> bool:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        shutil.copy2(source, temporary)
        with temporary.open("rb") as copied:
            os.fsync(copied.fileno())
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            temporary.rename(target)  # nothing had the name just now
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _same_content(source: Path, target: Path) -> bool:
    """Return whether a target is this file's copy."""
    return source.stat().st_mtime_ns == target.stat().st_mtime_ns and filecmp.cmp(source, target, shallow=False)
