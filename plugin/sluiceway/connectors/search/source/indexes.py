"""The indexes that a source reads, and their shards, which its tasks share. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from sluiceway.errors import ConnectError

SHARDS = "shards"
"""The key of a task's shards, which the connector sets."""

_NOT_IN_TOPICS = re.compile(r"[^a-zA-Z0-9._-]")
_HIDDEN = "."


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of an index, the unit of work. ``origin`` is the data stream of the index, or the index: it names the topic."""

    index: str
    number: int
    uuid: str
    origin: str

    @property
    def partition(self) -> dict[str, Any]:
        """The source partition."""
        return {"index": self.index, "shard": self.number}

    def __str__(self) -> str:
        return f"shard {self.number} of {self.index}"


@dataclass(frozen=True, slots=True)
class Index:
    """An index as its server describes it. ``refresh`` is its refresh interval, such as ``30s``; None is the server's."""

    name: str
    uuid: str
    shards: int
    origin: str
    aliases: Mapping[str, Mapping[str, Any]]
    refresh: str | None = None

    def units(self) -> list[Shard]:
        return [Shard(self.name, number, self.uuid, self.origin) for number in range(self.shards)]


def indexes_of(answer: Mapping[str, Any], patterns: Sequence[str]) -> list[Index]:
    """Return the indexes of a server's answer for patterns, by name.

    Leaves out an index whose name begins with a dot, as a system's do, unless a pattern does too, an alias names it or it is of a
    data stream. Raises ConnectError for an index that is reached by an alias with a filter, because all of it would be read.
    """
    found = [_index(name, each) for name, each in sorted(answer.items())]
    hidden = any(each.startswith(_HIDDEN) for each in patterns)
    for index in found:
        for alias in patterns:
            if index.aliases.get(alias, {}).get("filter"):
                raise ConnectError(
                    f"The alias {alias} has a filter, which a point in time of its indexes does not apply. Name the index "
                    f"{index.name} instead, and set query to the filter."
                )
    return [
        each
        for each in found
        if hidden or not each.name.startswith(_HIDDEN) or each.origin != each.name or not each.aliases.keys().isdisjoint(patterns)
    ]


def _index(name: str, answer: Mapping[str, Any]) -> Index:
    settings = answer["settings"]["index"]
    shards, stream = int(settings["number_of_shards"]), answer.get("data_stream", name)
    return Index(name, str(settings["uuid"]), shards, str(stream), answer.get("aliases", {}), settings.get("refresh_interval"))


def missing(patterns: Sequence[str], found: Sequence[Index]) -> list[str]:
    """Return the patterns, not excluding ones, that stand for none of the indexes; a wildcard only if there are no indexes."""
    known = {name for index in found for name in (index.name, index.origin, *index.aliases)}
    wanted = [each for each in patterns if not each.startswith("-")]
    return [each for each in wanted if (not found if "*" in each else each not in known)]


def topic_of(prefix: str, origin: str) -> str:
    """Return the topic of an index or data stream; what a topic's name must not have becomes an underscore."""
    return _NOT_IN_TOPICS.sub("_", f"{prefix}{origin}")


def to_config(shards: Iterable[Shard]) -> str:
    """Return shards as a value of a task's config."""
    return json.dumps([astuple(each) for each in shards])


def from_config(text: str) -> list[Shard]:
    return [Shard(*each) for each in json.loads(text)]
