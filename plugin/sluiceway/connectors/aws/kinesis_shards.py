"""The shards of a stream, the positions in them, and the rules which of them are read from where. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import Offset, Partition
from sluiceway.errors import ConnectError

STREAM, SHARD = "stream", "shard"
SEQUENCE, SUBSEQUENCE, FROM, READ, ENDED = "sequence", "subsequence", "from", "read", "ended"
_NUMBERS = (SUBSEQUENCE, FROM, READ)
OLDEST = 0
"""The time from which a shard is read from its oldest record on."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a stream. ``parents`` are those that it was made of by a split or a merge, which may have expired."""

    id: str
    parents: Sequence[str] = ()
    closed: bool = False

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Shard:
        """Return a shard, as ListShards gives it."""
        parents = [found[name] for name in ("ParentShardId", "AdjacentParentShardId") if found.get(name)]
        return cls(found["ShardId"], tuple(parents), "EndingSequenceNumber" in found["SequenceNumberRange"])


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a shard. Times are milliseconds since the epoch.

    Attributes:
        sequence: the number of the last record that was read; None before there was one.
        subsequence: the last one of its aggregated records that was read; None for all.
        since: without a sequence, the arrival of the records to begin with; None for those to come.
        read: the time up to which the shard was read; None if it is not known.
        ended: whether the shard was read to its end.
    """

    sequence: str | None = None
    subsequence: int | None = None
    since: int | None = None
    read: int | None = None
    ended: bool = False

    @classmethod
    def of(cls, offset: Offset) -> Position:
        """Return the position of an offset. Raises ConnectError for one that the source does not make."""
        known = {SEQUENCE: str, ENDED: bool, **dict.fromkeys(_NUMBERS, int)}
        is_right = all(type(value) is known.get(key) for key, value in offset.items())
        has_numbers = is_right and all(str(offset.get(each, 0)).isdigit() for each in (SEQUENCE, *_NUMBERS))
        if not has_numbers or not {SEQUENCE, FROM, ENDED} & set(offset):
            raise ConnectError(
                f'{dict(offset)} is no offset of a shard: {{"{SEQUENCE}": "495..."}} is behind a record, '
                f'{{"{FROM}": 1790000000000}} before the records of a time in milliseconds, {{"{FROM}": 0}} before the oldest '
                f'one, and {{"{ENDED}": true}} at the end of a shard that is closed.'
            )
        given: Mapping[str, Any] = offset
        return cls(given.get(SEQUENCE), given.get(SUBSEQUENCE), given.get(FROM), given.get(READ), bool(given.get(ENDED)))

    def to_offset(self) -> Offset:
        found = {
            SEQUENCE: self.sequence,
            SUBSEQUENCE: self.subsequence,
            FROM: self.since if self.sequence is None else None,
            READ: self.read,
            ENDED: self.ended or None,
        }
        return {key: value for key, value in found.items() if value is not None}


def partition_of(stream: str, shard: str) -> Partition:
    return {STREAM: stream, SHARD: shard}


def with_parents(shards: Iterable[Shard]) -> list[str]:
    """Return the ids of shards and of their parents, also of those that have expired, in order."""
    return sorted({each for shard in shards for each in (shard.id, *shard.parents)})


def unfinished(shards: Sequence[Shard], stored: Mapping[str, Position], since: int | None) -> dict[str, Position]:
    """Return the shards that are not read to their ends, and where to continue.

    A shard without a position is read from its beginning if an ancestor was read. Else it is read from ``since`` on, as the
    config says; None is for records to come, which closed shards do not have. Raises ConnectError if the stream was created
    again.
    """
    known = {shard.id: shard for shard in shards}

    def follows(shard: Shard, depth: int = 0) -> bool:
        """Return whether an ancestor was read."""
        if depth > len(known):
            return False
        parents = [known[each] for each in shard.parents if each in known]
        return any(each in stored for each in shard.parents) or any(follows(each, depth + 1) for each in parents)

    found: dict[str, Position] = {}
    for shard in sorted(shards, key=lambda each: each.id):
        own = stored.get(shard.id)
        if own is not None:
            if own.ended and not shard.closed:
                raise ConnectError(
                    f"Shard {shard.id} was read to its end, and is open: the stream was deleted and created again. To read it, "
                    "stop the connector and reset its offsets."
                )
            if not own.ended:
                found[shard.id] = own
        elif follows(shard):
            found[shard.id] = Position(since=OLDEST)
        elif since is not None or not shard.closed:
            found[shard.id] = Position(since=since)
    return found


def expired_parents(shards: Sequence[Shard], stored: Mapping[str, Position]) -> list[str]:
    """Return the shards that were not read to their ends before all of their records were trimmed."""
    listed = {shard.id for shard in shards}
    parents = {each for shard in shards for each in shard.parents}
    return sorted(each for each in parents - listed if each in stored and not stored[each].ended)


def families(shards: Sequence[Shard], left: Iterable[str]) -> dict[str, list[str]]:
    """Return the shards that are left in groups of those made of one another, which one task reads in order.

    The key of a group is its first shard.
    """
    root = {each: each for each in left}

    def find(shard: str) -> str:
        while root[shard] != shard:
            shard = root[shard]
        return shard

    for shard in shards:
        for parent in shard.parents:
            if shard.id in root and parent in root:
                first, second = sorted((find(shard.id), find(parent)))
                root[second] = first
    found: dict[str, list[str]] = {}
    for each in sorted(root):
        found.setdefault(find(each), []).append(each)
    return found
