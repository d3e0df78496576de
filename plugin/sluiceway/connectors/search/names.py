"""Names of indexes and data streams, from topics. No I/O."""

from __future__ import annotations

_MOST_BYTES = 255
_NOT_FIRST = "-_+"


def index_name(topic: str) -> str:
    """Return the index of a topic, as Confluent's and Aiven's sinks name it: in lower case, and what an index may be called."""
    name = topic.lower().replace(":", "_").encode()[:_MOST_BYTES].decode(errors="ignore")
    if name in (".", ".."):
        return name.replace(".", "dot")
    return name[1:] if name[:1] and name[0] in _NOT_FIRST and len(name) > 1 else name
