"""Formats against what defines them: any cut of a file's bytes gives the same records, in row form and as columns."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluiceway.connectors.folder import csv_format, formats
from sluiceway.connectors.folder.csv_format import CsvFormat
from sluiceway.connectors.folder.format_config import JsonLineRecords
from sluiceway.connectors.folder.formats import LineRecords, MultilineRecords
from sluiceway.errors import ConnectError
from support.folder_formats import CUTS, check_columns, check_cuts, values

COLUMNS = ("a", "b", "c")


@pytest.fixture(autouse=True)
def small_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make columns of a few records, too."""
    monkeypatch.setattr(formats, "_FEWEST_BYTES_FOR_COLUMNS", 0)
    monkeypatch.setattr(csv_format, "_FEWEST_BYTES_FOR_COLUMNS", 0)


TEXT = st.text(st.sampled_from("ab \r\n\té\u2028\x00"), max_size=60)


@given(TEXT, CUTS, st.integers(1, 9))
def test_lines(text: str, cuts: list[int], most: int) -> None:
    data = text.encode()
    check_cuts(LineRecords(), data, cuts)
    lines = text.split("\n")[: None if not data.endswith(b"\n") else -1] if text else []
    assert [row.value for row in LineRecords().rows(data)] == [line.rstrip("\r") for line in lines]
    assert check_columns(LineRecords(), data, most) == data.endswith(b"\n")


def test_bytes_that_are_not_of_the_encoding() -> None:
    data = b"caf\xe9\n"
    assert LineRecords().columns(data, 10) is None
    assert [row.value for row in LineRecords().rows(data)] == ["caf\ufffd"]
    assert [row.value for row in LineRecords("latin-1").rows(data)] == ["caf\xe9"]


@given(st.text(st.sampled_from("ab \r\n"), max_size=60), CUTS, st.integers(1, 4))
def test_multiline(text: str, cuts: list[int], most: int) -> None:
    records = MultilineRecords(re.compile(r"^\S"), most)
    data = text.encode()
    found = [row.value for row in records.rows(data)]
    lines = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")] if text else []
    assert "\n".join(found) == "\n".join(lines)
    assert all(len(each.split("\n")) <= most for each in found)
    assert not any(re.match(r"\S", line) for each in found for line in each.split("\n")[1:])
    check_cuts(MultilineRecords(re.compile(r"^\S"), 1000), data, cuts)


def test_a_stack_trace_is_one_record() -> None:
    text = "Traceback:\n  File a\n    raise\nValueError: no\n\n  more\nnext\n"
    records = MultilineRecords(re.compile(r"^(Traceback|next)"), 100)
    assert [row.value for row in records.rows(text.encode())] == [text[:-6], "next"]


@given(
    st.lists(st.sampled_from([b'{"a":1}', b"[1,2]", b'"x"', b"null", b"", b"  ", b"{", b"1\r"]), max_size=9),
    CUTS,
    st.integers(1, 5),
)
def test_json_lines(lines: list[bytes], cuts: list[int], most: int) -> None:
    data = b"\n".join(lines)
    check_cuts(JsonLineRecords(), data, cuts)
    found = values(JsonLineRecords().rows(data))
    kept = [line for line in lines if line.strip()]
    assert [bad for _, bad in found] == [line == b"{" for line in kept]
    if data.endswith(b"\n") and all(line.strip() and line != b"{" for line in lines[:-1]):
        assert check_columns(JsonLineRecords(), data, most)


FIELDS = st.text(st.sampled_from('ab,"\n é'), max_size=5)
ROWS = st.lists(st.lists(FIELDS, min_size=2, max_size=4), min_size=1, max_size=6)


@settings(max_examples=300)
@given(ROWS, st.sampled_from(["\n", "\r\n"]), st.booleans(), CUTS, st.integers(1, 5))
def test_csv_that_a_program_wrote(rows: list[list[str]], end: str, is_ended: bool, cuts: list[int], most: int) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator=end).writerows(rows)
    data = out.getvalue().removesuffix("" if is_ended else end).encode()
    found = CsvFormat(columns=COLUMNS).begin(data, final=True)
    assert found is not None
    records = found[1]
    check_cuts(records, data, cuts)
    expected = [(row, False) if len(row) == 3 else (None, True) for row in rows]
    assert values(records.rows(data)) == expected
    if is_ended and all(len(row) == 3 for row in rows):
        assert check_columns(records, data, most)


@settings(max_examples=500)
@given(st.text(st.sampled_from('ab,"\n'), max_size=40), CUTS, st.integers(1, 5))
@example('a,b,"c\nd,e,f\n', [3], 2)
@example('a"b,c,d\n"e"f,g,h\n', [9], 1)
@example('"",,""\n\n"a""b",c,d', [1], 1)
def test_csv_with_quotes_anywhere(text: str, cuts: list[int], most: int) -> None:
    """As Python's csv module reads it, except for a last quote that is never closed, whose record has no known end."""
    data = text.encode()
    found = CsvFormat(columns=COLUMNS).begin(data, final=True)
    assert found is not None
    records = found[1]
    rows = list(records.rows(data))
    if not any("never closed" in row.reason for row in rows):
        expected = [(row, False) if len(row) == 3 else (None, True) for row in csv.reader(io.StringIO(text, newline="")) if row]
        assert values(iter(rows)) == expected
        check_cuts(records, data, cuts)
    check_columns(records, data, most)


def test_a_header_names_the_columns() -> None:
    data = b'\xef\xbb\xbfid,"a ""name""\nin two lines"\n1,x\n'
    assert CsvFormat().begin(data[:20], final=False) is None
    found = CsvFormat().begin(data, final=False)
    assert found is not None
    start, records = found
    assert records.schema is not None
    assert [field.name for field in records.schema.fields] == ["id", 'a "name"\nin two lines']
    assert values(records.rows(data[start:])) == [(["1", "x"], False)]


@pytest.mark.parametrize("header", [b"a,a\n", b"a,,b\n", b"\n"])
def test_a_header_without_names(header: bytes) -> None:
    with pytest.raises(ConnectError, match=r"set csv\.columns"):
        CsvFormat().begin(header, final=False)


@pytest.mark.parametrize("null", ["", "NULL"])
def test_null_fields(null: str) -> None:
    data = f"{null},a,b\nc,{null},d\n".encode()
    found = CsvFormat(columns=COLUMNS, null=null).begin(data, final=False)
    assert found is not None
    assert values(found[1].rows(data)) == [([None, "a", "b"], False), (["c", None, "d"], False)]
    assert check_columns(found[1], data, 10)


def test_other_delimiters_and_quotes() -> None:
    data = b"'a\tb'\tc\td\n"
    found = CsvFormat("\t", "'", COLUMNS).begin(data, final=False)
    assert found is not None
    assert values(found[1].rows(data)) == [(["a\tb", "c", "d"], False)]
    assert check_columns(found[1], data, 10)
