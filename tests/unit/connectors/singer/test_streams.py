"""Messages for targets: any schema and value goes through SCHEMA and RECORD, is valid, and is read back equal."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.singer.sink_config import sink_options
from sluiceway.connectors.singer.streams import Streams, state_of
from sluiceway.data import BigInteger, Float32, Instant, Schema, Struct, Type, decimal_schema, timestamp_schema
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.errors import DataError
from sluiceway.java.numbers import to_float32
from support import connect_data
from support.singer_targets import parsed, record, records_in

_WIDE = Context(prec=2000)


def streams(**keys: str) -> Streams:
    given_keys = {key.replace("_", "."): value for key, value in keys.items()}
    return Streams(sink_options({"singer.target": "target-x", **given_keys}))


def messages_of(made: Streams, *records: SinkRecord) -> list[dict[str, Any]]:
    for each in records:
        made.add(each)
    return parsed(list(made.messages()))


def check(found: list[dict[str, Any]]) -> None:
    """Check each record with the schema that it follows, as targets do."""
    schemas: dict[str, Any] = {}
    with localcontext(_WIDE):
        for each in found:
            if each["type"] == "SCHEMA":
                jsonschema.Draft7Validator.check_schema(each["schema"])
                schemas[each["stream"]] = jsonschema.Draft7Validator(each["schema"])
                assert set(each["key_properties"]) <= set(each["schema"]["properties"])
            else:
                schemas[each["stream"]].validate(each["record"])


def read(schema: Schema, plain: Any) -> Any:
    """Return the value of a JSON form by its Connect schema: what a source on the target's data would make."""
    if plain is None:
        return None
    if schema.name in _READERS:
        return _READERS[schema.name](schema, plain)
    if schema.type is Type.STRUCT:
        return Struct.of(schema, [read(field.schema, plain[field.name]) for field in schema.fields])
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return [read(schema.value_schema, each) for each in plain]
    if schema.type is Type.MAP:
        assert schema.value_schema is not None
        assert schema.key_schema is not None
        items = plain.items() if isinstance(plain, dict) else [(each["key"], each["value"]) for each in plain]
        return {read(schema.key_schema, key): read(schema.value_schema, each) for key, each in items}
    if schema.type is Type.BYTES:
        return base64.b64decode(plain)
    if schema.type is Type.FLOAT32:
        return to_float32(float(plain))
    return float(plain) if schema.type is Type.FLOAT64 else plain


def _decimal(schema: Schema, plain: Any) -> Decimal:
    return Decimal(plain).quantize(Decimal(1).scaleb(-int(schema.parameters["scale"])), context=_WIDE)


_READERS: dict[str | None, Callable[[Schema, Any], Any]] = {
    DECIMAL: _decimal,
    DATE: lambda _, plain: dt.date.fromisoformat(plain),
    TIME: lambda _, plain: dt.time.fromisoformat(plain),
    TIMESTAMP: lambda _, plain: dt.datetime.fromisoformat(plain),
}


def has_instant(value: Any) -> bool:
    """Return whether a value has a moment outside of the years 1 to 9999, which RFC 3339 does not have."""
    if isinstance(value, Struct):
        return any(map(has_instant, value.values_))
    if isinstance(value, dict):
        return any(has_instant(each) for each in value.values())
    return any(map(has_instant, value)) if isinstance(value, list) else isinstance(value, Instant)


def with_defaults(schema: Schema, value: Any) -> Any:
    """Return a value whose nulls are the defaults of their schemas, as ``replace.null.with.default`` makes them."""
    if value is None:
        return schema.default
    if schema.type is Type.STRUCT:
        pairs = zip(schema.fields, value.values_, strict=True)
        return Struct.of(schema, [with_defaults(field.schema, each) for field, each in pairs])
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return [with_defaults(schema.value_schema, each) for each in value]
    if schema.type is Type.MAP:
        assert schema.value_schema is not None
        return {key: with_defaults(schema.value_schema, each) for key, each in value.items()}
    return value


@st.composite
def structs(draw: Any) -> tuple[Schema, list[Struct]]:
    """The schema of a struct, and values of it that JSON has."""
    fields = draw(
        st.lists(st.tuples(connect_data.names, connect_data.schemas(2)), min_size=1, max_size=5, unique_by=lambda f: f[0])
    )
    schema = Schema.struct(fields)
    rows = [[draw(connect_data.values(field.schema)) for field in schema.fields] for _ in range(draw(st.integers(1, 3)))]
    made = [Struct.of(schema, row) for row in rows]
    return schema, [each for each in made if not has_instant(with_defaults(schema, each))]


