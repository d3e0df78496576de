"""Which characters Java's methods take for blanks: each has its own set, and none is that of Python's ``str.strip``. No I/O."""

from __future__ import annotations

_TRIMMED = "".join(map(chr, range(0x21)))
_NO_BREAK_SPACES = "\xa0\u2007\u202f"
_NEXT_LINE = "\x85"
_SEPARATORS = "\x1c\x1d\x1e\x1f"


def trim(text: str) -> str:
    """Return ``String.trim()``: control characters go with the spaces, other blanks of Unicode such as U+00A0 stay."""
    return text.strip(_TRIMMED)


def is_blank(text: str) -> bool:
    """Whether ``String.trim()`` leaves nothing (Kafka's ``Utils.isBlank``)."""
    return not trim(text)


def is_whitespace(character: str) -> bool:
    r"""Return ``Character.isWhitespace``, which is also ``\p{javaWhitespace}`` in a regular expression."""
    return character.isspace() and character not in _NO_BREAK_SPACES + _NEXT_LINE


def has_white_space_property(character: str) -> bool:
    r"""Whether a character has Unicode's property White_Space: ``\p{IsWhite_Space}`` in a regular expression."""
    return character.isspace() and character not in _SEPARATORS
