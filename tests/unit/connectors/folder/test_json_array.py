"""JSON arrays against a parser of JSON, and what is left of those that are none."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluiceway.connectors.folder.formats import Records
from sluiceway.connectors.folder.json_array import JsonArrayFormat
from sluiceway.errors import ConnectError
from support.folder_formats import CUTS, check_columns, check_cuts, values

TEXTS = st.text(st.sampled_from('a"\\[]{},:\n é'), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
BLANKS = st.text(st.sampled_from(" \n\r\t"), max_size=2)


def begun(data: bytes) -> tuple[bytes, Records]:
    found = JsonArrayFormat().begin(data, final=True)
    assert found is not None
    return data[found[0] :], found[1]


@settings(max_examples=300)
@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 0, 1]), BLANKS, BLANKS, CUTS, st.integers(1, 5))
@example([], None, "", "", [1], 1)
def test_an_array_that_a_program_wrote(
    elements: list[Any], indent: int | None, before: str, between: str, cuts: list[int], most: int
) -> None:
    separators = f"{between},{between}", f":{between}"
    text = before + json.dumps(elements, indent=indent, separators=separators, ensure_ascii=len(elements) % 2 == 0) + between
    data, records = begun(text.encode())
    assert values(records.rows(data)) == [(each, False) for each in elements]
    assert not records.unfinished(data)
    check_cuts(records, data, cuts)
    assert check_columns(records, data, most) is bool(elements)


@settings(max_examples=1000)
@given(st.lists(st.sampled_from([*'[]{},:"\\1 \n', '"a"', "[1]", '{"a":1}', "\ufeff"]), max_size=14), CUTS, st.integers(1, 5))
@example(list("1,,2]"), [1, 2, 3], 9)
@example([*'"a,\n', '{"a":1}', ",", '{"a":1}', "]"], [5], 9)
@example([*"1,2"], [2], 9)
@example([*"1]}"], [2], 9)
def test_what_is_no_array_has_a_bad_record(parts: list[str], cuts: list[int], most: int) -> None:
    data, records = begun(b"[" + "".join(parts).encode())
    rows = list(records.rows(data))
    try:
        elements = orjson.loads(data)
    except orjson.JSONDecodeError:
        assert any(row.reason for row in rows) or records.unfinished(data)
    else:
        assert values(iter(rows)) == [(each, False) for each in elements]
        assert not records.unfinished(data)
    check_cuts(records, data, cuts)
    check_columns(records, data, most)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'[1, {"a": x}, 2]', [1, None, 2]),
        (b"[1,,2]", [1, None, 2]),
        (b"[1,2,]", [1, 2, None]),
        (b'["a,\n{"b": 1},\n{"c": 2}]', [None, {"c": 2}]),  # a quote damages its line only
        (b"[1, 2] 3", [1, 2, None]),
        (b"[1, 2}", [1, 2, None]),
        (b'[1, {"a": 2', [1, None]),
        (b'["\xff", 2]', [None, 2]),
        (b"[]", []),
        (b"[ ]\n", []),
        (b"[][]", [None]),
    ],
)
def test_bad_elements(text: bytes, expected: list[Any]) -> None:
    data, records = begun(text)
    assert values(records.rows(data)) == [(each, each is None) for each in expected]


@pytest.mark.parametrize("text", [b"[1, 2", b"[1, [2]", b"["])
def test_a_file_that_ends_too_early(text: bytes) -> None:
    assert "before the ]" in begun(text)[1].unfinished(text)


def test_the_array_is_after_a_byte_order_mark_and_blanks() -> None:
    text = b"\xef\xbb\xbf\r\n [1]"
    for length in range(len(text) - 2):
        assert JsonArrayFormat().begin(text[:length], final=False) is None
    assert begun(text)[0] == b"[1]"


@pytest.mark.parametrize("text", [b"", b"  ", b'{"a": []}', b"\xef\xbb", b"1"])
def test_a_file_that_is_no_array(text: bytes) -> None:
    with pytest.raises(ConnectError, match="no JSON array"):
        JsonArrayFormat().begin(text, final=True)


def test_columns_after_complete_bytes_were_found() -> None:
    """What ``complete`` has found is used for all of these bytes, and for the first of them."""
    data, records = begun(b"[1,2,3,4")
    assert records.complete(data, final=False) == 6
    for length, expected in ((6, [1, 2, 3]), (4, [1, 2]), (2, [1])):
        assert [row.value for row in records.rows(data[:length])] == expected
        assert check_columns(records, data[:length], 9)
