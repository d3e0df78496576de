from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.instant import Instant
from sluiceway.data.logical import date_schema, time_schema, timestamp_schema
from sluiceway.data.numbers import Int32
from sluiceway.errors import ConfigError, ConnectError, DataError
from sluiceway.transforms.timestamp_converter import TimestampConverterKey, TimestampConverterValue
from unit.transforms.transforming import configured, plain, struct_of, transformed, value_of

UTC = dt.timezone.utc
MOMENT = dt.datetime(2022, 4, 15, 5, 20, 0, 123000, tzinfo=UTC)
MILLIS = 1650000000123
TEXT = "2022-04-15 05:20:00.123"
PATTERN = "yyyy-MM-dd HH:mm:ss.SSS"
FORMS: dict[str, tuple[Any, Schema]] = {
    "string": (TEXT, STRING_SCHEMA),
    "unix": (MILLIS, INT64_SCHEMA),
    "Date": (MOMENT.date(), date_schema()),
    "Time": (MOMENT.timetz().replace(tzinfo=None), time_schema()),
    "Timestamp": (MOMENT, timestamp_schema()),
}
MIDNIGHT = dt.datetime(2022, 4, 15, tzinfo=UTC)
ON_FIRST_DAY = dt.datetime(1970, 1, 1, 5, 20, 0, 123000, tzinfo=UTC)


def to(target: str, **options: str) -> TimestampConverterValue:
    return configured(TimestampConverterValue, target_type=target, **{"format": PATTERN, **options})


@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize("source", ["string", "unix", "Timestamp"])
def test_every_type_converts_to_every_other(source: str, target: str) -> None:
    value, schema = FORMS[source]
    expected, expected_schema = FORMS[target]
    record = transformed(to(target), value, schema)
    assert (record.value, record.value_schema) == (expected, expected_schema)
    assert transformed(to(target), value).value == expected


@pytest.mark.parametrize(("source", "left"), [("Date", MIDNIGHT), ("Time", ON_FIRST_DAY)])
def test_a_date_has_no_time_and_a_time_is_on_the_first_day(source: str, left: dt.datetime) -> None:
    value, schema = FORMS[source]
    assert transformed(to("Timestamp"), value, schema).value == left
    assert transformed(to("unix"), value, schema).value == round(left.timestamp() * 1000)


def test_the_schema_keeps_optional_only() -> None:
    schema = Schema(Type.INT64, optional=True, default=5, doc="d", name="N")
    assert transformed(to("Timestamp"), MILLIS, schema).value_schema == timestamp_schema(optional=True)


def test_a_converted_field_keeps_its_position() -> None:
    fields = {"a": Schema(Type.INT64, optional=True, default=MILLIS), "b": Schema(Type.STRING, optional=True, default="d")}
    record = transformed(to("string", field="a"), *struct_of(fields, {}, optional=True, name="N"))
    assert plain(record.value) == {"a": TEXT, "b": "d"}
    expected = {"a": Schema(Type.STRING, optional=True), "b": fields["b"]}
    assert record.value_schema == Schema.struct(expected, optional=True, name="N")
    keep = to("string", field="a", replace_null_with_default="false")
    assert value_of(keep, *struct_of(fields, {})) == {"a": None, "b": None}


def test_the_default_of_the_whole_is_converted_too() -> None:
    fields = {"a": INT64_SCHEMA}
    schema = Schema.struct(fields, optional=True, default=Struct(Schema.struct(fields), {"a": MILLIS}))
    converted = transformed(to("string", field="a"), Struct(schema, {"a": 0}), schema).value_schema
    assert converted is not None
    assert plain(converted.default) == {"a": TEXT}


def test_a_missing_field_is_added_to_a_map_and_left_out_of_a_struct() -> None:
    assert value_of(to("string", field="nope"), {"a": 1}) == {"a": 1, "nope": None}
    assert value_of(to("string", field="nope"), *struct_of({"a": INT64_SCHEMA}, {"a": 1})) == {"a": 1}


def test_null_stays_null_under_the_new_schema() -> None:
    assert transformed(to("string"), None, Schema(Type.INT64, optional=True)).value_schema == Schema(Type.STRING, optional=True)
    assert transformed(to("string", field="a"), None).value is None
    record = transformed(to("unix", field="a"), None, Schema.struct({"a": Schema(Type.INT32)}, optional=True))
    assert (record.value, record.value_schema) == (None, Schema.struct({"a": INT64_SCHEMA}, optional=True))
    with pytest.raises(DataError, match="Cannot list fields on non-struct type"):
        transformed(to("unix", field="a"), None, STRING_SCHEMA)


