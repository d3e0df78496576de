"""Base64 as Connect's JSON library writes and reads it. Pure."""

from __future__ import annotations

import binascii
import re

# Blanks only between groups of four, a padded group anywhere, and bits that the padding leaves over are not looked at.
_LENIENT = re.compile(r"(?:[\0-\x20]*[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==))*[\0-\x20]*")
_GROUPS = re.compile(r"[A-Za-z0-9+/]+=*")


def to_base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode("ascii")


def from_base64(text: str) -> bytes:
    """Return the bytes that a text stands for; raises ValueError."""
    try:
        data = binascii.a2b_base64(text)
    except ValueError:
        data = b""
    padding = text.count("=", -2)
    # Python skips what is not of the alphabet: then there are fewer bytes than there is text for.
    if len(text) % 4 == 0 and len(data) == len(text) // 4 * 3 - padding:
        return data
    return _from_lenient(text)


def _from_lenient(text: str) -> bytes:
    if _LENIENT.fullmatch(text) is None:
        raise ValueError("not base64: only A-Z, a-z, 0-9, + and / in groups of four, the last of them padded with =")
    return b"".join(binascii.a2b_base64(group) for group in _GROUPS.findall(text))
