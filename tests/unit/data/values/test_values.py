from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Float32,
    Int8,
    Int16,
    Schema,
    Type,
    date_schema,
    decimal_schema,
    schema_of,
    time_schema,
    timestamp_schema,
)
from sluiceway.data import values as v
from sluiceway.data.instant import timestamp_of
from sluiceway.errors import DataError, SchemaBuilderError

# Every expectation here is Kafka Connect 4.3.0's.
UTC = dt.timezone.utc
DAY = dt.date(2022, 4, 15)
MOMENT = dt.datetime(2022, 4, 15, 5, 20, 0, 123000, tzinfo=UTC)
TIME = dt.time(5, 20, 0, 123000)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (None, None, None),
        ("null", None, None),
        (" null ", None, None),
        ("", STRING_SCHEMA, ""),
        ("true", BOOLEAN_SCHEMA, True),
        ("1", INT8_SCHEMA, 1),
        ("300", INT16_SCHEMA, 300),
        ("70000", INT32_SCHEMA, 70000),
        ("5000000000", INT64_SCHEMA, 5000000000),
        ("9223372036854775808", decimal_schema(0), Decimal(2**63)),
        ("1.0", INT8_SCHEMA, 1),
        ("1e5", INT32_SCHEMA, 100000),
        ("0.5", FLOAT32_SCHEMA, 0.5),
        ("1e19", FLOAT32_SCHEMA, 9999999980506447872.0),
        ("1e39", FLOAT64_SCHEMA, 1e39),
        ("1e400", decimal_schema(-400), Decimal("1E+400")),
        ("2022-04-15", date_schema(), DAY),
        ("05:20:00.123Z", time_schema(), TIME),
        ("2024-02-30", date_schema(), dt.date(2024, 3, 1)),
        ("2022-04-15T05:20:00.123Z", timestamp_schema(), MOMENT),
        ("05\\:20\\:00.123Z", time_schema(), TIME),
        ("05:20:00", INT8_SCHEMA, 5),
        ("1,2", INT8_SCHEMA, 1),
        (" 1 ", INT8_SCHEMA, 1),
    ],
)
def test_a_literal_is_read_as_the_narrowest_type_that_holds_it(text: str | None, schema: Schema | None, value: Any) -> None:
    assert v.parse_string(text) == (schema, value)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "True",
        "true,",
        "1L",
        ".5",
        "-",
        "--1",
        '"a"',
        " ",
        "a,b",
        "[",
        "{",
        "]",
        "[a]",
        "[,1]",
        "[1,,2]",
        "[1",
        '["a"',
        "[1 2]",
        '["a",null]',
        "[null,1]",
        "{null:1}",
        "{:1}",
        '{"a" 1}',
        '{"a":',
        "{a:1}",
        '{"a":1,"b":null}',
        '["a""b"]',
        "\t]",
    ],
)
def test_other_text_is_a_string(text: str) -> None:
    assert v.parse_string(text) == (STRING_SCHEMA, text)


@pytest.mark.parametrize(
    ("text", "items", "value"),
    [
        ("[]", None, []),
        ("[1,300]", INT16_SCHEMA, [1, 300]),
        ("[1,]", INT8_SCHEMA, [1]),
        ("[ true , false ]", BOOLEAN_SCHEMA, [True, False]),
        ('["2022-04-15"]', date_schema(), [DAY]),
        ("[2022-04-15]", date_schema(), [DAY]),
        ('["a\\"b"]', STRING_SCHEMA, ['a\\"b']),
        ("[[1],[2,3]]", Schema.array(INT8_SCHEMA), [[1], [2, 3]]),
        ("[null]", None, [None]),
        ('[1,"a",null]', None, [1, "a", None]),
        ("[1,1.5]", FLOAT32_SCHEMA, [1.0, 1.5]),
        ("[1]x", INT8_SCHEMA, [1]),
        ("[[1],[]]", Schema(Type.ARRAY), [[1], []]),
        ("[[],[1]]", Schema.array(INT8_SCHEMA), [[], [1]]),
        ('[" "]', STRING_SCHEMA, [""]),
    ],
)
def test_a_list_has_the_schema_that_its_items_share(text: str, items: Schema | None, value: list[Any]) -> None:
    assert v.parse_string(text) == (Schema(Type.ARRAY, value_schema=items), value)