@pytest.mark.parametrize(
    ("precision", "unix", "millis"),
    [
        ("seconds", -1, -1000),
        ("microseconds", -1, 0),
        ("microseconds", -1001, -1),
        ("nanoseconds", 1_999_999, 1),
        ("seconds", 2**62, 2**63 - 1),
    ],
)
def test_unix_time_is_read_in_its_unit_cut_toward_zero_and_saturated(precision: str, unix: int, millis: int) -> None:
    result = transformed(to("Timestamp", unix_precision=precision), unix, INT64_SCHEMA).value
    assert result == (Instant(millis) if millis == 2**63 - 1 else MOMENT + dt.timedelta(milliseconds=millis - MILLIS))


@pytest.mark.parametrize(
    ("precision", "millis", "unix"),
    [("seconds", -1, 0), ("seconds", -1999, -1), ("microseconds", 5, 5000), ("nanoseconds", 253402300799999, 2**63 - 1)],
)
def test_unix_time_is_written_in_its_unit_cut_toward_zero_and_saturated(precision: str, millis: int, unix: int) -> None:
    moment = dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(milliseconds=millis)
    assert transformed(to("unix", unix_precision=precision), moment, timestamp_schema()).value == unix


@pytest.mark.parametrize(("value", "name"), [(Int32(5), "Integer"), (True, "Boolean"), (1.5, "Double"), ({}, "HashMap")])
def test_without_a_schema_only_long_string_and_date_are_timestamps(value: Any, name: str) -> None:
    with pytest.raises(DataError, match=rf"does not support class java\.\w+\.{name} objects as timestamps"):
        transformed(to("unix"), value)


def test_other_schemas_are_refused_even_for_a_null_field() -> None:
    with pytest.raises(
        ConnectError, match=r"^Schema Schema\{INT32\} does not correspond to a known timestamp type format$"
    ) as caught:
        transformed(to("unix"), 5, Schema(Type.INT32))
    assert not isinstance(caught.value, DataError)
    with pytest.raises(ConnectError, match=r"Schema\{FLOAT64\} does not correspond"):
        transformed(to("unix", field="a"), *struct_of({"a": Schema(Type.FLOAT64, optional=True)}, {}))


def test_a_field_is_only_found_in_maps_and_structs() -> None:
    with pytest.raises(DataError, match=r"\[converting timestamp formats\], found: java.lang.Long"):
        transformed(to("unix", field="a"), 5)
    with pytest.raises(DataError, match=r"\[converting timestamp formats\], found: java.lang.String"):
        transformed(to("unix", field="a"), "x", STRING_SCHEMA)


def test_the_midnight_before_the_first_moment_of_all_wraps_around_as_in_java() -> None:
    assert transformed(to("Date"), -(2**63), INT64_SCHEMA).value == Instant(9223372036794351616)


def test_text_that_does_not_match_is_an_error_with_the_pattern() -> None:
    with pytest.raises(DataError, match=r"Could not parse timestamp: value \(z\) does not match pattern \(yyyy\)"):
        transformed(to("unix", format="yyyy"), "z")


def test_text_cannot_be_read_without_a_format() -> None:
    with pytest.raises(TypeError, match="option format"):
        transformed(configured(TimestampConverterValue, target_type="unix"), "2022")


@pytest.mark.parametrize("pattern", ["", " "])
def test_text_cannot_be_the_target_without_a_format(pattern: str) -> None:
    with pytest.raises(ConfigError, match="requires format option to be specified"):
        to("string", format=pattern)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"target_type": "date"}, "Invalid value date for configuration target.type: String must be one of: string, unix, Date"),
        ({"target_type": "unix", "unix_precision": "minutes"}, "Invalid value minutes for configuration unix.precision"),
        ({"target_type": "unix", "format": "b"}, "SimpleDateFormat-compatible pattern"),
        ({}, 'Missing required configuration "target.type"'),
    ],
)
def test_options_are_checked(options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        configured(TimestampConverterValue, **options)


def test_the_key_form_leaves_the_value_alone() -> None:
    record = transformed(configured(TimestampConverterKey, target_type="Timestamp"), 5, key=MILLIS)
    assert (record.key, record.value) == (MOMENT, 5)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_long_becomes_a_timestamp_and_comes_back(millis: int) -> None:
    moment = transformed(to("Timestamp"), millis, INT64_SCHEMA).value
    assert transformed(to("unix"), moment, timestamp_schema()).value == millis


@given(st.integers(-62135596800000, 253402300799999))
def test_date_and_time_together_are_the_timestamp(millis: int) -> None:
    date = transformed(to("unix"), transformed(to("Date"), millis).value).value
    time = transformed(to("unix"), transformed(to("Time"), millis).value).value
    assert date + time == millis
    assert 0 <= time < 24 * 60 * 60 * 1000
