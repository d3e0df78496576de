"""Fixed width against slices of lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.connectors.folder import fixed_format
from sluiceway.connectors.folder.fixed_format import FixedColumn, FixedRecords
from support.folder_formats import CUTS, check_columns, check_cuts, values

WIDTHS = (3, 1, 2)
COLUMNS = [FixedColumn(name, width) for name, width in zip("abc", WIDTHS, strict=True)]
LINE = st.text(st.sampled_from("ab \té\r"), min_size=3, max_size=7)


@pytest.fixture(autouse=True)
def small_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make columns of a few records, too."""
    monkeypatch.setattr(fixed_format, "_FEWEST_BYTES_FOR_COLUMNS", 0)


def fields(line: str) -> list[str]:
    return [line[:3].strip(" "), line[3:4].strip(" "), line[4:].strip(" ")]


@settings(max_examples=300)
@given(st.lists(LINE, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans(), CUTS, st.integers(1, 5))
def test_lines(lines: list[str], end: str, is_ended: bool, cuts: list[int], most: int) -> None:
    data = end.join([*lines, ""] if is_ended else lines).encode()
    records = FixedRecords(COLUMNS)
    kept = [text for line in lines if (text := line.rstrip("\r"))]
    expected = [(fields(text), False) if 4 <= len(text) <= 6 else (None, True) for text in kept]
    assert values(records.rows(data)) == expected
    check_cuts(records, data, cuts)
    check_columns(records, data, most)


@given(
    st.lists(st.text(st.sampled_from("ab \t"), min_size=6, max_size=6), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([None, "", "a"]),
    st.integers(1, 5),
)
def test_equal_lines_are_columns(lines: list[str], end: str, null: str | None, most: int) -> None:
    data = "".join(line + end for line in lines).encode()
    records = FixedRecords(COLUMNS, null)
    expected = [[None if each == null else each for each in fields(line)] for line in lines]
    assert [value for value, _ in values(records.rows(data))] == expected
    assert check_columns(records, data, most)
    assert not check_columns(FixedRecords(COLUMNS, null, "latin-1"), data, most)


@pytest.mark.parametrize(
    "text", ["abcdef\nabc\n", "abcdef\nab\ndef\n", "abcdef\nabcdefg\nabcde\n", "abcdef\r\nabcdef\n", "abcdef\n\n", "ééé\n"]
)
def test_other_lines_are_not(text: str) -> None:
    assert not check_columns(FixedRecords(COLUMNS), text.encode(), 10)


def test_a_bad_line_says_its_length() -> None:
    (row,) = FixedRecords(COLUMNS).rows(b"abcdefg\n")
    assert row.reason == "a line of 7 characters instead of 6: 'abcdefg'"


def test_widths_are_those_of_characters() -> None:
    for encoding in ("utf-8", "latin-1"):
        data = "éééxyz\n".encode(encoding)
        assert values(FixedRecords(COLUMNS, encoding=encoding).rows(data)) == [(["ééé", "x", "yz"], False)]
