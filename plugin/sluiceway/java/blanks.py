"""Trims and tests white space as Java's methods do; each has its own set of characters, unlike Python's ``str.strip``. No I/O."""

from __future__ import annotations

_TRIMMED = "".join(map(chr, range(0x21)))
_NO_BREAK_SPACES = "\xa0\u2007\u202f"
_NEXT_LINE = "\x85"
_SEPARATORS = "\x1c\x1d\x1e\x1f"


def trim(text: str) -> str:
    """Return ``String.trim()``: removes control characters with the spaces, but keeps Unicode spaces such as U+00A0."""
    return text.strip(_TRIMMED)


def is_blank(text: str) -> bool:
    """Return True if ``String.trim()`` leaves nothing (Kafka's ``Utils.isBlank``)."""
    return not trim(text)


def is_whitespace(character: str) -> bool:
    r"""Return ``Character.isWhitespace``, which is also ``\p{javaWhitespace}`` in a regular expression."""
    return character.isspace() and character not in _NO_BREAK_SPACES + _NEXT_LINE


def has_white_space_property(character: str) -> bool:
    r"""Whether a character has Unicode's property White_Space: ``\p{IsWhite_Space}`` in a regular expression."""
    return character.isspace() and character not in _SEPARATORS
