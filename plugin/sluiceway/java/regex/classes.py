r"""Translates the parts of a pattern that match one character: ``[a-z&&[^b]]``, ``\d``, ``\p{Lu}``, ``\x41``.

Each becomes a set of the ``regex`` package, whose version 1 has Java's nested sets and intersections. The flag i adds the
other case of each character to the set: Java ignores the case of ASCII characters only, unless the flag u is on.
"""

from __future__ import annotations

import functools
import string
import sys
import unicodedata

import regex

from sluiceway.java.regex import properties
from sluiceway.java.regex.cursor import Cursor
from sluiceway.java.regex.properties import Flags, property_set

_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


def literal(character: str, flags: Flags) -> str:
    """Return what matches one character."""
    items = _span(character, character, flags)
    return items if items == _quoted(character) else f"[{items}]"


def read_class(cursor: Cursor, flags: Flags) -> str:
    """Read the rest of a class after its opening bracket. Raises RegexError."""
    negated = cursor.take("^")
    operands: list[str] = []  # of &&
    items = ""
    while True:
        if not cursor.more:
            raise cursor.error("Unclosed character class", len(cursor.text) - 1)
        if "x" in flags and cursor.skip_comment():
            continue
        if cursor.peek() == "]" and (items or operands):
            break
        if cursor.take("&&"):
            operands += [items] if items else []
            items = ""
        else:
            items += read_class(cursor, flags) if cursor.take("[") else _item(cursor, flags)
    cursor.at += 1
    operands += [items] if items else []
    content = operands[0] if len(operands) == 1 else "&&".join(f"[{operand}]" for operand in operands)
    return f"[{'^' if negated else ''}{content}]"


def read_escape(cursor: Cursor, flags: Flags) -> str:
    """Read the rest of an escape that matches one character, after its backslash. Raises RegexError."""
    return _named_set(cursor, flags) or literal(_character(cursor), flags)


def _item(cursor: Cursor, flags: Flags) -> str:
    """Read a character, a range or a set that an escape names."""
    if cursor.take("\\"):
        if cursor.take("Q"):
            return "".join(_span(character, character, flags) for character in cursor.quotation())
        named = _named_set(cursor, flags)
        if named:
            return named
        first = _character(cursor)
    else:
        first = cursor.next()
    if cursor.peek() != "-" or cursor.text[cursor.at + 1 : cursor.at + 2] in ("", "[", "]"):
        return _span(first, first, flags)
    cursor.at += 1
    last = _character(cursor) if cursor.take("\\") else cursor.next()
    if last < first:
        raise cursor.error("Illegal character range")
    return _span(first, last, flags)


def _span(first: str, last: str, flags: Flags) -> str:
    """Return the items of a set that are the characters from first to last, in any case under the flag i."""
    items = _quoted(first) if first == last else f"{_quoted(first)}-{_quoted(last)}"
    if "i" not in flags:
        return items
    if "u" in flags:
        cases = regex.findall(f"(?i)[{items}]", _characters_with_case())
    else:
        cases = [character.swapcase() for character in string.ascii_letters if first <= character <= last]
    return items + "".join(_quoted(case) for case in cases if not first <= case <= last)


@functools.cache
def _characters_with_case() -> str:
    return "".join(
        letter for letter in map(chr, range(sys.maxunicode + 1)) if letter.lower() != letter or letter.upper() != letter
    )


def _quoted(character: str) -> str:
    return character if character.isascii() and character.isalnum() else f"\\U{ord(character):08x}"


def _named_set(cursor: Cursor, flags: Flags) -> str | None:
    r"""Read a set such as ``d`` or ``p{Lu}``; None, and nothing read, for another escape."""
    if not cursor.more:
        raise cursor.error("Unexpected internal error", cursor.at)
    letter = cursor.peek()
    if letter not in "dDsSwWhHvVpP":
        return None
    cursor.at += 1
    items = _property(cursor, flags) if letter in "pP" else _SETS[letter.lower()]["U" in flags]
    return f"[{'^' if letter.isupper() else ''}{items}]"


_SETS = {  # without and with the flag U
    "d": (properties.DIGIT, r"\p{Nd}"),
    "s": (properties.SPACE, r"\p{White_Space}"),
    "w": (properties.WORD, properties.UNICODE_WORD),
    "h": (properties.HORIZONTAL, properties.HORIZONTAL),
    "v": (properties.VERTICAL, properties.VERTICAL),
}


def _property(cursor: Cursor, flags: Flags) -> str:
    name = cursor.until("}") if cursor.take("{") else cursor.next()
    if name is None:
        raise cursor.error("Unclosed character family", len(cursor.text))
    found = property_set(name, flags)
    if found is None:
        raise cursor.error(f"Unknown character property name {{{name}}}")
    return found


def _character(cursor: Cursor) -> str:
    """Read the rest of an escape that stands for a single character."""
    letter = cursor.next()
    if letter in _CONTROL:
        return _CONTROL[letter]
    if letter in "xu":
        return _by_number(cursor, letter)
    if letter == "c":
        return chr(ord(cursor.next()) ^ 64)
    if letter == "0":
        digits = cursor.take_while(string.octdigits, 3 if cursor.peek() in ("0", "1", "2", "3") else 2)
        if not digits:
            raise cursor.error("Illegal octal escape sequence")
        return chr(int(digits, 8))
    if letter == "N" and cursor.take("{"):
        return _by_name(cursor, cursor.until("}") or "")
    if letter.isascii() and letter.isalnum():
        raise cursor.error("Illegal/unsupported escape sequence", cursor.at - 1)
    return letter


def _by_number(cursor: Cursor, letter: str) -> str:
    if letter == "x" and cursor.take("{"):
        digits = cursor.until("}") or ""
    else:
        count = 2 if letter == "x" else 4
        digits = cursor.take_while(string.hexdigits, count)
        digits = digits if len(digits) == count else ""
    try:
        return chr(int(digits, 16))
    except (ValueError, OverflowError):
        raise cursor.error("Illegal hexadecimal escape sequence") from None


def _by_name(cursor: Cursor, name: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError:
        raise cursor.error(f"Unknown character name [{name}]") from None
