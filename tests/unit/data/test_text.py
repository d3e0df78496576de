from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.data import BOOLEAN_SCHEMA, FLOAT64_SCHEMA, STRING_SCHEMA, Float32, Schema, Struct, java_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (12, "12"),
        (1.0, "1.0"),
        (Float32(0.10000000149011612), "0.1"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e10, "1.0E10"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.5e-5, "1.5E-5"),
        (123456789.125, "1.23456789125E8"),
        (-0.0, "-0.0"),
        (-2.5e20, "-2.5E20"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        ([1, None, "a"], "[1, null, a]"),
        ([], "[]"),
        ({"a": 1, "b": [True]}, "{a=1, b=[true]}"),
        ({}, "{}"),
        (b"by\xfftes", "by\ufffdtes"),
        (Decimal("1.50"), "1.50"),
        (dt.datetime(1970, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc), "Fri Jan 02 03:04:05 UTC 1970"),
        (dt.date(979, 1, 5), "Tue Dec 31 00:00:00 UTC 978"),
        (dt.date(2024, 2, 29), "Thu Feb 29 00:00:00 UTC 2024"),
        (dt.time(5, 6, 7), "Thu Jan 01 05:06:07 UTC 1970"),
    ],
)
def test_values_print_as_javas_string_value_of(value: Any, text: str) -> None:
    assert java_text(value) == text


def test_a_struct_prints_its_fields_that_are_not_null() -> None:
    schema = Schema.struct({"a": STRING_SCHEMA, "b": BOOLEAN_SCHEMA, "c": FLOAT64_SCHEMA, "d": STRING_SCHEMA})
    assert java_text(Struct(schema, {"a": "x", "b": True, "c": 1e10})) == "Struct{a=x,b=true,c=1.0E10}"
