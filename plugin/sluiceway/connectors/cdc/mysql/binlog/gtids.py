"""GTID sets of MariaDB and MySQL: parsing, adding transactions, comparison. No I/O."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass
class MariaDbGtidSet:
    """The last transaction of each domain and server, as in ``0-223344-917,1-5-3``."""

    positions: dict[tuple[int, int], int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MariaDbGtidSet:
        positions = {}
        for gtid in filter(None, (part.strip() for part in text.split(","))):
            domain, server, sequence = (int(number) for number in gtid.split("-"))
            positions[domain, server] = sequence
        return cls(positions)

    def add(self, gtid: str) -> None:
        """Add one transaction: it replaces the position of its domain, whichever server wrote it before."""
        domain, server, sequence = (int(number) for number in gtid.split("-"))
        for key in [key for key in self.positions if key[0] == domain]:
            del self.positions[key]
        self.positions[domain, server] = sequence

    def filtered(self, keep: Callable[[str], bool]) -> MariaDbGtidSet:
        """Return the positions whose ``domain-server`` the function accepts."""
        return MariaDbGtidSet({key: value for key, value in self.positions.items() if keep(f"{key[0]}-{key[1]}")})

    def contains(self, gtid: str) -> bool:
        domain, _, sequence = (int(number) for number in gtid.split("-"))
        return any(key[0] == domain and value >= sequence for key, value in self.positions.items())

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{sequence}" for (domain, server), sequence in sorted(self.positions.items()))


_TAGGED = 1  # the format of sets with tags

Interval = tuple[int, int]
"""First and last transaction number, both included."""


@dataclass
class MySqlGtidSet:
    """Executed transaction numbers of each server, as in ``3e11fa47-…:1-5:11,…``; tags are part of the source's name."""

    intervals: dict[str, list[Interval]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MySqlGtidSet:
        result = cls()
        for part in filter(None, (part.strip() for part in text.replace("\n", "").split(","))):
            source, *ranges = part.split(":")
            name = source.strip().lower()
            for item in ranges:
                if not item[:1].isdigit():
                    name = f"{source.strip().lower()}:{item}"
                    continue
                first, _, last = item.partition("-")
                result._add(name, (int(first), int(last or first)))
        return result

    def _add(self, source: str, interval: Interval) -> None:
        merged: list[Interval] = []
        for first, last in sorted([*self.intervals.get(source, []), interval]):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        self.intervals[source] = merged

    def add(self, gtid: str) -> None:
        source, _, number = gtid.rpartition(":")
        intervals = self.intervals.get(source)
        if intervals and intervals[-1][1] + 1 == int(number):
            intervals[-1] = (intervals[-1][0], int(number))
        else:
            self._add(source, (int(number), int(number)))

    def filtered(self, keep: Callable[[str], bool]) -> MySqlGtidSet:
        """Return the intervals of the servers that the function accepts by their UUIDs."""
        kept = {source: ranges for source, ranges in self.intervals.items() if keep(source.partition(":")[0])}
        return MySqlGtidSet({source: list(ranges) for source, ranges in kept.items()})

    def contains(self, gtid: str) -> bool:
        source, _, number = gtid.rpartition(":")
        return any(first <= int(number) <= last for first, last in self.intervals.get(source, []))

    def contains_all(self, other: MySqlGtidSet) -> bool:
        return all(
            any(first <= a and b <= last for first, last in self.intervals.get(source, []))
            for source, ranges in other.intervals.items()
            for a, b in ranges
        )

    def minus(self, other: MySqlGtidSet) -> MySqlGtidSet:
        """Return the transactions that are not in ``other``."""
        result = MySqlGtidSet()
        for source, ranges in self.intervals.items():
            left = list(ranges)
            for start, end in other.intervals.get(source, []):
                left = [
                    part
                    for first, last in left
                    for part in ((first, min(last, start - 1)), (max(first, end + 1), last))
                    if part[0] <= part[1]
                ]
            if left:
                result.intervals[source] = left
        return result

    def encoded(self) -> bytes:
        """Return the form that COM_BINLOG_DUMP_GTID takes: sources with half-open intervals.

        Servers before MySQL 8.3 do not know the form with tags, so it is used only where there are some.
        """
        tagged = any(":" in source for source in self.intervals)
        sources = [_encoded_source(source, ranges, tagged=tagged) for source, ranges in sorted(self.intervals.items())]
        count = _TAGGED << 56 | len(sources) << 8 | _TAGGED if tagged else len(sources)
        return struct.pack("<Q", count) + b"".join(sources)

    def __str__(self) -> str:
        return ",".join(
            f"{source}:" + ":".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
            for source, ranges in sorted(self.intervals.items())
        )


def source_of(gtid: str) -> str:
    """Return what filters of sources match: a server's UUID, or MariaDB's domain and server as ``0-1``."""
    return gtid.partition(":")[0] if ":" in gtid else gtid.rpartition("-")[0]


def _encoded_source(source: str, ranges: Iterable[Interval], *, tagged: bool) -> bytes:
    server, _, tag = source.partition(":")
    length = bytes([len(tag) << 1]) if tagged else b""  # tags have at most 32 characters
    packed = [struct.pack("<QQ", first, last + 1) for first, last in ranges]
    return uuid.UUID(server).bytes + length + tag.encode() + struct.pack("<Q", len(packed)) + b"".join(packed)
