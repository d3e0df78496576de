"""The interface of storages: where files are, and what is done with them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from sluiceway.connectors.folder.content import File
from sluiceway.connectors.folder.identity import FileStatus

_ROOT = re.compile(r"(?:hdfs|viewfs|sftp)://[^/]*|[a-z0-9]+:/(?=/)")


class Entry(NamedTuple):
    """A file in a folder."""

    name: str
    status: FileStatus


def by_length(name: str) -> tuple[int, str]:
    """Return what the names in a folder are sorted by: a log comes before the links to its generations."""
    return len(name), name


class Storage(Protocol):
    """A file system or an object store. Paths begin with its root, ``""`` for the local one. Methods raise OSError."""

    announces: bool
    """Whether the kernel announces changes. Other storages have a clock of their own."""

    def open(self, path: str) -> File:
        """Open a file, a compressed one as what it contains."""

    def status(self, path: str) -> FileStatus | None:
        """Return a file's status, None if there is no file."""

    def recent_status(self, path: str) -> FileStatus | None:
        """Return a file's status, which may be a second old where each question is a request."""

    def seems_gone(self, path: str) -> bool:
        """Return whether a file was not there when it was asked for last. Asks nothing."""

    def files(self, folder: str) -> Iterator[Entry]:
        """Yield the files in a folder, those with short names first; none if there is no folder."""

    def is_folder(self, path: str) -> bool: ...

    def is_file(self, path: str) -> bool: ...

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, in order; none if there is no folder, or it may not be read."""

    def below(self, folder: str) -> Iterator[str]:
        """Yield a folder, and the folders below it at any depth, in order."""

    def real_path(self, path: str) -> str:
        """Return the path without links."""

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""

    def move(self, path: str, folder: str, below: str) -> str:
        """Move a file to a folder, with the folders that it has below another one. It never replaces a file.

        Returns:
            Its new path, "" if it is not there any more.

        Raises:
            OSError: the file stays where it is.
        """

    def tag(self, path: str, key: str, value: str) -> None:
        """Give a file a tag and keep its others, if it is there."""

    def close(self) -> None:
        """Release the connection."""


def root_of_storage(path: str) -> str:
    """Return what a path begins with before its first folder or bucket: ``hdfs://host:port``, ``s3:/``, or "" if it is local."""
    found = _ROOT.match(path)
    return found[0] if found else ""
