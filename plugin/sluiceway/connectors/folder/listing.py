"""Finds the files of a config's patterns, and the share of each task. Runs on executors."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sluiceway.connectors.folder.identity import FileStatus
from sluiceway.connectors.folder.local_files import files_in
from sluiceway.connectors.folder.rotation import possible_logs

_MAGIC = re.compile(r"[*?\[]")


class Found(NamedTuple):
    """A file that matches a pattern."""

    path: str
    status: FileStatus


Refused = Callable[[str, OSError], None]
"""Called with a folder that cannot be read."""


class Listing:
    """The files of patterns. Each folder is read once for all of them.

    Args:
        paths: absolute paths of files, of folders, or patterns.
        exclude: patterns of names that are left out.
        without: a folder that is left out, with all below it; "" for none.
    """

    def __init__(self, paths: Sequence[str], exclude: Sequence[str], without: str = "") -> None:
        self._patterns = [path.rstrip("/") or "/" for path in paths]
        self._exclude = re.compile("|".join(fnmatch.translate(each) for each in exclude)) if exclude else None
        self._without = without

    def files(self, folders: Mapping[str, Sequence[re.Pattern[str]]], refused: Refused) -> Iterator[Found]:
        """Yield each file of folders once; of a link, it is the file that it leads to."""
        seen = set()
        for folder, names in folders.items():
            try:
                entries = list(files_in(folder))
            except OSError as error:
                refused(folder, error)
                continue
            for entry in sorted(entries):
                identity = entry.status[:2]
                if identity in seen or (self._exclude is not None and self._exclude.match(entry.name)):
                    continue
                if any(each.match(entry.name) for each in names):
                    seen.add(identity)
                    yield Found(f"{folder.rstrip('/')}/{entry.name}", entry.status)

    def folders(self) -> dict[str, list[re.Pattern[str]]]:
        """Return each folder that may have files of the patterns, with the patterns of their names, in order."""
        found: dict[str, list[re.Pattern[str]]] = {}
        for pattern in self._patterns:
            if not _MAGIC.search(pattern) and os.path.isdir(pattern):  # noqa: PTH112 (texts all along)
                found.setdefault(pattern, []).append(_compiled("*"))
                continue
            parent, _, name = pattern.rpartition("/")
            for folder in _expanded(parent):
                found.setdefault(folder, []).append(_compiled(name))
        return {folder: names for folder, names in sorted(found.items()) if not self._is_without(folder)}

    def _is_without(self, folder: str) -> bool:
        return bool(self._without) and (folder == self._without or folder.startswith(f"{self._without}/"))

    def base_of(self, path: str) -> str:
        """Return the folder without a pattern that a file was found below."""
        for pattern in self._patterns:
            fixed = _MAGIC.split(pattern)[0]
            base = pattern if fixed == pattern and path.startswith(f"{pattern}/") else fixed.rpartition("/")[0]
            if path.startswith(f"{base}/"):
                return base
        return path.rpartition("/")[0]


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


def _expanded(pattern: str) -> list[str]:
    """Return the folders of a pattern. Links to folders above are not followed with ``**``."""
    folders = [""]
    for part in pattern.split("/")[1:]:
        if part == "**":
            folders = [each for folder in folders for each in _below(folder)]
        elif _MAGIC.search(part):
            match = _compiled(part).match
            folders = [f"{folder}/{name}" for folder in folders for name in _subfolders(folder) if match(name)]
        else:
            folders = [f"{folder}/{part}" for folder in folders]
    return folders


def _below(folder: str) -> Iterator[str]:
    for path, subfolders, _ in os.walk(folder or "/"):
        subfolders.sort()
        yield path.rstrip("/")


def _subfolders(folder: str) -> list[str]:
    try:
        with os.scandir(folder or "/") as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except OSError:  # there is none, or it may not be read; os.walk leaves these out, too
        return []


def logs_of(paths: Iterable[str], known: Container[str]) -> dict[str, bool]:
    """Return the paths of logs, and whether rotated generations of them are among the files, so that new logs begin with these.

    A file whose name looks like a rotation's is a log of its own unless the log is there, or ``known``.
    """
    names = set(paths)
    found = dict.fromkeys(sorted(names), False)
    for path in names:
        log = next((each for each in possible_logs(path) if each in names or each in known), None)
        if log is not None:
            del found[path]
            found[log] = True
    return found


def is_of_task(path: str, task: int, tasks: int) -> bool:
    """Return whether a file belongs to a task: to the one with the highest hash for it.

    Another number of tasks moves only the files of the tasks that are new or gone (rendezvous hashing, Thaler and Ravishankar,
    1996).
    """
    return max(range(tasks), key=lambda each: hashlib.blake2b(f"{each}:{path}".encode(), digest_size=8).digest()) == task
