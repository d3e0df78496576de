"""Finds and orders the generations of a log by their names. No I/O.

The generations of ``app.log`` are ``app.log.1``, ``app.log.2.gz``, ``app.log-20261129``, ``app.log.old``, ``app.log.gz``, and
``app-2026-11-29.log``, in its own folder. A later date is newer. A higher number is older with logrotate and newer with others,
such as Log4j by default, which the times of modification tell.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sluiceway.connectors.folder.content import COMPRESSED
from sluiceway.connectors.folder.storage import Entry

_TAG = r"(?:old|\d[\d_.:TtZz+-]*)"
_AFTER = re.compile(rf"[._-]({_TAG})")
_DATE = re.compile(r"[._-](\d{4}-?\d\d-?\d\d[\d_.:TtZz+-]*)")
_LIKELY = re.compile(r".+\.\D\w*\.\d{1,3}")
_ROTATED = re.compile(rf"(.+?){_AFTER.pattern}")
_DATED = re.compile(rf"(.+?){_DATE.pattern}(\.[^.]+)".replace(r"(\d{4}", r"(?:\d{4}"))
_NUMBERS = re.compile(r"\d+")
_YEAR_FIRST = re.compile(r"(?:19|20)\d\d(?:\D|\d\d)")
_LARGEST_NUMBER = 9999  # of rotations; more digits are a date


class Generation(NamedTuple):
    """A file of a log.

    Attributes:
        path: its path.
        entry: its name and status.
        written: when it was written, in nanoseconds since the epoch, as far as is known: compressing may change the status.
        number: the number that a rotation has given to it; None if its name has a date or neither.
        date: the numbers of the date in its name, with the year first; empty if it has none.
    """

    path: str
    entry: Entry
    written: int = 0
    number: int | None = None
    date: tuple[int, ...] = ()


def rotated_generations(path: str, entries: Iterable[Entry]) -> list[Generation]:
    """Return the rotated generations of a log among the files of its folder, in no order.

    Of a file and its compressed copy, which is still being written or whose source is about to be deleted, the copy is left out.
    """
    folder, _, base = path.rpartition("/")
    stem, dot, extension = base.rpartition(".")
    found = {}
    for entry in entries:
        tag = _tag(entry.name, base, stem, dot + extension)
        if tag is not None:
            number = int(tag) if tag.isdigit() and int(tag) <= _LARGEST_NUMBER else None
            date = tuple(map(int, _NUMBERS.findall(tag))) if number is None and _YEAR_FIRST.match(tag) else ()
            found[entry.name] = Generation(f"{folder}/{entry.name}", entry, entry.status.modified, number, date)
    return [each for name, each in found.items() if not (name.endswith(COMPRESSED) and _plain(name) in found)]


def _tag(name: str, base: str, stem: str, extension: str) -> str | None:
    """Return what a rotation has added to the name, "" for no more than a compression, None if this is no generation."""
    plain = _plain(name)
    if plain == base:
        return None if name == base else ""
    if plain.startswith(base):
        match = _AFTER.fullmatch(plain, len(base))
    elif stem and plain.startswith(stem) and plain.endswith(extension):
        match = _DATE.fullmatch(plain, len(stem), len(plain) - len(extension))
    else:
        match = None
    return match[1] if match else None


def _plain(name: str) -> str:
    """Return the name without the extension of a compression."""
    return name.rpartition(".")[0] if name.endswith(COMPRESSED) else name


def possible_logs(path: str) -> list[str]:
    """Return the paths of the logs of which a file may be a generation, by its name; the shortest, most likely one first."""
    folder, _, name = path.rpartition("/")
    plain = _plain(name)
    found = [match[1] for match in (_ROTATED.fullmatch(plain),) if match]
    found += [match[1] + match[2] for match in (_DATED.fullmatch(plain),) if match]
    found += [plain] if plain != name else []
    return [f"{folder}/{each}" for each in found]


def root_of(path: str) -> str:
    """Return the shortest path of a log of which a file may be a generation, the same for all generations of a log."""
    while logs := possible_logs(path):
        path = logs[0]
    return path


def is_likely_rotated(path: str) -> bool:
    """Return whether a file is a generation although its log is not there, by a small number behind an extension."""
    return _LIKELY.fullmatch(_plain(path.rpartition("/")[2])) is not None


def oldest_first(generations: Iterable[Generation]) -> list[Generation]:
    """Return generations in the order in which they were written: by the numbers or the dates of their names where all have
    them, else by their time of modification, which compressing may change.
    """
    found = list(generations)
    if all(each.number is not None for each in found):
        numbered = sorted(found, key=lambda each: each.number or 0)
        return numbered if _counts_up(numbered) else numbered[::-1]
    if all(each.date for each in found):
        return sorted(found, key=lambda each: (each.date, each.written))
    return sorted(found, key=lambda each: (each.written, -(each.number or 0), each.date))


def _counts_up(numbered: Sequence[Generation]) -> bool:
    """Return whether a higher number is newer, by the times of files that are not compressed, if there are two."""
    plain = [each for each in numbered if not each.path.endswith(COMPRESSED)]
    times = [each.written for each in (plain if len(plain) > 1 else numbered)]
    later = sum(second > first for first, second in itertools.pairwise(times))
    return later > sum(second < first for first, second in itertools.pairwise(times))


def newer(generations: Sequence[Generation], known: Generation | None, modified: int) -> list[Generation]:
    """Return the generations after a known one, oldest first; if it is not there any more, those modified after it was."""
    ordered = oldest_first(generations)
    if known is not None:
        return ordered[ordered.index(known) + 1 :]
    return [each for each in ordered if min(each.written, each.entry.status.modified) > modified]
