"""Lists objects whose keys grow: those after the last one, and from time to time all. Runs on executors."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sluiceway.connectors.folder.identity import FileStatus
from sluiceway.connectors.folder.listing import MAGIC, Listing, Names, PassesOver, Refused, Scan, is_match, names_of
from sluiceway.connectors.folder.remote_files import RemoteStorage

_BUSY_SHARE = 20


class _Prefix(NamedTuple):
    """A common begin of patterns, and whether they match objects with a slash after it."""

    path: str
    is_deep: bool


class KeyListing(Listing):
    """The objects of patterns, in the order of their keys. A scan costs a request for each pattern's prefix if nothing is new.

    Args:
        paths, exclude, without, storage: as for ``Listing``, but a path without a pattern is a folder.
        whole_seconds: the time between two scans of all objects. They take at most a twentieth of the time.
    """

    def __init__(
        self, paths: Sequence[str], exclude: Sequence[str], without: str, storage: RemoteStorage, whole_seconds: float
    ) -> None:
        super().__init__(paths, exclude, without, storage)
        self._objects = storage
        self._whole_seconds = whole_seconds
        self._whole_due = 0.0
        self._last: dict[_Prefix, str] = {}  # the last path that was listed and matches
        self._prefixes: dict[_Prefix, list[Names]] = {}
        for pattern in self._patterns:
            whole = pattern if MAGIC.search(pattern) else f"{pattern}/*"
            prefix = MAGIC.split(whole)[0]
            self._prefixes.setdefault(_Prefix(prefix, "/" in whole[len(prefix) :]), []).append(names_of(whole))

    def scan(self, refused: Refused, passes_over: PassesOver) -> Scan:
        began = time.monotonic()
        is_whole = began >= self._whole_due
        found: dict[str, FileStatus] = {}
        last: dict[_Prefix, str] = {}
        for prefix, patterns in self._prefixes.items():
            last[prefix] = "" if is_whole else self._last.get(prefix, "")
            for path, status in self._objects.objects(prefix.path, last[prefix], is_deep=prefix.is_deep):
                # An object that does not match moves nothing on: one with a greater key than all that match would hide them.
                if self._is_wanted(path) and is_match(path, patterns):
                    last[prefix] = path
                    if not passes_over(path, status):
                        found[path] = status
        before, self._last = self._last, last  # now that nothing has failed
        if is_whole:
            ended = time.monotonic()
            self._whole_due = ended + max(self._whole_seconds, _BUSY_SHARE * (ended - began))
        return Scan(found, is_whole=is_whole, is_late=functools.partial(_is_late, before))


def _is_late(last: Mapping[_Prefix, str], path: str) -> bool:
    known = [each for prefix, each in last.items() if path.startswith(prefix.path)]
    return bool(known) and all(path <= each for each in known)
