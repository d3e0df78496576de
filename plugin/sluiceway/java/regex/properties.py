r"""Defines the sets of characters that Java's patterns name (``\d``, ``\p{Lu}``), as contents of a set of the ``regex`` package.

``regex`` knows Unicode's categories, scripts, blocks and binary properties, and gives POSIX names the meaning that they have
in Java under the flag U. The names below are Java's own, or mean something else to ``regex``.
"""

from __future__ import annotations

import regex

Flags = frozenset[str]
"""The flags that are on, a subset of ``idmsuxU``."""

DIGIT, WORD, SPACE, ANY = "0-9", "a-zA-Z0-9_", r" \t-\r", r"\x00-\U0010ffff"
UNICODE_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d"
HORIZONTAL = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
VERTICAL = r"\n-\r\x85\u2028\u2029"
_LETTERS_WITH_CASE = r"\p{Lowercase}\p{Uppercase}\p{Lt}"

_CATEGORY = regex.compile("L[ultmo]?|M[nec]?|N[dlo]?|Z[slp]?|C[cfosn]?|P[dsecoif]?|S[mcko]?")
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": DIGIT,
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`\{-\~",
    "Graph": r"!-\~",
    "Print": r" -\~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": SPACE,
}
_JAVA = {
    "ASCII": r"\x00-\x7f",
    "L1": r"\x00-\xff",
    "all": ANY,
    "LC": r"\p{Lu}\p{Ll}\p{Lt}",
    "LD": r"\p{L}\p{Nd}",
    "javaLowerCase": r"\p{Lowercase}",
    "javaUpperCase": r"\p{Uppercase}",
    "javaTitleCase": r"\p{Lt}",
    "javaDigit": r"\p{Nd}",
    "javaLetter": r"\p{L}",
    "javaLetterOrDigit": r"\p{L}\p{Nd}",
    "javaAlphabetic": r"\p{Alphabetic}",
    "javaWhitespace": r"[\p{Z}\t-\r\x1c-\x1f--[\xa0\u2007\u202f]]",
    "javaSpaceChar": r"\p{Z}",
}
_BINARY = {
    "LETTER": r"\p{L}",
    "TITLECASE": r"\p{Lt}",
    "CONTROL": r"\p{Cc}",
    "PUNCTUATION": r"\p{P}",
    "PUNCT": r"\p{P}",
    "ASSIGNED": r"\P{Cn}",
    "WORD": UNICODE_WORD,
    "DIGIT": r"\p{Nd}",
    "HEX_DIGIT": r"\p{XDigit}",
    **{name: rf"\p{{{name}}}" for name in ("ALNUM", "BLANK", "GRAPH", "PRINT")},
}
_ANY_CASE = {  # what the names of letters of one case mean under the flag i
    **dict.fromkeys(("Lu", "Ll", "Lt"), _JAVA["LC"]),
    **dict.fromkeys(("Lower", "Upper"), _POSIX["Alpha"]),
    **dict.fromkeys(("javaLowerCase", "javaUpperCase", "javaTitleCase"), _LETTERS_WITH_CASE),
    **dict.fromkeys(("LOWERCASE", "UPPERCASE", "TITLECASE", "LOWER", "UPPER"), _LETTERS_WITH_CASE),
}
_KINDS = {"sc": "Script", "script": "Script", "blk": "Block", "block": "Block"}


def property_set(name: str, flags: Flags) -> str | None:
    r"""Return the set that ``\p{name}`` stands for; None for a name that Java or ``regex`` does not know."""
    key, equals, value = name.partition("=")
    if equals and key.lower() in _KINDS:
        return _known(f"{_KINDS[key.lower()]}=", value)
    if equals:
        return _named(value, flags) if key.lower() in ("gc", "general_category") else None
    if name.startswith("In"):
        return _known("Block=", name[2:])
    if name.startswith("Is"):
        return _binary(name[2:].upper(), flags) or _named(name[2:], flags) or _known("Is", name[2:])
    return _binary(name.upper(), flags) or _known("", name) if "U" in flags and name in _POSIX else _named(name, flags)


def _binary(name: str, flags: Flags) -> str | None:
    return (_ANY_CASE.get(name) if "i" in flags else None) or _BINARY.get(name)


def _named(name: str, flags: Flags) -> str | None:
    if "i" in flags and name in _ANY_CASE:
        return _ANY_CASE[name]
    return rf"\p{{{name}}}" if _CATEGORY.fullmatch(name) else _JAVA.get(name) or _POSIX.get(name)


def _known(prefix: str, name: str) -> str | None:
    """Return a property if ``regex`` knows it."""
    written = rf"\p{{{prefix}{name}}}"
    try:
        regex.compile(written)
    except regex.error:
        return None
    return written if regex.fullmatch(r"[\w -]+", name) else None
