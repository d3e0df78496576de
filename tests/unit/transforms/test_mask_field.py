from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.numbers import Float32, Int8, Int16, Int32
from sluiceway.errors import ConfigError, DataError
from sluiceway.transforms.mask_field import MaskFieldKey, MaskFieldValue
from unit.transforms.transforming import configured, struct_of, transformed, value_of

UTC = dt.timezone.utc
MOMENT = dt.datetime(2022, 4, 15, 5, 20, tzinfo=UTC)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "blank"),
    [
        (7, 0),
        (Int8(7), Int8(0)),
        (Int16(7), Int16(0)),
        (Int32(7), Int32(0)),
        (1.5, 0.0),
        (Float32(1.5), Float32(0)),
        (True, False),
        ("text", ""),
        ([1], []),
        ({"a": 1}, {}),
        (Decimal("1.50"), Decimal(0)),
        (MOMENT, EPOCH),
        (None, None),
    ],
)
def test_a_value_becomes_the_empty_one_of_its_class(value: Any, blank: Any) -> None:
    result = value_of(configured(MaskFieldValue, fields="a"), {"a": value, "b": 1})
    assert result == {"a": blank, "b": 1}
    assert type(result["a"]) is type(blank)


def test_logical_types_become_the_epoch() -> None:
    fields = {"d": date_schema(), "t": time_schema(), "ts": timestamp_schema(), "n": decimal_schema(2)}
    values = {"d": MOMENT.date(), "t": dt.time(5, 20), "ts": MOMENT, "n": Decimal("1.50")}
    assert value_of(configured(MaskFieldValue, fields="d,t,ts,n"), *struct_of(fields, values)) == {
        "d": dt.date(1970, 1, 1),
        "t": dt.time(0),
        "ts": EPOCH,
        "n": Decimal(0),
    }


def test_a_field_that_is_not_there_is_added_to_a_map_and_left_out_of_a_struct() -> None:
    mask = configured(MaskFieldValue, fields="nope")
    assert value_of(mask, {"a": 1}) == {"a": 1, "nope": None}
    assert value_of(mask, *struct_of({"a": INT64_SCHEMA}, {"a": 1})) == {"a": 1}


@pytest.mark.parametrize(
    ("type_", "value", "replacement", "expected"),
    [
        (Type.INT8, 1, "300", 44),
        (Type.INT16, 1, "-5", -5),
        (Type.INT32, 1, "99999999999", 1215752191),
        (Type.INT64, 1, "12.9", 12),
        (Type.INT64, 1, "1e3", 1000),
        (Type.FLOAT32, 1.0, "0.1", 0.10000000149011612),
        (Type.FLOAT64, 1.0, "0.1", 0.1),
        (Type.STRING, "s", "***", "***"),
        (Type.INT64, 1, "1e70", 0),
    ],
)
def test_a_replacement_is_cut_to_the_width_of_the_field(type_: Type, value: Any, replacement: str, expected: Any) -> None:
    mask = configured(MaskFieldValue, fields="a", replacement=replacement)
    assert value_of(mask, *struct_of({"a": Schema(type_)}, {"a": value})) == {"a": expected}


def test_without_a_schema_a_replacement_keeps_the_class() -> None:
    result = value_of(configured(MaskFieldValue, fields="a,b", replacement="300"), {"a": Int8(1), "b": Float32(1)})
    assert result == {"a": 44, "b": 300.0}
    assert (type(result["a"]), type(result["b"])) == (Int8, Float32)


@pytest.mark.parametrize(("value", "name"), [(True, "Boolean"), ([1], "ArrayList"), ({"a": 1}, "HashMap"), (MOMENT, "Date")])
def test_only_numbers_and_text_are_replaced(value: Any, name: str) -> None:
    with pytest.raises(DataError, match=rf"Cannot mask value of type class java\.\w+\.{name} with custom replacement"):
        transformed(configured(MaskFieldValue, fields="a", replacement="1"), {"a": value})


@pytest.mark.parametrize("value", [b"x", Struct(Schema.struct({}))])
def test_bytes_and_structs_cannot_be_masked(value: Any) -> None:
    with pytest.raises(DataError, match="Cannot mask value of type: class"):
        transformed(configured(MaskFieldValue, fields="a"), {"a": value})


@pytest.mark.parametrize("replacement", ["abc", "0x10", "1_000", " 5", "NaN"])
def test_a_replacement_for_a_number_has_to_be_one(replacement: str) -> None:
    mask = MaskFieldValue()
    mask.configure({"fields": "a", "replacement": f"x{replacement}"})
    with pytest.raises(DataError, match=r"Unable to convert .* \(class java.lang.String\) to a number"):
        transformed(mask, {"a": 1})


def test_a_null_value_is_an_error() -> None:
    mask = configured(MaskFieldValue, fields="a")
    with pytest.raises(DataError, match=r"Only Map objects .* found: null"):
        transformed(mask, None)
    with pytest.raises(DataError, match=r"Only Struct objects .* found: null"):
        transformed(mask, None, Schema.struct({}, optional=True))


def test_null_is_not_replaced() -> None:
    mask = configured(MaskFieldValue, fields="a", replacement="***")
    assert value_of(mask, {"a": None}) == {"a": None}
    assert value_of(mask, *struct_of({"a": Schema(Type.STRING, optional=True)}, {"a": None})) == {"a": None}


def test_a_masked_null_takes_the_empty_value_of_its_default() -> None:
    fields = {"a": Schema(Type.STRING, default="d"), "b": Schema(Type.STRING, default="d")}
    assert value_of(configured(MaskFieldValue, fields="a"), *struct_of(fields, {})) == {"a": "", "b": "d"}


def test_the_schema_stays_the_same_object() -> None:
    value, schema = struct_of({"a": STRING_SCHEMA}, {"a": "x"}, optional=True, name="N")
    assert transformed(configured(MaskFieldValue, fields="a"), value, schema).value_schema is schema


@pytest.mark.parametrize(
    ("fields", "text"), [("a,a", "must not be duplicated"), (",a", "must not be empty"), ("", "must not be empty")]
)
def test_fields_are_named_once_and_have_names(fields: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        configured(MaskFieldValue, fields=fields)


def test_an_empty_replacement_is_refused() -> None:
    with pytest.raises(ConfigError, match="String must be non-empty"):
        configured(MaskFieldValue, fields="a", replacement="")


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(10**30), 10**30))
def test_any_integer_replaces_with_its_low_bits(value: int, replacement: int) -> None:
    schema = Schema.struct({"a": Schema(Type.INT16)})
    record = transformed(
        configured(MaskFieldKey, fields="a", replacement=str(replacement)), None, key=Struct(schema, {"a": 1}), key_schema=schema
    )
    assert (record.key["a"] - replacement) % 2**16 == 0
    assert -(2**15) <= record.key["a"] < 2**15
    mask = configured(MaskFieldValue, fields="a")
    given_value = {"a": value}
    assert value_of(mask, given_value) == {"a": 0}
    assert given_value == {"a": value}
