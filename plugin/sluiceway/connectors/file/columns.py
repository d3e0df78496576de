"""Splits lines of a file into an Arrow array. Loads Arrow."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.connectors.file.lines import Lines

_OFFSETS = struct.Struct("=ii")


def split_columns(lines: Lines, most: int) -> tuple[Lines, Lines, pa.StringArray] | None:
    """Return up to ``most`` lines, the remaining lines, and the text of the former without line ends.

    Return None if ``Lines.split`` must split them: for ``\\r``, an incomplete line, and bytes that are not UTF-8.
    """
    raw, start = lines
    if b"\r" in raw or not raw.endswith(b"\n"):
        return None
    text = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(_OFFSETS.pack(0, len(raw) - 1)), pa.py_buffer(raw)])
    try:
        split = pc.split_pattern(text.cast(pa.utf8()), pattern="\n")
    except pa.ArrowInvalid:
        return None
    values: Any = split.values
    if len(values) <= most:
        return lines, Lines(b"", start + len(raw)), values
    values = values[:most]
    length = pc.sum(pc.binary_length(values)).as_py() + most
    return Lines(raw[:length], start), Lines(raw[length:], start + length), values
