"""Lines of COPY."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.postgres.copying import parse_line


@pytest.mark.parametrize(
    ("line", "values"),
    [("1\ta", ["1", "a"]), ("\\N\t", [None, ""]), ("a\\tb\\\\N\t\\\\N", ["a\tb\\N", "\\N"]), ("\\n\\r\\b", ["\n\r\b"])],
)
def test_escapes_and_nulls(line: str, values: list[str | None]) -> None:
    assert parse_line(line) == values
