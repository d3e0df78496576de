"""Encodes and decodes base64 like Jackson, which Connect uses. No I/O."""

from __future__ import annotations

import binascii
import re

# Jackson allows whitespace between groups of four and padded groups anywhere, and ignores the bits left over by padding.
_LENIENT = re.compile(r"(?:[\0-\x20]*[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==))*[\0-\x20]*")
_GROUPS = re.compile(r"[A-Za-z0-9+/]+=*")


def to_base64(value: bytes) -> str:
    """Return bytes as padded base64 in one line."""
    return binascii.b2a_base64(value, newline=False).decode("ascii")


def from_base64(text: str) -> bytes:
    """Return the bytes that a base64 text encodes; raises ValueError."""
    try:
        data = binascii.a2b_base64(text)
    except ValueError:
        data = b""
    padding = text.count("=", -2)
    # Python skips invalid characters, so there are fewer bytes than the length of the text requires.
    if len(text) % 4 == 0 and len(data) == len(text) // 4 * 3 - padding:
        return data
    return _from_lenient(text)


def _from_lenient(text: str) -> bytes:
    if _LENIENT.fullmatch(text) is None:
        raise ValueError("not base64: only A-Z, a-z, 0-9, + and / in groups of four, the last of them padded with =")
    return b"".join(binascii.a2b_base64(group) for group in _GROUPS.findall(text))
