"""Tests that columns of a stream's lines hold the same records as the row form, which is the specification."""

from __future__ import annotations

import json
import logging
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.columns.arrays import to_array
from sluiceway.columns.rows import column_values
from sluiceway.connectors.singer.fields import CONNECT, DOUBLE, MICROSECONDS, TEXT, Forms, Layout
from sluiceway.connectors.singer.messages import Message, record_message
from sluiceway.connectors.singer.tables import NoColumnsError, Table
from sluiceway.errors import DataError
from support.column_forms import many

SCHEMAS: dict[str, Any] = {
    "text": {"type": ["null", "string"]},
    "whole": {"type": ["integer", "null"]},
    "large": {"type": "integer", "maximum": 18446744073709551615},
    "number": {"type": "number"},
    "money": {"type": ["null", "number"], "multipleOf": Decimal("0.01")},
    "exact": {"type": "number", "multipleOf": Decimal("1e-10")},
    "flag": {"type": "boolean"},
    "moment": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "nested": {"type": "object", "properties": {}},
    "several": {"type": ["string", "integer"]},
}
PLACES = st.sampled_from(["", "Z", "z", "+00:00", "+05:30", "-23:59", "+24:00", "+00", "-0530"])
TIMES = st.builds(
    lambda moment, separator, digits, zone: f"{moment.isoformat(separator, 'microseconds')}789"[: 16 + digits] + zone,
    st.datetimes(),
    st.sampled_from("T "),
    st.sampled_from([0, 3, 5, 7, 10, 11, 13]),
    PLACES,
)
NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["0", "-0", "1e3", "1E-2", "1.10", "-0.0", "9223372036854775807", "9223372036854775808", "NaN", "1e400"]),
)
TEXTS = st.one_of(
    st.text(),
    TIMES,
    st.dates().map(str),
    st.sampled_from(["2026-02-30", "2026-01-01T24:00:00Z", "2026-1-1", "0000-00-00", "1.5", "2026-01-01T10:00:60Z", "NaN"]),
)
JSON_VALUES = st.one_of(
    st.just("null"), NUMBERS, TEXTS.map(json.dumps), st.sampled_from(["true", "false", "[1, 2.50]", '{"a": null}'])
)
GOOD = {
    "text": st.text().map(json.dumps),
    "whole": st.integers(-(2**63), 2**63 - 1).map(str),
    "large": st.integers(0, 2**64 - 1).map(str),
    "number": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "money": st.decimals(-(10**15), 10**15, places=2).map(str),
    "exact": st.decimals(-(10**6), 10**6, places=10).map(lambda value: f"{value:f}"),
    "flag": st.sampled_from(["true", "false"]),
    "moment": TIMES.map(json.dumps),
    "day": st.dates().map(str).map(json.dumps),
    "nested": st.just('{"a": [1.10, null]}'),
    "several": st.sampled_from(['"a"', "1"]),
}
USUAL = Forms()
FORMS = st.builds(Forms, st.sampled_from([CONNECT, MICROSECONDS, TEXT]), st.sampled_from([DOUBLE, TEXT]))
EXTRACTED = st.one_of(st.none(), TIMES)


@st.composite
def lines(draw: st.DrawFn, values: Any) -> Message:
    fields = draw(st.lists(st.sampled_from(sorted(SCHEMAS)), unique=True))
    record = "{" + ", ".join(f'"{name}": {draw(values(name))}' for name in fields) + "}"
    message = record_message("orders", record.encode())
    message.time_extracted, message.version = draw(EXTRACTED), draw(st.one_of(st.none(), st.integers(0, 10**13)))
    return message


def table_of(forms: Forms = USUAL, keys: tuple[str, ...] = (), **schemas: Any) -> Table:
    return Table(Layout("orders", {"properties": schemas or SCHEMAS}, keys, forms, metadata=not schemas), "topic")


def compare(table: Table, given_lines: list[Message]) -> bool:
    """Assert that the columnar form holds what the row form returns, and return whether there is one."""
    try:
        batch = table.columns(given_lines)
    except NoColumnsError:
        return False
    rows = [table.row(line) for line in given_lines]
    values, keys = [value for value, _ in rows], [key for _, key in rows]
    assert repr(column_values(batch.value, len(rows))) == repr(values)
    for column, expected in ((batch.value, values), (batch.key, keys)):
        if column.schema is not None:
            assert column.values is not None
            column.values.validate(full=True)
            assert column.values.equals(to_array(column.schema, expected))
    return True


@many
@given(st.lists(lines(lambda _name: JSON_VALUES), min_size=1, max_size=3), FORMS)
def test_columns_of_any_values_hold_the_same_records(given_lines: list[Message], forms: Forms) -> None:
    compare(table_of(forms), given_lines)


@many
@given(st.lists(lines(GOOD.__getitem__), min_size=1, max_size=4), FORMS)
def test_columns_of_values_of_the_schema_hold_the_same_records(given_lines: list[Message], forms: Forms) -> None:
    compare(table_of(forms), given_lines)


