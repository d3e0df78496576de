"""Reads the protocol's length-encoded integers. No I/O."""

from __future__ import annotations


def read_length(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return a length-encoded integer and the position after it."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3}.get(first, 8)
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size
