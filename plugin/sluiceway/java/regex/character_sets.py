"""Sets of characters as Java's regular expressions name them: ``\\d``, ``\\p{Lu}``, ``\\h``, and what classes make of them."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable

from sluiceway.java.blanks import has_white_space_property, is_whitespace

Ranges = tuple[tuple[int, int], ...]
"""Code points from first to last, both included; sorted, and no two touch."""

_LAST = sys.maxunicode
ALL: Ranges = ((0, _LAST),)
EMPTY: Ranges = ()


def union(*sets: Ranges) -> Ranges:
    """Return the characters that are in any of the sets."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(pair for ranges in sets for pair in ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Return all other characters."""
    others: list[tuple[int, int]] = []
    start = 0
    for first, last in ranges:
        if first > start:
            others.append((start, first - 1))
        start = last + 1
    return tuple(others) if start > _LAST else (*others, (start, _LAST))


def intersection(one: Ranges, other: Ranges) -> Ranges:
    """Return the characters that are in both sets."""
    return complement(union(complement(one), complement(other)))


def of(characters: str) -> Ranges:
    """Return the set of these characters."""
    return union(*(((ord(character), ord(character)),) for character in characters))


def span(first: str, last: str) -> Ranges:
    """Return the set of a range of characters."""
    return ((ord(first), ord(last)),)


DIGIT = span("0", "9")
LOWER = span("a", "z")
UPPER = span("A", "Z")
ALPHA = union(LOWER, UPPER)
WORD = union(ALPHA, DIGIT, of("_"))
SPACE = of(" \t\n\x0b\f\r")
HORIZONTAL = union(of(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), span("\u2000", "\u200a"))
VERTICAL = union(of("\x85\u2028\u2029"), span("\n", "\r"))
LINE_ENDS = of("\n\r\x85\u2028\u2029")
_PUNCTUATION = of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

_POSIX: dict[str, Ranges] = {
    "Lower": LOWER,
    "Upper": UPPER,
    "ASCII": span("\0", "\x7f"),
    "Alpha": ALPHA,
    "Digit": DIGIT,
    "Alnum": union(ALPHA, DIGIT),
    "Punct": _PUNCTUATION,
    "Graph": union(ALPHA, DIGIT, _PUNCTUATION),
    "Print": union(ALPHA, DIGIT, _PUNCTUATION, of(" ")),
    "Blank": of(" \t"),
    "Cntrl": union(span("\0", "\x1f"), of("\x7f")),
    "XDigit": union(DIGIT, span("a", "f"), span("A", "F")),
    "Space": SPACE,
    "L1": span("\0", "\xff"),
    "all": ALL,
}

_CATEGORIES = (
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "Mn",
    "Me",
    "Mc",
    "Nd",
    "Nl",
    "No",
    "Zs",
    "Zl",
    "Zp",
    "Cc",
    "Cf",
    "Co",
    "Cs",
    "Cn",
    "Pd",
    "Ps",
    "Pe",
    "Pc",
    "Po",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Pi",
    "Pf",
)

_BINARY: dict[str, Callable[[str], bool]] = {
    "ALPHABETIC": lambda c: c.isalpha() or unicodedata.category(c) == "Nl",
    "LETTER": str.isalpha,
    "IDEOGRAPHIC": lambda c: unicodedata.name(c, "").startswith("CJK UNIFIED"),
    "LOWERCASE": str.islower,
    "UPPERCASE": str.isupper,
    "TITLECASE": str.istitle,
    "DIGIT": str.isdecimal,
    "WHITE_SPACE": has_white_space_property,
    "PUNCTUATION": lambda c: unicodedata.category(c)[0] == "P",
    "CONTROL": lambda c: unicodedata.category(c) == "Cc",
    "ASSIGNED": lambda c: unicodedata.category(c) != "Cn",
}
_JAVA: dict[str, Callable[[str], bool]] = {
    "LowerCase": str.islower,
    "UpperCase": str.isupper,
    "TitleCase": str.istitle,
    "Digit": str.isdecimal,
    "Letter": str.isalpha,
    "LetterOrDigit": lambda c: c.isalpha() or c.isdecimal(),
    "Alphabetic": _BINARY["ALPHABETIC"],
    "Whitespace": is_whitespace,
    "SpaceChar": lambda c: unicodedata.category(c)[0] == "Z",
}
_SCRIPTS = {
    "LATIN": "LATIN ",
    "GREEK": "GREEK ",
    "CYRILLIC": "CYRILLIC ",
    "HEBREW": "HEBREW ",
    "ARABIC": "ARABIC ",
    "THAI": "THAI ",
    "HAN": "CJK ",
    "HANGUL": "HANGUL ",
    "HIRAGANA": "HIRAGANA ",
    "KATAKANA": "KATAKANA ",
    "ARMENIAN": "ARMENIAN ",
    "GEORGIAN": "GEORGIAN ",
    "DEVANAGARI": "DEVANAGARI ",
    "BENGALI": "BENGALI ",
    "TAMIL": "TAMIL ",
}


