"""Unpacks archives of plugins, such as those of Confluent Hub, without trusting what is in them."""

from __future__ import annotations

import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from sluiceway.errors import ConnectError

SUFFIXES = (".zip", ".tar.gz", ".tgz")
"""The suffixes of archives that can be unpacked."""

MOST_BYTES = 2 << 30
MOST_FILES = 20_000

_CHUNK = 1 << 20
_DAMAGED = (OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, tarfile.TarError)
_DRIVE = re.compile(r"^[A-Za-z]:")


class _Member(NamedTuple):
    """A file of an archive. ``content`` is None for a link or a device."""

    name: str
    content: IO[bytes] | None


def is_archive(path: Path) -> bool:
    """Return whether a file's name is that of an archive."""
    return path.name.lower().endswith(SUFFIXES)


def unpack(archive: Path, target: Path) -> None:
    """Unpack an archive into an empty folder. If all its files are in one folder, that folder is left out.

    Raises:
        ConnectError: the archive is damaged, has links, names outside of the folder, more than ``MOST_FILES`` files, or more than
            ``MOST_BYTES``.
    """
    left = MOST_BYTES
    try:
        for count, member in enumerate(_members(archive), 1):
            path = target / _safe(archive, member.name)
            if member.content is None:
                raise ConnectError(f"{archive} has {member.name}, which is not a regular file. It is not unpacked.")
            if count > MOST_FILES:
                raise ConnectError(f"{archive} has more than {MOST_FILES:,} files. It is not unpacked.")
            path.parent.mkdir(parents=True, exist_ok=True)
            left -= _copy(member.content, path, left)
            if left < 0:
                raise ConnectError(f"{archive} has more than {MOST_BYTES >> 30} GiB of files. It is not unpacked.")
    except _DAMAGED as error:
        raise ConnectError(f"{archive} cannot be unpacked ({error}). Download it again.") from error
    _without_single_folder(target)


def _members(archive: Path) -> Iterator[_Member]:
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if info.is_dir():
                    continue
                kind = stat.S_IFMT(info.external_attr >> 16)
                with opened.open(info) as content:
                    yield _Member(info.filename, content if kind in (0, stat.S_IFREG) else None)
        return
    with tarfile.open(archive, "r:gz") as tar:
        for each in tar:
            if not each.isdir():
                yield _Member(each.name, tar.extractfile(each) if each.isfile() else None)


def _safe(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or _DRIVE.match(name) or not path.parts or any(part == ".." or "\0" in part for part in path.parts):
        raise ConnectError(f"{archive} has the name {name!r}, which is outside of its folder. It is not unpacked.")
    return path


def _copy(source: IO[bytes], path: Path, most: int) -> int:
    """Copy a file and return its size, or a larger number than ``most``. What an archive says of sizes may be wrong."""
    size = 0
    with path.open("xb") as target:
        while size <= most and (chunk := source.read(_CHUNK)):
            target.write(chunk)
            size += len(chunk)
    return size


def _without_single_folder(target: Path) -> None:
    children = list(target.iterdir())
    if len(children) != 1 or not children[0].is_dir():
        return
    single = children[0].rename(target / ".single")  # it may have a child with its own name
    for child in single.iterdir():
        child.rename(target / child.name)
    single.rmdir()