def line_of(record: bytes) -> Message:
    return record_message("orders", record)


def record(**values: Any) -> Message:
    return line_of(json.dumps(values).encode())


def test_usual_lines_have_columns() -> None:
    usual = record(
        text="x",
        whole=1,
        large=2**64 - 1,
        number=1.5,
        money=1.25,
        flag=True,
        moment="2026-01-01T10:00:00.123+02:00",
        day="2026-01-01",
        nested={"a": 1},
        several="a",
    )
    assert compare(table_of(keys=("whole",)), [usual] * 3)


def test_a_decimal_is_exact() -> None:
    table = table_of(money=SCHEMAS["money"])
    exact = [line_of(b'{"money": 12345678901234567.89}'), line_of(b'{"money": 5}'), line_of(b'{"money": "0.5"}')]
    assert compare(table, exact[:2])
    assert not compare(table, exact)  # a number in a string
    assert [table.row(line)[0]["money"] for line in exact] == [Decimal("12345678901234567.89"), Decimal("5.00"), Decimal("0.50")]


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("money", "1.234", "more than 2 digits after the point"),
        ("whole", "9223372036854775808", "more than 64 bits"),
        ("whole", "true", "a boolean in place of an integer"),
        ("whole", '"SECRET"', "a string in place of an integer"),
        ("text", "7", "a number in place of a string"),
        ("flag", "0", "a number in place of a boolean"),
        ("number", '"SECRET"', "a string in place of a number"),
        ("money", '"SECRET"', "a string that is no number"),
        ("money", "NaN", "NaN or an infinity in place of a number"),
        ("moment", '"SECRET"', "no timestamp"),
        ("moment", '"0000-00-00 00:00:00"', "no timestamp"),
        ("day", '"2026-01-01T10:00:00Z"', "no date"),
    ],
)
def test_a_bad_value_is_named_without_its_data(field: str, value: str, reason: str) -> None:
    table, line = table_of(**{field: SCHEMAS[field]}), line_of(f'{{"{field}": {value}}}'.encode())
    with pytest.raises(NoColumnsError):
        table.columns([line])
    with pytest.raises(DataError, match=reason) as found:
        table.row(line)
    assert f"stream orders does not match its schema: the field {field}" in str(found.value)
    assert "SECRET" not in str(found.value)


@pytest.mark.parametrize("line", [b"[1]", b"7", b"null", b"{"])
def test_a_record_that_is_no_object_is_bad(line: bytes) -> None:
    with pytest.raises(NoColumnsError):
        table_of(text=SCHEMAS["text"]).columns([line_of(line)])
    with pytest.raises(DataError, match="no JSON object"):
        table_of(text=SCHEMAS["text"]).row(line_of(line))


def test_a_key_that_may_not_be_null_is_required() -> None:
    required = table_of(keys=("whole",), whole={"type": "integer"})
    with pytest.raises(NoColumnsError):
        required.columns([record()])
    with pytest.raises(DataError, match="the field whole of its key is null, or missing"):
        required.row(record())
    optional = table_of(keys=("whole",), whole={"type": ["null", "integer"]})
    assert compare(optional, [record(), record(whole=1)])


def test_fields_that_the_schema_lacks_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    table = table_of(whole=SCHEMAS["whole"])
    given_lines = [record(whole=1), record(whole=2, other=3), record(whole=4, other=5)]
    assert compare(table, given_lines)
    assert [each.getMessage() for each in caplog.records] == [
        "Records of stream orders have the field other, which its schema does not have: it is left out"
    ]
    assert [row["whole"] for row, _ in map(table.row, given_lines)] == [1, 2, 4]


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2026-01-01 10:00:00+02", 1767254400_000000),
        ("2026-01-01 10:00:00.5-0130", 1767267000_500000),
        ("2026-01-01T10:00:00.123456999Z", 1767261600_123456),
        ("2026-01-01T23:59:59.999999999Z", 1767311999_999999),
        ("2026-01-01", 1767225600_000000),
    ],
)
def test_timestamps_are_read_as_databases_write_them(text: str, micros: int) -> None:
    table = table_of(Forms(MICROSECONDS), moment=SCHEMAS["moment"])
    compare(table, [record(moment=text)])
    assert table.row(record(moment=text))[0]["moment"] == micros


@pytest.mark.parametrize("columns", [True, False])
def test_cut_microseconds_are_told_once_for_a_field(caplog: pytest.LogCaptureFixture, columns: bool) -> None:
    caplog.set_level(logging.WARNING)
    table = table_of(moment=SCHEMAS["moment"])
    whole, cut = record(moment="2026-01-01T10:00:00.123Z"), record(moment="2026-01-01T10:00:00.123456Z")
    for line in (whole, cut, cut):
        if columns:
            table.columns([line])
        else:
            table.row(line)
        assert len(caplog.records) == (line is not whole)
    assert "Field moment of stream orders" in caplog.text
    assert "more digits than singer.timestamps allows" in caplog.text
