"""Reads the parts of a pattern that stand for one character out of some: ``[a-z&&[^b]]``, ``\\d``, ``\\p{Lu}``, ``\\x41``."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from sluiceway.java.regex import character_sets as sets
from sluiceway.java.regex.character_sets import Ranges
from sluiceway.java.regex.text import Cursor, Flags

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


def cased(ranges: Ranges, flags: Flags) -> Ranges:
    """Return a set as it is under the flags i and u."""
    return sets.ignoring_case(ranges, unicode=flags.u) if flags.i else ranges


def read_class(cursor: Cursor, flags: Flags) -> Ranges:
    """Read what follows an opening bracket, with its closing one."""
    negated = cursor.take("^")
    before_and: Ranges | None = None  # what the parts before && have in common
    current, empty = sets.EMPTY, True
    while True:
        if not cursor.more:
            raise cursor.error("Unclosed character class", len(cursor.text) - 1)
        if cursor.skip_comment(flags):
            continue
        if cursor.peek() == "]" and not (empty and before_and is None):
            cursor.at += 1
            break
        if cursor.take("&&"):
            if not empty:
                before_and = current if before_and is None else sets.intersection(before_and, current)
            current, empty = sets.EMPTY, True
            continue
        current = sets.union(current, read_class(cursor, flags) if cursor.take("[") else _item(cursor, flags))
        empty = False
    if before_and is not None:
        current = before_and if empty else sets.intersection(before_and, current)
    return sets.complement(current) if negated else current


def _item(cursor: Cursor, flags: Flags) -> Ranges:
    """Read a character, a range of characters, or a set that an escape names."""
    first = _atom(cursor, flags)
    if not isinstance(first, str):
        return first
    is_range = cursor.text[cursor.at : cursor.at + 1] == "-" and cursor.text[cursor.at + 1 : cursor.at + 2] not in ("", "[", "]")
    if not is_range:
        return cased(sets.of(first), flags)
    cursor.at += 1
    last = _atom(cursor, flags)
    if not isinstance(last, str) or last < first:
        raise cursor.error("Illegal character range")
    return cased(sets.span(first, last), flags)


def _atom(cursor: Cursor, flags: Flags) -> str | Ranges:
    if not cursor.take("\\"):
        return cursor.next()
    if cursor.take("Q"):
        return cased(sets.of(cursor.quotation()), flags)
    named = _named_set(cursor, flags)
    return _character(cursor) if named is None else named


def read_escape(cursor: Cursor, flags: Flags) -> Ranges:
    """Read what follows a backslash and stands for one character."""
    named = _named_set(cursor, flags)
    return cased(sets.of(_character(cursor)), flags) if named is None else named


def _named_set(cursor: Cursor, flags: Flags) -> Ranges | None:
    """Read a set such as ``d`` or ``p{Lu}``; None where there is a character instead."""
    if not cursor.more:
        raise cursor.error("Unexpected internal error", cursor.at)
    letter = cursor.peek()
    if letter in "pP":
        cursor.at += 1
        ranges = cased(_property(cursor, flags), flags)
    else:
        find = _SETS.get(letter.lower())
        if find is None:
            return None
        cursor.at += 1
        ranges = find(flags)
    return sets.complement(ranges) if letter.isupper() else ranges


_SETS: dict[str, Callable[[Flags], Ranges]] = {
    "d": lambda flags: sets.named("Digit", unicode=flags.U) or sets.DIGIT,
    "s": lambda flags: sets.named("Space", unicode=flags.U) or sets.SPACE,
    "w": lambda flags: sets.unicode_word() if flags.U else sets.WORD,
    "h": lambda _: sets.HORIZONTAL,
    "v": lambda _: sets.VERTICAL,
}


def _property(cursor: Cursor, flags: Flags) -> Ranges:
    name = cursor.until("}") if cursor.take("{") else cursor.next()
    if name is None:
        raise cursor.error("Unclosed character family", len(cursor.text))
    found = sets.named("LC" if flags.i and name in ("Lu", "Ll", "Lt") else name, unicode=flags.U)
    if found is None:
        raise cursor.error(f"Unknown character property name {{{name}}}")
    return found


def _character(cursor: Cursor) -> str:
    """Read the rest of an escape that stands for one certain character."""
    letter = cursor.next()
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter == "x":
        return _hex(cursor, cursor.until("}") or "" if cursor.take("{") else _next_few(cursor, 2))
    if letter == "u":
        return _hex(cursor, _next_few(cursor, 4))
    if letter == "c":
        return chr(ord(cursor.next()) ^ 64)
    if letter == "0":
        return _octal(cursor)
    if letter == "N" and cursor.take("{"):
        name = cursor.until("}") or ""
        try:
            return unicodedata.lookup(name)
        except KeyError:
            raise cursor.error(f"Unknown character name [{name}]") from None
    if letter.isascii() and letter.isalnum():
        raise cursor.error("Illegal/unsupported escape sequence", cursor.at - 1)
    return letter


def _next_few(cursor: Cursor, count: int) -> str:
    text = cursor.text[cursor.at : cursor.at + count]
    cursor.at += len(text)
    return text if len(text) == count else ""


def _hex(cursor: Cursor, digits: str) -> str:
    try:
        return chr(int(digits, 16))
    except (ValueError, OverflowError):
        raise cursor.error("Illegal hexadecimal escape sequence") from None


def _octal(cursor: Cursor) -> str:
    start = cursor.at
    longest = 3 if cursor.text[start : start + 1] in ("0", "1", "2", "3") else 2
    while cursor.more and cursor.at < start + longest and "0" <= cursor.peek() <= "7":
        cursor.at += 1
    if cursor.at == start:
        raise cursor.error("Illegal octal escape sequence")
    return chr(int(cursor.text[start : cursor.at], 8))
