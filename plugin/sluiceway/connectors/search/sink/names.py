"""Names of indexes and data streams, from topics. No I/O."""

from __future__ import annotations

from sluiceway.errors import DataError

_MOST_BYTES = 255
_NOT_FIRST = "-_+"


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
