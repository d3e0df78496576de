r"""Expands Java's replacement texts: ``$1``, ``${name}`` and ``\`` (``Matcher.appendReplacement``)."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway.java.regex.cursor import Cursor

if TYPE_CHECKING:
    import regex


def expand(replacement: str, match: regex.Match[str], names: Mapping[str, int]) -> str:
    """Return what replaces a match; a group that did not take part in it is empty. ``names`` has the numbers of named groups.

    Raises ValueError (Java's IllegalArgumentException) for a malformed replacement, IndexError for an unknown group number.
    """
    if "$" not in replacement and "\\" not in replacement:
        return replacement
    cursor, expanded = Cursor(replacement), ""
    while cursor.more:
        character = cursor.next()
        if character == "$":
            expanded += match[_group(cursor, names, match.re.groups)] or ""
        elif character == "\\" and not cursor.more:
            raise ValueError("character to be escaped is missing")
        else:
            expanded += cursor.next() if character == "\\" else character
    return expanded


def _group(cursor: Cursor, names: Mapping[str, int], count: int) -> int:
    """Read the rest of a reference to a group after ``$``, and return the group's number."""
    if not cursor.more:
        raise ValueError("Illegal group reference: group index is missing")
    if cursor.take("{"):
        return _named(cursor, names)
    if cursor.peek() not in string.digits:
        raise ValueError("Illegal group reference")
    group = int(cursor.next())
    if group > count:
        raise IndexError(f"No group {group}")
    while cursor.more and cursor.peek() in string.digits and group * 10 + int(cursor.peek()) <= count:
        group = group * 10 + int(cursor.next())
    return group


def _named(cursor: Cursor, names: Mapping[str, int]) -> int:
    name = cursor.take_while(string.ascii_letters + string.digits)
    if not name:
        raise ValueError("named capturing group has 0 length name")
    if not cursor.take("}"):
        raise ValueError("named capturing group is missing trailing '}'")
    if name[0] in string.digits:
        raise ValueError(f"capturing group name {{{name}}} starts with digit character")
    if name not in names:
        raise ValueError(f"No group with name {{{name}}}")
    return names[name]
