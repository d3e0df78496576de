"""Types of CSV columns: the values of texts, and that Arrow finds the same."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluiceway.connectors.folder import csv_format
from sluiceway.connectors.folder.csv_format import CsvFormat
from sluiceway.connectors.folder.csv_types import column_type
from sluiceway.connectors.folder.formats import Records
from sluiceway.errors import ConnectError
from support.folder_formats import check_columns, values

NAMES = ("boolean", "int32", "int64", "float32", "float64", "decimal(5,2)", "decimal(38,0)", "date", "timestamp")


@pytest.fixture(autouse=True)
def small_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make columns of a few records, too."""
    monkeypatch.setattr(csv_format, "_FEWEST_BYTES_FOR_COLUMNS", 0)


def records_of(type_: str, null: str | None = None) -> Records:
    found = column_type(type_)
    assert found is not None
    begun = CsvFormat(columns=("id", "value"), types=(("value", found),), null=null).begin(b"x", final=True)
    assert begun is not None
    return begun[1]


def utc(*fields: int) -> dt.datetime:
    return dt.datetime(*fields, tzinfo=dt.timezone.utc)  # type: ignore[arg-type]


GOOD: dict[str, dict[str, Any]] = {
    "boolean": {"true": True, "False": False, "T": True, "f": False, "1": True, "0": False},
    "int32": {"-2147483648": -(2**31), "2147483647": 2**31 - 1, "007": 7, "+5": 5, "-0": 0},
    "int64": {"9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63)},
    "float32": {"0.1": 0.10000000149011612, "3.4e38": 3.3999999521443642e38},
    "float64": {"1.5": 1.5, "1.": 1.0, ".5": 0.5, "-1e-3": -0.001, "inf": math.inf, "-Infinity": -math.inf},
    "decimal(5,2)": {"1.5": Decimal("1.50"), "-.5": Decimal("-0.50"), "999.990": Decimal("999.99"), "-0": Decimal("0.00")},
    "decimal(38,0)": {"9" * 38: Decimal("9" * 38), "007": Decimal(7)},
    "decimal(2,2)": {"0.99": Decimal("0.99")},
    "date": {"2026-11-29": dt.date(2026, 11, 29), "0001-01-01": dt.date(1, 1, 1), "9999-12-31": dt.date(9999, 12, 31)},
    "timestamp": {
        "2026-11-29T10:11:12": utc(2026, 11, 29, 10, 11, 12),
        "2026-11-29 10:11:12.5": utc(2026, 11, 29, 10, 11, 12, 500_000),
        "2026-11-29T10:11:12.123456789Z": utc(2026, 11, 29, 10, 11, 12, 123_000),
        "1969-12-31T23:59:59.9999": utc(1969, 12, 31, 23, 59, 59, 999_000),
        "2026-11-29T10:11+05:30": utc(2026, 11, 29, 4, 41),
        "2026-11-29T10:11:12-0030": utc(2026, 11, 29, 10, 41, 12),
        "2026-11-29T10:11:12+01": utc(2026, 11, 29, 9, 11, 12),
        "2026-11-29": utc(2026, 11, 29),
    },
}

BAD = {
    "boolean": ["yes", "2", "truee"],
    "int32": ["2147483648", "1.0", "1_000", "٣", "0x1", "1e3"],
    "int64": ["9223372036854775808", "1" * 5000],
    "float32": ["1e39", "1,5"],
    "float64": ["1e400", "1_0.0", "e5", ".", "0x1p3", "infin"],
    "decimal(5,2)": ["1.505", "1000", "1e2", "NaN", "."],
    "decimal(38,0)": ["1" * 39, "0.5", "1" * 300_000],
    "decimal(2,2)": ["1.00", "1"],
    "date": ["2026-02-29", "0000-01-01", "20261129", "2026-11-29T00:00:00", "29.11.2026"],
    "timestamp": [
        "2026-11-29T24:00:00",
        "2026-11-29T10",
        "2026-11-29T10:11:60",
        "2026-11-29T10:11+24:00",
        "2026-11-29T10:11+10:60",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "0000-01-01T00:00:00",
        "now",
    ],
}


@pytest.mark.parametrize(("type_", "text", "value"), [(type_, *each) for type_, texts in GOOD.items() for each in texts.items()])
def test_texts_that_have_a_value(type_: str, text: str, value: object) -> None:
    records = records_of(type_)
    data = f'1,{text}\n2," {text}\t"\n3,\n4,""\n5,"  "\n'.encode()
    expected = [repr(value)] * 2 + ["None"] * 3
    assert [repr(row.value["value"]) for row in records.rows(data)] == expected
    for row in records.rows(data):
        row.value.validate()
    check_columns(records, data, 10)


@pytest.mark.parametrize(("type_", "text"), [(type_, text) for type_, texts in BAD.items() for text in texts])
def test_texts_that_have_none(type_: str, text: str) -> None:
    records = records_of(type_)
    data = f'1,"{text}"\n'.encode()
    (row,) = records.rows(data)
    assert row.reason.startswith(f"not a record: column value: {text[:50]!r}"[:-1])
    assert type_ in row.reason
    assert len(row.reason) < 500
    assert records.columns(data, 10) is None


@pytest.mark.parametrize(
    ("type_", "texts"),
    [
        ("boolean", ["true", "FALSE", "0", ""]),
        ("int32", ["-5", "2147483647", ""]),
        ("int64", ["5", "-9223372036854775808"]),
        ("float32", ["0.1", "-1e10", ""]),
        ("float64", ["0.1", "1e300"]),
        ("decimal(5,2)", ["1.5", "-999.99", ""]),
        ("date", ["2026-11-29", ""]),
        ("timestamp", ["2026-11-29 10:11:12", "2026-11-29T10:11:12.123456", ""]),
        ("timestamp", ["2026-11-29 10:11:12Z", "2026-11-29T10:11:12.123456+05:30", ""]),
        ("int32", ["", " "]),
    ],
)
def test_usual_values_have_columns(type_: str, texts: list[str]) -> None:
    data = "".join(f"1,{text}\n" for text in texts).encode()
    assert check_columns(records_of(type_), data, 10)


NUMBERS = st.integers(-(2**65), 2**65).map(str) | st.floats().map(repr) | st.decimals(-1000, 1000, places=3).map(str)
MOMENTS = st.builds(
    lambda moment, separator, digits, zone: (
        moment.isoformat(separator, "auto" if digits is None else "microseconds")[: None if digits is None else 20 + digits]
        + zone
    ),
    st.datetimes(),
    st.sampled_from("T "),
    st.sampled_from([None, 1, 3, 4, 6]),
    st.sampled_from(["", "Z", "+00:00", "-05:30", "+0130", "+23"]),
)
ANY = st.text(st.sampled_from("0123456789+-.:TZ eEtfruinasl"), max_size=22)
TEXTS = NUMBERS | MOMENTS | st.dates().map(str) | ANY | st.sampled_from(["", "true", "f", "1", "0.5", "-0", "-0.0", "NULL"])


@settings(max_examples=1500)
@given(st.sampled_from(NAMES), st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from([None, "NULL"]))
@example("float32", ["3.4028235677973366e38"], None)
@example("float32", ["1.00000017881393432617187499"], None)  # is rounded twice
@example("timestamp", ["2026-01-01Z"], None)
@example("int32", ["+1", "00000000000000000000001"], None)
def test_columns_are_what_rows_are(type_: str, texts: list[str], null: str | None) -> None:
    records = records_of(type_, null)
    data = "".join(f"1,{text}\n" for text in texts).encode()
    if check_columns(records, data, 10):
        assert not any(row.reason for row in records.rows(data))


@settings(max_examples=300)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_as_programs_write_them_have_columns(numbers: list[float]) -> None:
    data = "".join(f"1,{number!r}\n" for number in numbers).encode()
    assert check_columns(records_of("float64"), data, 1000)


def test_a_null_text_is_null_whatever_the_type() -> None:
    data = b"1,NULL\nNULL,2\n"
    assert values(records_of("int32", "NULL").rows(data)) == [(["1", None], False), ([None, 2], False)]
    assert check_columns(records_of("int32", "NULL"), data, 10)


def test_a_file_without_a_typed_column() -> None:
    type_ = column_type("int32")
    assert type_ is not None
    with pytest.raises(ConnectError, match=r"no column price of csv\.types\. Its columns are id, name"):
        CsvFormat(types=(("price", type_),)).begin(b"id,name\n1,x\n", final=False)


def test_decimals_have_their_precision() -> None:
    type_ = column_type("decimal( 12 , 4 )")
    assert type_ is not None
    assert dict(type_.schema.parameters) == {"scale": "4", "connect.decimal.precision": "12"}
    assert type_.name == "decimal(12,4)"


@pytest.mark.parametrize(
    "name", ["", "int", "decimal", "decimal(5)", "decimal(0,0)", "decimal(39,0)", "decimal(2,3)", "decimal(2,-1)"]
)
def test_types_that_there_are_not(name: str) -> None:
    with pytest.raises(ValueError, match="type"):
        column_type(name)
