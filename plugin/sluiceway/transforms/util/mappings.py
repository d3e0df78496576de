"""Parses options that are lists of pairs: ``old:new``."""

from __future__ import annotations

from collections.abc import Iterator

from sluiceway.config.definition import ConfigValue
from sluiceway.data import java_text
from sluiceway.errors import ConfigError

COLON_PAIRS = "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>"
"""The validators' description of such options in Kafka's documentation."""


def parse_mappings(value: ConfigValue, *, allow_single: bool) -> Iterator[tuple[str, str | None]]:
    """Yield the pairs of a list option. Raises ConfigError for an entry that is not a pair.

    With ``allow_single`` an entry without a colon is a pair whose second part is None. Kafka's message names every such option
    ``renames``.
    """
    entries = value if isinstance(value, list) else []
    for entry in entries:
        parts = java_split(entry)
        if not parts and allow_single:  # Connect reads the parts before it counts them
            raise IndexError("Index 1 out of bounds for length 0")
        if len(parts) == 2:
            yield parts[0], parts[1]
        elif len(parts) == 1 and allow_single:
            yield parts[0], None
        else:
            raise ConfigError("renames", java_text(value), f"Invalid rename mapping: {entry}")


def java_split(text: str, separator: str = ":") -> list[str]:
    """Split as Java's ``text.split(separator)`` does: without the empty parts at the end, unless there is no separator."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts
