"""Options that are lists of pairs with a colon: ``old:new``."""

from __future__ import annotations

from collections.abc import Iterator

from sluiceway.config.definition import ConfigValue
from sluiceway.data import java_text
from sluiceway.errors import ConfigError

COLON_PAIRS = "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>"
"""What the validators of such options say of themselves."""


def parse_mappings(value: ConfigValue, *, allow_single: bool) -> Iterator[tuple[str, str | None]]:
    """Yield the pairs of a list option; raises ConfigError at an entry that is not one.

    With ``allow_single`` an entry without a colon is a pair whose second half is None. Kafka's text calls every such option
    ``renames``.
    """
    entries = value if isinstance(value, list) else []
    for entry in entries:
        parts = java_split(entry)
        if not parts and allow_single:  # Connect then looks at the parts before it counts them
            raise IndexError("Index 1 out of bounds for length 0")
        if len(parts) == 2:
            yield parts[0], parts[1]
        elif len(parts) == 1 and allow_single:
            yield parts[0], None
        else:
            raise ConfigError("renames", java_text(value), f"Invalid rename mapping: {entry}")


def java_split(text: str) -> list[str]:
    """Return what Java's ``text.split(":")`` does: the empty parts at the end are left out, unless there is no colon."""
    parts = text.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts
