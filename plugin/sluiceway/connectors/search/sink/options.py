"""The typed options of a search sink, from the keys of Confluent's or Aiven's connector."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluiceway.api import BatchLimits
from sluiceway.connectors.search.connection import Server
from sluiceway.errors import DataError

TOPIC_PLACEHOLDER = "${topic}"
MALFORMED = "behavior.on.malformed.documents"
RESOURCES = "topic.to.external.resource.mapping"
_MOST_BYTES = 255
_NOT_FIRST = "-_+"


class NullValues(enum.Enum):
    """The effect of a record without a value (``behavior.on.null.values``)."""

    IGNORE = "ignore"
    DELETE = "delete"
    FAIL = "fail"


class Malformed(enum.Enum):
    """The handling of a document that the server refuses (``behavior.on.malformed.documents``)."""

    IGNORE = "ignore"
    WARN = "warn"
    FAIL = "fail"
    REPORT = "report"
    """As IGNORE, and there must be a dead letter queue."""


class Ids(enum.Enum):
    """Where a document's id comes from."""

    KEY = "record.key"
    OFFSET = "topic.partition.offset"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class DataStream:
    """The data stream of a topic. ``name`` may contain ``${topic}``."""

    name: str
    template: str | None = None
    """An index template that is made if there is none of this name."""
    makes_template: bool = False
    """Whether an index template is made for a stream that has none."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The values of a search sink's config."""

    server: Server
    limits: BatchLimits
    ids: Ids = Ids.KEY
    ids_of_ignored_keys: Ids = Ids.OFFSET
    """The ids in topics whose keys are ignored."""
    topics_without_keys: frozenset[str] = frozenset()
    schemas: bool = True
    topics_without_schemas: frozenset[str] = frozenset()
    compact_maps: bool = True
    replace_nulls: bool = True
    upsert: bool = False
    nulls: NullValues = NullValues.IGNORE
    malformed: Malformed = Malformed.FAIL
    drop_invalid: bool = False
    version_header: str | None = None
    resources: Mapping[str, str] = field(default_factory=dict)
    """Indexes, aliases, or data streams of topics, which exist already."""
    resources_are_streams: bool = False
    stream: DataStream | None = None
    timestamp_fields: tuple[str, ...] = ()
    routing: str | None = None
    """A JSON pointer into the value, or the text ``key``."""
    indexes: Mapping[str, str] = field(default_factory=dict)
    """Indexes of topics that are not named after them; they are made."""

    def ids_of(self, topic: str) -> Ids:
        """Return where the ids of a topic's documents come from. A data stream would refuse the second record of a key."""
        ids = self.ids_of_ignored_keys if topic in self.topics_without_keys else self.ids
        return Ids.OFFSET if ids is Ids.KEY and self.writes_streams else ids

    def uses_schema(self, topic: str) -> bool:
        return self.schemas and topic not in self.topics_without_schemas

    @property
    def writes_streams(self) -> bool:
        return self.stream is not None or self.resources_are_streams

    def target_of(self, topic: str) -> str:
        """Return the index, alias, or data stream of a topic."""
        named = self.resources.get(topic) or self.indexes.get(topic)
        if named is not None:
            return named
        if self.stream is not None:
            return self.stream.name.replace(TOPIC_PLACEHOLDER, index_name(topic))
        return index_name(topic)


def index_name(topic: str) -> str:
    """Return the index of a topic, as Confluent's and Aiven's sinks name it: in lower case, and what an index may be called.

    Raises DataError if nothing of the topic's name is left.
    """
    name = topic.lower().replace(":", "_").lstrip(_NOT_FIRST).encode()[:_MOST_BYTES].decode(errors="ignore")
    if name in (".", ".."):
        return name.replace(".", "dot")
    if not name:
        raise DataError(f"No index can be named after the topic {topic}. Name one with topic.index.map.")
    return name