@functools.cache
def _where(test: Callable[[str], bool]) -> Ranges:
    return _ranges(code for code in range(_LAST + 1) if test(chr(code)))


@functools.cache
def _category(name: str) -> Ranges:
    return _ranges(code for code in range(_LAST + 1) if unicodedata.category(chr(code)).startswith(name))


@functools.cache
def _script(prefix: str) -> Ranges:
    letters = (code for code in range(_LAST + 1) if chr(code).isalpha())
    return _ranges(code for code in letters if unicodedata.name(chr(code), "").startswith(prefix))


def _ranges(codes: Iterable[int]) -> Ranges:
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return tuple((first, last) for first, last in found)


def unicode_word() -> Ranges:
    """Return what ``\\w`` is under the flag ``U``."""
    return union(_where(_BINARY["ALPHABETIC"]), _category("M"), _category("Nd"), _category("Pc"), of("\u200c\u200d"))


def boundary_word() -> Ranges:
    """Return what ``\\b`` takes for words: unlike ``\\w`` with all the world's letters and digits (Java 17)."""
    return union(_category("L"), _category("Nd"), of("_"))


def named(name: str, *, unicode: bool = False) -> Ranges | None:
    """Return the set that ``\\p{name}`` stands for, or None if there is none of that name (or not one known here).

    ``unicode`` is the flag ``U``, under which the POSIX names mean Unicode's properties.
    """
    key, _, value = name.partition("=")
    if value:
        return _by_key(key.lower(), value)
    if unicode and name in ("Lower", "Upper", "Alpha", "Digit", "Space"):
        binary = {"Lower": "LOWERCASE", "Upper": "UPPERCASE", "Alpha": "ALPHABETIC", "Digit": "DIGIT", "Space": "WHITE_SPACE"}
        return _where(_BINARY[binary[name]])
    if name in _POSIX:
        return _POSIX[name]
    if name.startswith("java"):
        test = _JAVA.get(name[4:])
        return _where(test) if test else None
    if name.startswith("Is"):
        return _by_property(name[2:])
    return _by_category(name)


def _by_key(key: str, value: str) -> Ranges | None:
    if key in ("gc", "general_category"):
        return _by_category(value)
    if key in ("sc", "script"):
        prefix = _SCRIPTS.get(value.upper())
        return _script(prefix) if prefix else None
    return None


def _by_property(name: str) -> Ranges | None:
    if name.upper() in _BINARY:
        return _where(_BINARY[name.upper()])
    if name.upper() in _SCRIPTS:
        return _script(_SCRIPTS[name.upper()])
    return _by_category(name)


def _by_category(name: str) -> Ranges | None:
    if name == "LC":
        return union(_category("Lu"), _category("Ll"), _category("Lt"))
    if name == "LD":
        return union(_category("L"), _category("Nd"))
    return _category(name) if name in _CATEGORIES or (len(name) == 1 and name in "LMNZCPS") else None


def ignoring_case(ranges: Ranges, *, unicode: bool) -> Ranges:
    """Return a set with the other case of its letters: of ASCII's, or with ``unicode`` of all."""
    ascii_letters = intersection(ranges, ALPHA)
    swapped = tuple((first ^ 32, last ^ 32) for first, last in intersection(ascii_letters, LOWER))
    swapped += tuple((first ^ 32, last ^ 32) for first, last in intersection(ascii_letters, UPPER))
    if not unicode:
        return union(ranges, swapped)
    letters = intersection(ranges, _where(_has_case))
    others = {case for first, last in letters for code in range(first, last + 1) for case in _cases(chr(code))}
    return union(ranges, swapped, _ranges(sorted(map(ord, others))))


def _has_case(character: str) -> bool:
    return character.lower() != character or character.upper() != character


def _cases(character: str) -> Iterable[str]:
    upper = character.upper()
    both = (upper, upper.lower(), character.lower())
    return (case for case in both if len(case) == 1)


def python_class(ranges: Ranges) -> str:
    """Return a set as Python's ``re`` writes it."""
    if not ranges:
        return "(?!)"
    if ranges == ALL:
        return r"[\s\S]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    parts = (_escaped(first) + (f"-{_escaped(last)}" if last > first else "") for first, last in ranges)
    return f"[{''.join(parts)}]"


def _escaped(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\U{code:08x}"