@given(structs())
def test_structs_of_any_schema_are_valid_and_are_read_back_equal(case: tuple[Schema, list[Struct]]) -> None:
    schema, values = case
    found = messages_of(streams(), *(record(number, each, value_schema=schema) for number, each in enumerate(values)))
    check(found)
    assert [each["type"] for each in found] == (["SCHEMA"] + ["RECORD"] * len(values) if values else [])
    back = [read(schema, {**dict.fromkeys(field.name for field in schema.fields), **each}) for each in records_in(found)]
    assert back == [with_defaults(schema, each) for each in values]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | connect_data.floats
    | connect_data.texts
    | st.binary(max_size=8)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.datetimes(timezones=st.just(dt.timezone.utc))
    | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(connect_data.names, inner, max_size=3),
    max_leaves=12,
)


def plain_of(value: Any) -> Any:
    """Return what a value without a schema is in JSON, if no other value makes it a text."""
    if isinstance(value, dict):
        return {name: plain_of(each) for name, each in value.items()}
    if isinstance(value, list):
        return list(map(plain_of, value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="milliseconds")
    return value.isoformat() if isinstance(value, dt.date) else value


@given(st.dictionaries(st.sampled_from("abc"), json_values, max_size=3))
def test_a_value_without_a_schema_keeps_its_form(value: dict[str, Any]) -> None:
    made = streams()
    found = messages_of(made, record(0, value))
    check(found)
    [back] = records_in(found)
    if not any(part.mixed for part in made._forms["orders"]._untyped_value.shape.fields.values()):  # type: ignore[union-attr]
        assert back == plain_of(value)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), json_values, max_size=3), min_size=1, max_size=6))
def test_values_without_schemas_match_one_schema_whatever_they_are(values: list[dict[str, Any]]) -> None:
    found = messages_of(streams(), *(record(number, each) for number, each in enumerate(values)))
    check(found)
    assert [each["type"] for each in found] == ["SCHEMA"] + ["RECORD"] * len(values)
    assert [set(each) for each in records_in(found)] == [set(each) for each in values]


@pytest.mark.parametrize(
    ("values", "schema", "written"),
    [
        ([1, None], {"type": ["null", "integer"]}, [1, None]),
        ([1, 2.5], {"type": ["null", "number"]}, [1, Decimal("2.5")]),
        ([1, Decimal("0.10")], {"type": ["null", "number"]}, [1, Decimal("0.10")]),
        ([BigInteger(10**30)], {"type": ["null", "integer"]}, [10**30]),
        ([Float32(to_float32(0.1))], {"type": ["null", "number"]}, [Decimal("0.1")]),
        ([1, "x"], {"type": ["null", "string"]}, ["1", "x"]),
        ([True, 1], {"type": ["null", "string"]}, ["true", "1"]),
        ([{"b": 1}, "x", [1]], {"type": ["null", "string"]}, ['{"b":1}', "x", "[1]"]),
        ([{"b": 1}, {"b": "x"}], {"type": ["null", "object"], "properties": {"b": {"type": ["null", "string"]}}},
         [{"b": "1"}, {"b": "x"}]),
        ([[1], ["x"], []], {"type": ["null", "array"], "items": {"type": ["null", "string"]}}, [["1"], ["x"], []]),
        ([[], None], {"type": ["null", "array"]}, [[], None]),
        ([b"\x00", "x"], {"type": ["null", "string"]}, ["AA==", "x"]),
        ([b"\x00"], {"type": ["null", "string"], "contentEncoding": "base64"}, ["AA=="]),
        ([dt.date(2026, 1, 2)], {"type": ["null", "string"], "format": "date"}, ["2026-01-02"]),
        ([dt.date(2026, 1, 2), "x"], {"type": ["null", "string"]}, ["2026-01-02", "x"]),
        ([None], None, [None]),
    ],
)  # fmt: skip
def test_types_are_widened_over_the_records_of_a_flush(values: list[Any], schema: Any, written: list[Any]) -> None:
    found = messages_of(streams(), *(record(number, {"a": each}) for number, each in enumerate(values)))
    assert found[0]["schema"]["properties"].get("a") == schema
    assert [each["a"] for each in records_in(found)] == written


