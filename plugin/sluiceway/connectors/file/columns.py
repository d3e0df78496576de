"""Splits lines of a file into an Arrow array. Loads Arrow."""

from __future__ import annotations

import pyarrow as pa

from sluiceway.connectors.arrow_lines import split_lines
from sluiceway.connectors.file.lines import Lines


def split_columns(lines: Lines, most: int) -> tuple[Lines, Lines, pa.StringArray] | None:
    """Return up to ``most`` lines, the remaining lines, and the text of the former without line ends.

    Return None if ``Lines.split`` must split them: for ``\\r``, an incomplete line, and bytes that are not UTF-8.
    """
    raw, start = lines
    if b"\r" in raw or not raw.endswith(b"\n"):
        return None
    split = split_lines(raw, most)
    if split is None:
        return None
    length, values = split
    return Lines(raw[:length], start), Lines(raw[length:], start + length), values