@pytest.mark.parametrize(
    ("text", "keys", "values", "value"),
    [
        ("{}", None, None, {}),
        ('{"a":1,"b":300}', STRING_SCHEMA, INT16_SCHEMA, {"a": 1, "b": 300}),
        ('{"a":1 "b":2}', STRING_SCHEMA, INT8_SCHEMA, {"a": 1, "b": 2}),
        ('{"a":null}', STRING_SCHEMA, None, {"a": None}),
        ('{"a":1,"b":"x"}', STRING_SCHEMA, None, {"a": 1, "b": "x"}),
        ('{"a":1,2:2}', None, None, {"a": 1, 2: 2}),
        ("{1:2,300:4}", INT16_SCHEMA, INT8_SCHEMA, {1: 2, 300: 4}),
        ("{[1]:2}", Schema.array(INT8_SCHEMA), INT8_SCHEMA, {(1,): 2}),
        ('{"a":1}x', STRING_SCHEMA, INT8_SCHEMA, {"a": 1}),
    ],
)
def test_a_map_has_the_schemas_that_its_keys_and_values_share(
    text: str, keys: Schema | None, values: Schema | None, value: dict[Any, Any]
) -> None:
    assert v.parse_string(text) == (Schema(Type.MAP, key_schema=keys, value_schema=values), value)


def test_numbers_of_mixed_lists_keep_their_width() -> None:
    assert [type(item) for item in v.parse_string('[1,300,1.5,5000000000,"a"]').value] == [Int8, Int16, Float32, int, str]
    assert [type(item) for item in v.parse_string("[1,300]").value] == [Int16, Int16]


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, 'a"b', 'a"b'),
        (None, ['a"\\b', 1, None, 1.5], '["a\\"\\\\b",1,null,1.5]'),
        (None, {"a": [True]}, '{"a":[true]}'),
        (None, b"x", "eA=="),
        (None, [b"x"], '["eA=="]'),
        (None, Decimal("-0.01"), "-0.01"),
        (None, 1e21, "1.0E21"),
        (FLOAT32_SCHEMA, 0.10000000149011612, "0.1"),
        (Schema.array(FLOAT32_SCHEMA), [0.10000000149011612], "[0.1]"),
        (date_schema(), DAY, "2022-04-15"),
        (timestamp_schema(), MOMENT, "2022-04-15T05:20:00.123Z"),
        (time_schema(), TIME, "05:20:00.123Z"),
        (timestamp_schema(), timestamp_of(-1), "23:59:59.999Z"),
        (timestamp_schema(), timestamp_of(86400000), "1970-01-02"),
        (None, [[None], {1: "x"}], '[[null],{1:"x"}]'),
    ],
)
def test_values_print_close_to_json(schema: Schema | None, value: Any, text: str) -> None:
    assert v.convert_to_string(schema, value) == text


def test_null_has_no_text_and_other_objects_none_either() -> None:
    assert v.convert_to_string(None, None) is None
    with pytest.raises(DataError, match=r"Failed to serialize unexpected value type builtins\.object"):
        v.convert_to_string(None, object())


JSON_LIKE = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_characters='\\"', min_codepoint=33), min_size=1),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(JSON_LIKE, min_size=1))
def test_a_list_that_was_printed_is_read_back(value: list[Any]) -> None:
    text = v.convert_to_string(None, value)
    assert v.convert_to_string(None, v.parse_string(text).value) == text


