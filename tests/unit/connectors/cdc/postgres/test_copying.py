"""Lines of COPY."""

from __future__ import annotations

import random

import pytest

from sluiceway.connectors.cdc.postgres.copy_columns import column_rows
from sluiceway.connectors.cdc.postgres.copying import parse_line, parse_lines

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
_ALPHABETS = ["", "abc", "N", "aż€😀", "\\", "\\N", "\\xab", "a\t", "\n\r\b\f\v", "\\\ta", "\\n\n"]


@pytest.mark.parametrize(
    ("line", "values"),
    [("1\ta", ["1", "a"]), ("\\N\t", [None, ""]), ("a\\tb\\\\N\t\\\\N", ["a\tb\\N", "\\N"]), ("\\n\\r\\b", ["\n\r\b"])],
)
def test_escapes_and_nulls(line: str, values: list[str | None]) -> None:
    assert parse_line(line) == values


@pytest.mark.parametrize("seed", range(30))
def test_columns_have_the_values_of_the_lines(seed: int) -> None:
    chooser = random.Random(seed)  # noqa: S311 (test data)
    alphabets = [chooser.choice(_ALPHABETS) for _ in range(chooser.randint(1, 9))]
    rows = [
        [None if chooser.random() < 0.2 else "".join(chooser.choices(each or "-", k=chooser.randint(0, 4))) for each in alphabets]
        for _ in range(chooser.randint(1, 60))
    ]
    lines = ["\t".join("\\N" if v is None else "".join(_ESCAPES.get(c, c) for c in v) for v in row) + "\n" for row in rows]
    encoded = [line.encode() for line in lines]
    assert parse_lines(encoded) == rows
    assert [list(row) for row in column_rows(encoded)] == rows
