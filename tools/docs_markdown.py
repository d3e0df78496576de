"""Formats Markdown for the generated reference pages. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CODE_SPAN = re.compile(r"(`[^`]*`)")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table; cells must not hold a bare ``|``."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def code(text: str) -> str:
    """Return text as a code span that may stand in a table cell."""
    return f"`{text}`".replace("|", "\\|")


def inline(text: str) -> str:
    """Return a docstring's text as Markdown: reStructuredText's code spans become Markdown's, and ``<`` is no tag."""
    parts = _CODE_SPAN.split(re.sub(r"\s+", " ", text).strip().replace("``", "`"))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;").replace("*", "\\*") for part in parts)


def cell(text: str) -> str:
    """Return ``inline`` text for a table cell."""
    return inline(text).replace("|", "\\|")