@pytest.mark.parametrize(
    ("convert", "schema", "value", "result"),
    [
        (v.convert_to_boolean, None, "true", True),
        (v.convert_to_boolean, None, "0", False),
        (v.convert_to_boolean, None, 0.1, False),
        (v.convert_to_byte, None, 300, 44),
        (v.convert_to_short, None, "1.9", 1),
        (v.convert_to_integer, None, 2**40 + 7, 7),
        (v.convert_to_long, None, 1e20, 2**63 - 1),
        (v.convert_to_long, timestamp_schema(), MOMENT, 1650000000123),
        (v.convert_to_float, None, "1.1", 1.100000023841858),
        (v.convert_to_double, date_schema(), DAY, 19097.0),
        (v.convert_to_list, None, "[1,2]", [1, 2]),
        (v.convert_to_map, None, '{"a":1}', {"a": 1}),
        (v.convert_to_date, timestamp_schema(), MOMENT, DAY),
        (v.convert_to_date, None, "2022-04-15", DAY),
        (v.convert_to_date, INT32_SCHEMA, 19097, DAY),
        (v.convert_to_time, timestamp_schema(), MOMENT, TIME),
        (v.convert_to_timestamp, date_schema(), DAY, dt.datetime(2022, 4, 15, tzinfo=UTC)),
        (v.convert_to_timestamp, INT64_SCHEMA, 1650000000123, MOMENT),
    ],
)
def test_values_are_converted_as_in_connect(convert: Any, schema: Schema | None, value: Any, result: Any) -> None:
    found = convert(schema, value)
    assert (found, type(found)) == (result, type(result))


def test_decimals_come_from_numbers_texts_and_unscaled_bytes() -> None:
    assert str(v.convert_to_decimal(None, "1.50", 5)) == "1.50"
    assert str(v.convert_to_decimal(None, 5, 5)) == "5.0"
    assert str(v.convert_to_decimal(None, b"\x00\x96", 2)) == "1.50"


@pytest.mark.parametrize(
    ("convert", "schema", "value", "message"),
    [
        (v.convert_to_long, None, "abc", "Unable to convert abc (class java.lang.String) to a number"),
        (v.convert_to_long, STRING_SCHEMA, "abc", "Unable to convert abc (class java.lang.String) to Schema{STRING}"),
        (v.convert_to_long, None, MOMENT, "Unable to convert Fri Apr 15 05:20:00 UTC 2022 (class java.util.Date) to a number"),
        (v.convert_to_list, None, "12", "Unable to convert 12 (class java.lang.Byte) to Schema{ARRAY}"),
        (v.convert_to_struct, None, "x", "Unable to convert x (class java.lang.String) to Schema{STRUCT}"),
        (v.convert_to_date, None, None, "Unable to convert a null value to a schema that requires a value"),
    ],
)
def test_what_cannot_be_converted_is_refused(convert: Any, schema: Schema | None, value: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        convert(schema, value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("a", STRING_SCHEMA),
        (True, BOOLEAN_SCHEMA),
        (Int8(1), INT8_SCHEMA),
        (1, INT64_SCHEMA),
        (1.5, FLOAT64_SCHEMA),
        (Float32(1.5), FLOAT32_SCHEMA),
        (None, None),
        (Decimal(1), None),
        (MOMENT, None),
        ([], None),
        ([1, "a"], None),
        ({}, None),
        ([1, None], Schema.array(Schema(Type.INT64, optional=True))),
        ({"a": 1}, Schema.map(STRING_SCHEMA, INT64_SCHEMA)),
    ],
)
def test_schemas_are_inferred(value: Any, schema: Schema | None) -> None:
    assert schema_of(value) == schema


def test_a_list_of_nulls_has_no_schema_at_all() -> None:
    with pytest.raises(SchemaBuilderError, match="type cannot be null"):
        schema_of([None])


def test_the_format_of_a_moment_depends_on_its_size() -> None:
    patterns = [v.date_format_for(millis).pattern for millis in (-1, 86399999, 86400000, 86400001)]
    assert patterns == ["HH:mm:ss.SSS'Z'", "HH:mm:ss.SSS'Z'", "yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"]


def test_not_a_number_is_zero_and_infinity_the_largest() -> None:
    assert [v.convert_to_integer(None, value) for value in (math.nan, math.inf)] == [0, -1]