def test_types_stay_as_wide_as_they_were_in_the_flush_before() -> None:
    made = streams()
    messages_of(made, record(0, {"a": 1.5, "b": 1}))
    made.clear()
    found = messages_of(made, record(1, {"a": 1}))
    assert found[0]["schema"]["properties"] == {"a": {"type": ["null", "number"]}, "b": {"type": ["null", "integer"]}}


def test_a_bad_record_widens_no_type() -> None:
    made = streams()
    made.add(record(0, {"a": 1}))
    with pytest.raises(
        DataError, match=r"orders-0 at offset 1 cannot be sent to the target: the field c\.d\[\] has a value that JSON"
    ):
        made.add(record(1, {"a": "x", "b": 1, "c": {"d": [float("nan")]}}))
    found = messages_of(made, record(2, {"a": 2}))
    assert found[0]["schema"]["properties"] == {"a": {"type": ["null", "integer"]}}
    assert records_in(found) == [{"a": 1}, {"a": 2}]


def test_an_object_with_very_many_names_has_any_fields() -> None:
    found = messages_of(streams(), *(record(number, {"a": {f"n{number}": number}}) for number in range(1100)))
    assert found[0]["schema"]["properties"] == {"a": {"type": ["null", "object"]}}
    check(found)


NAMES: dict[str, tuple[Any, Any, Any, Any]] = {
    DECIMAL: (decimal_schema(2), Decimal("12.30"), {"type": "number", "multipleOf": Decimal("0.01")}, Decimal("12.30")),
    "huge decimal": (decimal_schema(20), Decimal("1" * 40 + "." + "2" * 20), None, Decimal("1" * 40 + "." + "2" * 20)),
    "io.debezium.time.Timestamp": (Type.INT64, 1, {"type": "string", "format": "date-time"}, "1970-01-01T00:00:00.001+00:00"),
    "io.debezium.time.MicroTimestamp": (Type.INT64, -1, None, "1969-12-31T23:59:59.999999+00:00"),
    "io.debezium.time.NanoTimestamp": (Type.INT64, 1_999, None, "1970-01-01T00:00:00.000001+00:00"),
    "io.debezium.time.ZonedTimestamp": (Type.STRING, "2026-01-01T00:00:00Z", None, "2026-01-01T00:00:00Z"),
    "io.debezium.time.Date": (Type.INT32, 1, {"type": "string", "format": "date"}, "1970-01-02"),
    "io.debezium.time.Time": (Type.INT32, 1, {"type": "string", "format": "time"}, "00:00:00.001"),
    "io.debezium.time.MicroTime": (Type.INT64, 1, None, "00:00:00.000001"),
    "io.debezium.time.NanoTime": (Type.INT64, 1_000, None, "00:00:00.000001"),
    "io.debezium.data.Json": (Type.STRING, "{}", {"type": "string"}, "{}"),
}


@pytest.mark.parametrize("name", NAMES)
def test_logical_types_and_those_of_debezium_have_json_forms(name: str) -> None:
    given_schema, value, expected, written = NAMES[name]
    schema = given_schema if isinstance(given_schema, Schema) else Schema(given_schema, name=name)
    row = Schema.struct([("a", schema)])
    found = messages_of(streams(), record(0, Struct.of(row, [value]), value_schema=row))
    assert records_in(found) == [{"a": written}]
    if expected is not None:
        assert found[0]["schema"]["properties"]["a"] == expected
    check(found)


@pytest.mark.parametrize(("replace", "written"), [("true", "x"), ("false", None)])
def test_a_null_is_the_default_of_its_schema_unless_nulls_are_kept(replace: str, written: str | None) -> None:
    inner = Schema.struct([("b", Schema(Type.STRING, optional=True, default="x"))])
    row = Schema.struct(
        [("a", Schema(Type.STRING, optional=True, default="x")), ("c", inner), ("d", Schema(Type.INT32, default=5))]
    )
    value = Struct.of(row, [None, Struct.of(inner, [None]), None])
    made = streams(**{"replace.null.with.default": replace})
    assert records_in(messages_of(made, record(0, value, value_schema=row))) == [{"a": written, "c": {"b": written}, "d": 5}]


