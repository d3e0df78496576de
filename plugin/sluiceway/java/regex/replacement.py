"""Java's replacement texts: ``$1``, ``${name}`` and ``\\`` in what a match is replaced by."""

from __future__ import annotations

import re
from collections.abc import Mapping


def expand(replacement: str, match: re.Match[str], names: Mapping[str, int], count: int) -> str:
    """Return what a match is replaced by (``Matcher.appendReplacement``). A group that took no part is empty.

    The match is of a translated pattern, which calls its groups ``g1`` to ``g<count>``; ``names`` has the numbers of named ones.

    Raises ValueError (Java's IllegalArgumentException) for a malformed replacement, IndexError for a group that is none.
    """
    if "$" not in replacement and "\\" not in replacement:
        return replacement
    parts: list[str] = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        if character == "\\":
            if at + 1 == len(replacement):
                raise ValueError("character to be escaped is missing")
            parts.append(replacement[at + 1])
            at += 2
        elif character == "$":
            group, at = _group(replacement, at + 1, names, count)
            parts.append(match[f"g{group}" if group else 0] or "")
        else:
            parts.append(character)
            at += 1
    return "".join(parts)


def _group(replacement: str, at: int, names: Mapping[str, int], count: int) -> tuple[int, int]:
    """Return the number of the group that is referred to, and where the text goes on."""
    if at == len(replacement):
        raise ValueError("Illegal group reference: group index is missing")
    if replacement[at] == "{":
        return _named(replacement, at + 1, names)
    if not _is_digit(replacement[at]):
        raise ValueError("Illegal group reference")
    group = int(replacement[at])
    if group > count:
        raise IndexError(f"No group {group}")
    at += 1
    while at < len(replacement) and _is_digit(replacement[at]) and group * 10 + int(replacement[at]) <= count:
        group = group * 10 + int(replacement[at])
        at += 1
    return group, at


def _named(replacement: str, start: int, names: Mapping[str, int]) -> tuple[int, int]:
    end = start
    while end < len(replacement) and replacement[end].isascii() and replacement[end].isalnum():
        end += 1
    name = replacement[start:end]
    if not name:
        raise ValueError("named capturing group has 0 length name")
    if end == len(replacement) or replacement[end] != "}":
        raise ValueError("named capturing group is missing trailing '}'")
    if _is_digit(name[0]):
        raise ValueError(f"capturing group name {{{name}}} starts with digit character")
    if name not in names:
        raise ValueError(f"No group with name {{{name}}}")
    return names[name], end + 1


def _is_digit(character: str) -> bool:
    return "0" <= character <= "9"
