"""Splits bytes into an Arrow array of lines. Loads Arrow."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_OFFSETS = struct.Struct("=ii")


def split_lines(data: bytes, most: int) -> tuple[int, pa.StringArray] | None:
    """Split bytes that end with a newline at newlines, without copying them.

    Returns:
        The number of bytes of the first lines, at most ``most``, and their text without newlines. None for bytes that are not
        UTF-8.
    """
    text = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(_OFFSETS.pack(0, len(data) - 1)), pa.py_buffer(data)])
    try:
        split = pc.split_pattern(text.cast(pa.utf8()), pattern="\n")
    except pa.ArrowInvalid:
        return None
    values: Any = split.values
    if len(values) <= most:
        return len(data), values
    values = values[:most]
    return pc.sum(pc.binary_length(values)).as_py() + most, values