INT, TEXT = Schema(Type.INT64), Schema(Type.STRING)
ROW = Schema.struct([("id", INT), ("note", Schema(Type.STRING, optional=True))])
BAD = {
    "of another type": (Struct.of(ROW, ["x", None]), "the field id has a value that is not a int64 for JSON (str)"),
    "null where none is allowed": (Struct.of(ROW, [None, None]), "the field id is null, and its schema does not allow that"),
    "half a surrogate pair": (Struct.of(ROW, [1, "\ud800"]), "the field note has a value that is not a string for JSON"),
    "an integer of more than 64 bits": (Struct.of(ROW, [1 << 63, None]), "the field id has a value that is not a int64 for JSON"),
    "a number": (1, "Its value is no struct, but of the type int"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_values_are_errors_of_their_record(case: str) -> None:
    value, problem = BAD[case]
    made = streams()
    with pytest.raises(DataError, match="orders-0 at offset 0 cannot be sent to the target: ") as caught:
        made.add(record(0, value, value_schema=ROW))
    assert problem in str(caught.value)
    assert made.count == 0
    assert not list(made.messages())


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        (
            1,
            INT,
            "Its value is no object, but has a schema of the type int64. Put it into a field with the transform HoistField.",
        ),
        ("x", None, "Its value is no object, but of the type str. Put it into a field with the transform HoistField."),
        ({"a": Decimal("NaN")}, None, "the field a has a value that JSON does not have: NaN and infinities are no JSON"),
        ({1: 2}, None, "the field at the top is a map with keys that are no texts"),
        ({"a": object()}, None, "the field a has a value that JSON does not have (object)"),
        ({"a": Instant(1 << 60)}, None, "the field a has a value that JSON does not have (Instant)"),
    ],
)
def test_values_that_are_no_objects_are_errors(value: Any, schema: Schema | None, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        streams().add(record(0, value, value_schema=schema))
    assert problem in str(caught.value)


def test_deep_values_are_errors() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(DataError, match="is more than 100 levels deep"):
        streams().add(record(0, {"a": value}))


def test_a_tombstone_is_an_error_unless_it_is_ignored() -> None:
    with pytest.raises(DataError, match="orders-0 at offset 3 has no value, and a target cannot delete"):
        streams().add(record(3, None))
    assert not messages_of(streams(behavior_on_null_values="ignore"), record(3, None))


# --- streams and keys ---

KEY = Schema.struct([("id", INT), ("region", TEXT)])


def keyed(key: Any, schema: Schema | None = None) -> SinkRecord:
    return record(7, {"id": 1, "total": 2}, key=key, key_schema=schema, partition=3)


@pytest.mark.parametrize(
    ("keys", "given_record", "expected", "row"),
    [
        ({}, keyed("k"), [], {"id": 1, "total": 2}),
        ({"pk_mode": "record_value"}, keyed(None), ["id", "total"], {"id": 1, "total": 2}),
        ({"pk_mode": "record_value", "pk_fields": "id"}, keyed(None), ["id"], {"id": 1, "total": 2}),
        ({"pk_mode": "record_key"}, keyed(Struct.of(KEY, [5, "eu"]), KEY), ["id", "region"],
         {"id": 5, "region": "eu", "total": 2}),
        ({"pk_mode": "record_key", "pk_fields": "region"}, keyed(Struct.of(KEY, [5, "eu"]), KEY), ["region"],
         {"id": 1, "region": "eu", "total": 2}),
        ({"pk_mode": "record_key", "pk_fields": "code"}, keyed("k", TEXT), ["code"], {"code": "k", "id": 1, "total": 2}),
        ({"pk_mode": "record_key", "pk_fields": "code"}, keyed("k"), ["code"], {"code": "k", "id": 1, "total": 2}),
        ({"pk_mode": "record_key"}, keyed({"id": 5}), ["id"], {"id": 5, "total": 2}),
        ({"pk_mode": "kafka"}, keyed(None), ["__connect_topic", "__connect_partition", "__connect_offset"],
         {"__connect_topic": "orders", "__connect_partition": 3, "__connect_offset": 7, "id": 1, "total": 2}),
        ({"pk_mode": "kafka", "pk_fields": "t,p,o"}, keyed(None), ["t", "p", "o"],
         {"t": "orders", "p": 3, "o": 7, "id": 1, "total": 2}),
    ],
)  # fmt: skip
def test_key_properties_come_from_the_key_the_value_or_kafka(
    keys: dict[str, str], given_record: SinkRecord, expected: list[str], row: dict[str, Any]
) -> None:
    found = messages_of(streams(**keys), given_record)
    check(found)
    assert found[0]["key_properties"] == expected
    assert records_in(found) == [row]
    assert all("null" not in found[0]["schema"]["properties"][name]["type"] for name in expected)


@pytest.mark.parametrize(
    ("keys", "given_record", "problem"),
    [
        ({"pk_mode": "record_value", "pk_fields": "no"}, keyed(None), "Its value has no field no, which pk.fields names."),
        ({"pk_mode": "record_key", "pk_fields": "no"}, keyed({"id": 1}), "Its key has no field no, which pk.fields names."),
        ({"pk_mode": "record_key"}, keyed(None), "It has no key, and pk.mode=record_key takes key_properties from it."),
        ({"pk_mode": "record_key"}, keyed("k"), "pk.fields must name one field for it; it names none."),
        ({"pk_mode": "record_key"}, keyed({"id": None}), "The field id of its key is null."),
    ],
)
def test_a_record_without_its_key_is_an_error(keys: dict[str, str], given_record: SinkRecord, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        streams(**keys).add(given_record)
    assert problem in str(caught.value)


def test_keys_of_several_kinds_become_texts_and_do_not_touch_the_value() -> None:
    made = streams(pk_mode="record_key", pk_fields="code")
    found = messages_of(made, record(0, {"code": 5, "a": 1}, key=1), record(1, {"code": "x", "a": 2}, key="k"))
    check(found)
    assert records_in(found) == [{"code": "1", "a": 1}, {"code": "k", "a": 2}]


def test_topics_have_streams_and_each_stream_its_schema() -> None:
    made = streams(singer_stream="raw_${topic}")
    found = messages_of(made, record(0, {"a": 1}), record(0, {"b": 1}, "people"), record(1, {"a": 2}))
    assert [(each["type"], each["stream"]) for each in found] == [
        ("SCHEMA", "raw_orders"),
        ("RECORD", "raw_orders"),
        ("RECORD", "raw_orders"),
        ("SCHEMA", "raw_people"),
        ("RECORD", "raw_people"),
    ]


def test_the_time_of_a_record_is_that_of_its_extraction() -> None:
    [_schema, message] = messages_of(streams(), record(0, {"a": 1}, timestamp=1))
    assert message["time_extracted"] == "1970-01-01T00:00:00.001+00:00"


WIDER = Schema.struct([("id", INT), ("note", Schema(Type.STRING, optional=True)), ("at", timestamp_schema(optional=True))])


def test_schemas_that_go_together_are_one_and_others_follow_where_they_change() -> None:
    rows = [Struct.of(ROW, [1, "a"]), Struct.of(WIDER, [2, "b", None]), Struct.of(ROW, [3, "c"])]
    found = messages_of(streams(), *(record(number, each, value_schema=each.schema) for number, each in enumerate(rows)))
    assert [each["type"] for each in found] == ["SCHEMA", "RECORD", "RECORD", "RECORD"]
    assert list(found[0]["schema"]["properties"]) == ["id", "note", "at"]
    check(found)
    other = Schema.struct([("id", TEXT)])
    rows = [rows[0], Struct.of(other, ["x"]), rows[2]]
    found = messages_of(streams(), *(record(number, each, value_schema=each.schema) for number, each in enumerate(rows)))
    assert [each["type"] for each in found] == ["SCHEMA", "RECORD"] * 3
    check(found)


@given(st.lists(structs(), min_size=2, max_size=3))
def test_records_of_any_schemas_in_one_stream_match_the_schema_before_them(cases: list[tuple[Schema, list[Struct]]]) -> None:
    rows = [(schema, value) for schema, values in cases for value in values] * 2
    found = messages_of(streams(), *(record(number, value, value_schema=schema) for number, (schema, value) in enumerate(rows)))
    check(found)
    assert len(records_in(found)) == len(rows)


# --- offsets ---


def test_the_state_has_the_next_offset_of_each_partition_and_dropped_partitions_are_forgotten() -> None:
    made = streams()
    for partition, offset in ((0, 5), (1, 7), (0, 9)):
        made.add(record(offset, {"a": offset}, partition=partition))
    assert state_of(made.ends()) == {"kafka": {"orders-0": 10, "orders-1": 8}}
    assert made.starts() == {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 7}
    made.drop({TopicPartition("orders", 0)}, 6)
    assert (made.ends(), made.count) == ({TopicPartition("orders", 0): 6, TopicPartition("orders", 1): 8}, 2)
    made.drop({TopicPartition("orders", 1)})
    assert records_in(parsed(list(made.messages()))) == [{"a": 5}]
    assert made.size == len(b'{"a":5}')
