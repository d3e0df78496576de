from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.data import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Instant,
    Schema,
    Struct,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
    validate_value,
)
from sluiceway.data.logical import DATE
from sluiceway.errors import DataError

INNER = Schema.struct({"a": STRING_SCHEMA})
USER = Schema.struct(
    {
        "name": STRING_SCHEMA,
        "age": OPTIONAL_INT32_SCHEMA,
        "team": Schema(Type.STRING, default="none"),
        "inner": INNER.replace(optional=True),
    }
)


def test_a_struct_is_used_like_a_dict() -> None:
    user = Struct(USER, {"name": "Ann"}).put("age", 33)
    assert dict(user) == {"name": "Ann", "age": 33, "team": "none", "inner": None}
    assert user.get_without_default("team") is None
    assert "name" in user
    assert "nope" not in user
    assert user == Struct.of(USER, ["Ann", 33, None, None])
    assert str(user) == "Struct{name=Ann,age=33}"
    user.validate()


def test_a_32_bit_float_prints_as_one() -> None:
    schema = Schema.struct({"f": FLOAT32_SCHEMA, "l": Schema.array(FLOAT32_SCHEMA)})
    tenth = 0.10000000149011612
    assert str(Struct(schema, {"f": tenth, "l": [tenth]})) == "Struct{f=0.1,l=[0.1]}"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nope", 1, "nope is not a valid field name"),
        ("name", None, 'Invalid value: null used for required field: "name", schema type: STRING'),
        ("team", None, 'Invalid value: null used for required field: "team", schema type: STRING'),
        ("age", "x", 'Invalid Java object for schema with type INT32: class java.lang.String for field: "age"'),
        ("inner", Struct(Schema.struct({"b": STRING_SCHEMA})), "Struct schemas do not match."),
        ("inner", Struct(INNER), "Struct schemas do not match."),  # one is optional
    ],
)
def test_a_value_that_does_not_fit_its_field_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        Struct(USER)[name] = value
    assert str(caught.value) == message


def test_a_struct_without_a_required_value_is_not_valid() -> None:
    with pytest.raises(DataError, match='null used for required field: "name"'):
        Struct(USER, {"age": 1}).validate()


def test_other_schemas_make_no_structs() -> None:
    with pytest.raises(DataError, match=r"Not a struct schema: Schema\{INT8\}"):
        Struct(INT8_SCHEMA)


MIDNIGHT = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize(
    ("schema", "fits", "does_not"),
    [
        (INT8_SCHEMA, [127, -128], [128, -129, True, 1.0, "1"]),
        (INT16_SCHEMA, [2**15 - 1], [2**15]),
        (INT32_SCHEMA, [-(2**31)], [2**31]),
        (INT64_SCHEMA, [2**63 - 1], [2**63, Decimal(1)]),
        (FLOAT64_SCHEMA, [1.5], [1, "1.5"]),
        (BOOLEAN_SCHEMA, [True], [1, "true"]),
        (STRING_SCHEMA, ["x"], [b"x", 1]),
        (BYTES_SCHEMA, [b"x", bytearray(b"x"), memoryview(b"x")], ["x"]),
        (decimal_schema(2), [Decimal("1.5")], [b"x", 1.5]),
        (date_schema(), [dt.date(2024, 1, 1), MIDNIGHT, Instant(2**60)], [5]),
        (time_schema(), [dt.time(1)], [5]),
        (timestamp_schema(), [MIDNIGHT], ["x"]),
        (Schema.array(OPTIONAL_STRING_SCHEMA), [[], ["a", None], ("a",)], ["a", [1]]),
        (Schema.map(STRING_SCHEMA, INT8_SCHEMA), [{}, {"a": 1}], [{"a": None}, {None: 1}, {1: 1}, {"a": 300}, []]),
        (INNER, [Struct(INNER, {"a": "x"})], [{"a": "x"}, Struct(INNER)]),
    ],
)
def test_validation_accepts_only_values_of_the_schema(schema: Schema, fits: list[Any], does_not: list[Any]) -> None:
    for value in fits:
        validate_value(schema, value)
    for value in [*does_not, None]:
        with pytest.raises(DataError):
            validate_value(schema, value)


@pytest.mark.parametrize(
    ("schema", "value", "name", "message"),
    [
        (INT32_SCHEMA, None, None, "Invalid value: null used for required value, schema type: INT32"),
        (
            date_schema(),
            "x",
            "f",
            f'Invalid Java object for schema "{DATE}" with type INT32: class java.lang.String for field: "f"',
        ),
        (
            Schema.array(STRING_SCHEMA),
            [1],
            "f",
            'Invalid Java object for schema with type STRING: class java.lang.Long for element of array field: "f"',
        ),
        (
            Schema.map(STRING_SCHEMA, STRING_SCHEMA),
            {None: "x"},
            None,
            "Invalid value: null used for required key of map value, schema type: STRING",
        ),
    ],
)
def test_the_error_says_where_the_value_is(schema: Schema, value: Any, name: str | None, message: str) -> None:
    with pytest.raises(DataError) as caught:
        validate_value(schema, value, name)
    assert str(caught.value) == message
