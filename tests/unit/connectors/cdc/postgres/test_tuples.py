"""Rows of pgoutput: both ways of decoding return the row that was encoded."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random
from typing import Any

from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.postgres.tuples import read_row, read_rows

_SHORT = (None, UNAVAILABLE, "", "t", "tt", "n", "N", "u", "ż", "x" * 110, "x" * 116, "x" * 127, "é" * 64, "x" * 255)
_LONG = (*_SHORT, "x" * 256, "x" * 300, "t" * 29_696)


def _encoded(row: Sequence[Any]) -> bytes:
    found = struct.pack(">H", len(row))
    for value in row:
        if isinstance(value, str):
            data = value.encode()
            found += b"t" + struct.pack(">I", len(data)) + data
        else:
            found += b"n" if value is None else b"u"
    return found


def test_rows_of_any_length_are_decoded() -> None:
    rng = Random(5)  # noqa: S311 (cases, not secrets)
    for number in range(3000):
        count = rng.choice((0, 1, 2, 3, 4, 116 if number % 50 else 4))
        values = rng.choice((_SHORT, _LONG, _SHORT[2:]))
        old, new = ([rng.choice(values) for _ in range(count)] for _ in range(2))
        assert read_row(b"I\x74\0\0\0N" + _encoded(new), 6) == new
        assert read_rows(b"U\0\0\0\x09O" + _encoded(old) + b"N" + _encoded(new), 6) == (old, new)
