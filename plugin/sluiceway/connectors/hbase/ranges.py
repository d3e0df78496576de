"""Divides a table's row keys into ranges, each with a position of its own. No I/O.

Ranges start where regions do. Regions that split or merge later do not change what was read of a range: a scan passes from one
region to the next one. A split divides a range, so that more tasks can share the table; ranges are never joined. Keys are
written as HBase's shell shows them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sluiceway.api import Offset
from sluiceway.connectors.hbase.values import binary_text, from_binary_text, is_binary_text
from sluiceway.errors import ConnectError

TABLE, START = "table", "start"
SINCE, UNTIL, ROW = "since", "until", "row"
STARTS, PARENTS = "starts", "parents"
_FIRST = "-"  # stands for the empty key in lists
_EXAMPLE = f'One is {{"{STARTS}": "{_FIRST} m"}}, in order; {_FIRST} is the start of the table.'
_LATEST = 2**63 - 1
_MOST_RANGES = 1000  # so that a plan fits into a message


@dataclass(frozen=True, slots=True)
class Plan:
    """The keys at which ranges start, in order, and for those that were divided off later the start they were divided from."""

    starts: tuple[bytes, ...]
    parents: Mapping[bytes, bytes]

    def end(self, start: bytes) -> bytes:
        """Return the key before which a range ends; empty for the end of the table."""
        index = self.starts.index(start) + 1
        return self.starts[index] if index < len(self.starts) else b""

    def divided(self, starts: Sequence[bytes]) -> Plan:
        """Return the plan with further ranges that start at these keys, as far as there are not too many."""
        known, parents = sorted({b"", *self.starts}), dict(self.parents)
        new = _some(sorted(set(starts) - set(known)), _MOST_RANGES - len(known))
        if not self.starts:
            return Plan(tuple(sorted({b"", *new})), {})
        for start in new:
            parents[start] = max(each for each in known if each < start)
        return Plan(tuple(sorted({*known, *new})), parents)

    def units(self, stored: Collection[bytes]) -> list[tuple[bytes, ...]]:
        """Return the ranges in units that one task must have: one without a stored position takes that of its parent."""
        units: dict[bytes, list[bytes]] = {}
        for start in self.starts:
            root = start
            while root not in stored and root in self.parents:
                root = self.parents[root]
            units.setdefault(root, []).append(start)
        return [tuple(unit) for unit in units.values()]

    def to_offset(self) -> Offset:
        offset = {STARTS: keys_text(self.starts)}
        if self.parents:
            pairs = sorted(self.parents.items())
            offset[PARENTS] = " ".join(f"{_key_text(start)}<{_key_text(parent)}" for start, parent in pairs)
        return offset

    @classmethod
    def of(cls, offset: Offset | None) -> Plan:
        """Return the plan of an offset, without ranges if there is none. Raises ConnectError."""
        if offset is None:
            return cls((), {})
        try:
            starts = keys_of(str(offset[STARTS]))
            pairs = [pair.split("<") for pair in str(offset.get(PARENTS, "")).split()]
            parents = {_key(start): _key(parent) for start, parent in pairs}
        except (KeyError, ValueError) as error:
            raise ConnectError(f"{dict(offset)} does not say where ranges of row keys start: {error}. {_EXAMPLE}") from error
        in_order = bool(starts) and not starts[0] and list(starts) == sorted(set(starts))
        if not in_order or any({start, parent} - set(starts) or parent >= start for start, parent in parents.items()):
            raise ConnectError(f"{dict(offset)} does not say where ranges of row keys start. {_EXAMPLE}")
        return cls(starts, parents)


@dataclass(frozen=True, slots=True)
class Position:
    """The position in a range: cells older than ``since`` are read.

    During a pass over the range, ``until`` is where its time ends, and ``row`` the last row that was read.
    """

    since: int
    until: int | None = None
    row: bytes | None = None

    def to_offset(self) -> Offset:
        offset: dict[str, str | int] = {SINCE: self.since}
        if self.until is not None and self.row is not None:
            offset |= {UNTIL: self.until, ROW: binary_text(self.row)}
        return offset

    @classmethod
    def of(cls, offset: Offset) -> Position:
        """Return the position of an offset. Raises ConnectError."""
        since, until, row = offset.get(SINCE), offset.get(UNTIL), offset.get(ROW)
        times = [each for each in (since, until) if each is not None]
        if (
            since is None
            or not all(type(each) is int and 0 <= each < _LATEST for each in times)
            or times != sorted(times)
            or (until is None) != (row is None)
            or not (row is None or is_binary_text(row))
            or set(offset) - {SINCE, UNTIL, ROW}
        ):
            raise ConnectError(
                f'{dict(offset)} is no position in a table. One is {{"{SINCE}": 1767225600000}}: cells that are older, in ms '
                "since 1970, are read."
            )
        if until is None:
            return cls(int(str(since)))
        return cls(int(str(since)), int(str(until)), from_binary_text(str(row)))


def _some(keys: Sequence[bytes], most: int) -> Sequence[bytes]:
    """Return at most so many of the keys, at equal distances."""
    return keys[:: -(-len(keys) // most)] if most > 0 and keys else []


def keys_text(keys: Sequence[bytes]) -> str:
    """Return keys as one text."""
    return " ".join(map(_key_text, keys))


def keys_of(text: str) -> tuple[bytes, ...]:
    """Return the keys of a text. Raises ValueError."""
    return tuple(map(_key, text.split()))


def _key_text(key: bytes) -> str:
    if not key:
        return _FIRST
    text = binary_text(key).replace("<", "\\x3C")
    return "\\x2D" if text == _FIRST else text


def _key(text: str) -> bytes:
    return b"" if text == _FIRST else from_binary_text(text)
