"""Finds the files of a config's patterns. Runs on executors."""

from __future__ import annotations

import fnmatch
import functools
import glob
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sluiceway.config.intervals import Interval
from sluiceway.connectors.folder.identity import FileStatus
from sluiceway.connectors.folder.local_files import LocalStorage
from sluiceway.connectors.folder.storage import Storage, root_of_storage

MAGIC = re.compile(r"[*?\[]")
_LOCAL = LocalStorage()
_NANOSECONDS = 1_000_000  # of a millisecond


class Found(NamedTuple):
    """A file that matches a pattern."""

    path: str
    status: FileStatus


Refused = Callable[[str, OSError], None]
"""Called with a folder that cannot be read."""

PassesOver = Callable[[str, FileStatus], bool]
"""Called with each file; true for one that need not be in the result, which has some hundred bytes for each."""

Names = Sequence[str]
"""A pattern's names of folders, and that of the file."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The result of a scan.

    Attributes:
        found: the files that were not passed over, of all or only of new ones.
        folders: the folders that were looked at.
        is_whole: whether all files were looked at.
        is_late: whether a scan for new files only would not have found a path.
    """

    found: dict[str, FileStatus]
    folders: Collection[str] = ()
    is_whole: bool = True
    is_late: Callable[[str], bool] = lambda _path: False

    def of_interval(self, interval: Interval, path_time: Callable[[str], int] | None) -> Scan:
        """Return the files that were modified in an interval, or that have a time of it in their path, in nanoseconds."""
        start, end = interval.start * _NANOSECONDS, interval.end * _NANOSECONDS

        def time_of(path: str, status: FileStatus) -> int:
            return status.modified if path_time is None else path_time(path)

        return replace(self, found={path: status for path, status in self.found.items() if start <= time_of(path, status) < end})


class Listing:
    """The files of patterns. Each folder is read once for all of them.

    Args:
        paths: absolute paths of files, of folders, or patterns.
        exclude: patterns of names that are left out.
        without: a folder that is left out, with all below it; "" for none.
        storage: where the files are.
    """

    def __init__(self, paths: Sequence[str], exclude: Sequence[str], without: str = "", storage: Storage = _LOCAL) -> None:
        self._storage = storage
        stripped = [path.rstrip("/") or "/" for path in paths]
        self._patterns = [f"{each}/*" if each.endswith("/**") else each for each in stripped]
        folders = [f"{each}/*" for each in self._patterns if not MAGIC.search(each)]
        self._names = [names_of(each) for each in (*self._patterns, *folders)]
        self._exclude = re.compile("|".join(fnmatch.translate(each) for each in exclude)) if exclude else None
        self._bases = {*self._patterns, *(MAGIC.split(each)[0].rpartition("/")[0] for each in self._patterns)}
        self._without = storage.real_path(without) if without else ""

    def matches(self, path: str) -> bool:
        """Return whether a path would be one of the files."""
        return self._is_wanted(path) and is_match(path, self._names)

    def scan(self, refused: Refused, passes_over: PassesOver) -> Scan:
        """Return the files. Raises OSError."""
        folders = self.folders()
        files = self.files(folders, refused)
        return Scan({path: status for path, status in files if not passes_over(path, status)}, folders)

    def files(self, folders: Mapping[str, Sequence[re.Pattern[str]]], refused: Refused) -> Iterator[Found]:
        """Yield each file of folders once; of a link, it is the file that it leads to."""
        seen: dict[int, set[int]] = {}  # the inodes of each device
        for folder, names in folders.items():
            try:
                for entry in self._storage.files(folder):
                    inodes, inode = seen.setdefault(entry.status.device, set()), entry.status.inode
                    if inode in inodes or self._is_excluded(entry.name) or not any(each.match(entry.name) for each in names):
                        continue
                    inodes.add(inode)
                    if _is_text(entry.name):
                        yield Found(f"{folder.rstrip('/')}/{entry.name}", entry.status)
                    else:
                        refused(f"{folder}/{entry.name!a}", OSError("its name is not UTF-8"))
            except OSError as error:
                refused(folder, error)

    def folders(self) -> dict[str, list[re.Pattern[str]]]:
        """Return each folder that may have files of the patterns, with the patterns of their names, in order."""
        found: dict[str, list[re.Pattern[str]]] = {}
        for pattern in self._patterns:
            if self._storage.is_folder(pattern):
                found.setdefault(pattern, []).append(_compiled("*"))
                continue
            parent, _, name = pattern.rpartition("/")
            is_literal = self._storage.is_file(pattern)
            for folder in [parent] if is_literal else _expanded(parent, self._storage):
                found.setdefault(folder, []).append(_compiled(glob.escape(name) if is_literal else name))
        return {folder: names for folder, names in sorted(found.items()) if not self._is_without(folder)}

    def _is_excluded(self, name: str) -> bool:
        return self._exclude is not None and self._exclude.match(name) is not None

    def _is_wanted(self, path: str) -> bool:
        """Return whether a path may be one of the files, if it matches. Those with empty names are none."""
        folder, _, name = path.rpartition("/")
        no_empty = "//" not in path.removeprefix(root_of_storage(path)) and bool(name)
        return no_empty and not self._is_excluded(name) and not self._is_without(folder)

    def _is_without(self, folder: str) -> bool:
        if not self._without or folder in self._bases:
            return False  # nothing is moved to the folder that it was in
        real = self._storage.real_path(folder)
        return real == self._without or real.startswith(f"{self._without}/")

    def base_of(self, path: str) -> str:
        """Return the folder without a pattern that a file was found below."""
        for pattern in self._patterns:
            fixed = MAGIC.split(pattern)[0]
            base = pattern if path.startswith(f"{pattern}/") else fixed.rpartition("/")[0]
            if path.startswith(f"{base}/"):
                return base or "/"
        return path.rpartition("/")[0]


def _is_text(name: str) -> bool:
    """Return whether a name can be stored in an offset."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


def names_of(pattern: str) -> Names:
    return pattern.split("/")


def is_match(path: str, patterns: Iterable[Names]) -> bool:
    """Return whether a path matches a pattern, by its name alone."""
    names = path.split("/")
    return any(_fits(names, pattern) for pattern in patterns)


def _fits(names: Sequence[str], pattern: Names) -> bool:
    if not pattern or not names:
        return not pattern and not names
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return any(_fits(names[start:], rest) for start in range(len(names)))
    is_name = _compiled(first).match(names[0]) if MAGIC.search(first) else first == names[0]
    return bool(is_name) and _fits(names[1:], rest)


def _expanded(pattern: str, storage: Storage) -> list[str]:
    """Return the folders of a pattern."""
    root = root_of_storage(pattern)
    folders = [root]
    for part in pattern.removeprefix(root).split("/")[1:]:
        if part == "**":
            folders = [each for folder in folders for each in storage.below(folder)]
        elif MAGIC.search(part):
            match = _compiled(part).match
            folders = [f"{folder}/{name}" for folder in folders for name in storage.subfolders(folder) if match(name)]
        else:
            folders = [f"{folder}/{part}" for folder in folders]
    return folders
