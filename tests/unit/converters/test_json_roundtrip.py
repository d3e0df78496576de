"""Properties of JsonConverter: values are read back, and the fast functions agree with the exact ones."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluiceway.converters.json.fast_reader import Unusual, fast_reader
from sluiceway.converters.json.fast_writer import fast_writer
from sluiceway.converters.json.parser import parse
from sluiceway.converters.json.printer import dumps
from sluiceway.converters.json.reader import reader
from sluiceway.converters.json.writer import JsonWriter
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import Schema, Struct, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.instant import Instant
from sluiceway.errors import ConnectError
from support.connect_data import schemas, texts, values

few = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

given_data = schemas().flatmap(lambda schema: st.tuples(st.just(schema), values(schema)))
options = st.fixed_dictionaries(
    {
        "decimal.format": st.sampled_from(["BASE64", "numeric"]),
        "replace.null.with.default": st.sampled_from(["true", "false"]),
    }
)


def converter(config: dict[str, str]) -> JsonConverter:
    made = JsonConverter()
    made.configure(config)
    return made


def outcome(function: Any, *arguments: Any) -> Any:
    """Return the repr and value of a result, or the type and text of an error."""
    try:
        found = function(*arguments)
    except ConnectError as error:
        return type(error), str(error)
    return repr(found), found


@few
@given(given_data, options)
def test_a_value_written_with_its_schema_is_read_back(data: tuple[Schema, Any], config: dict[str, str]) -> None:
    schema, value = data
    writer, read = converter(config), converter(config).decoder("t")
    written = writer.from_connect_data("t", schema, value)
    for _ in range(3):  # plainly, and by its start
        assert repr(read(written)) == repr((schema, value))
        assert read(written) == (schema, value)


@few
@given(given_data)
def test_a_payload_is_read_back_with_schema_content(data: tuple[Schema, Any]) -> None:
    schema, value = data
    envelope = json.loads(converter({}).from_connect_data("t", schema, value) or b"")
    written = converter({"schemas.enable": "false"}).from_connect_data("t", schema, value)
    assert written is not None
    read = converter({"schema.content": json.dumps(envelope["schema"])}).decoder("t")
    assert read(written) == (schema, value)


@few
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
        | texts,
        lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
        max_leaves=12,
    ).filter(lambda value: value is not None),
    st.sampled_from(["true", "false"]),
)
def test_any_schemaless_value_is_read_back(value: Any, enabled: str) -> None:
    each = converter({"schemas.enable": enabled})
    written = each.from_connect_data("t", None, value)
    for _ in range(2):
        assert repr(each.to_connect_data("t", written).value) == repr(value)


json_nodes = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-5, 300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "AAE=", "BQ", "5"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def odd_payloads(draw: Any) -> tuple[Schema, bytes]:
    """Return a schema, and JSON written with it in which one node was replaced."""
    schema, value = draw(given_data)
    node = json.loads(dumps(JsonWriter().writer(schema)(value)))
    return schema, json.dumps(_with_replaced_node(draw, node)).encode()


def _with_replaced_node(draw: Any, node: Any) -> Any:
    if not node or not isinstance(node, (dict, list)) or draw(st.booleans()):
        return draw(json_nodes)
    key = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
    node[key] = _with_replaced_node(draw, node[key])
    return node


@few
@given(odd_payloads(), st.booleans())
def test_the_fast_reader_agrees_with_the_exact_one_or_raises_unusual(data: tuple[Schema, bytes], use_defaults: bool) -> None:
    schema, payload = data
    try:
        quick = outcome(fast_reader(schema, use_defaults=use_defaults), payload)
    except (Unusual, orjson.JSONDecodeError):
        return
    assert quick == outcome(reader(schema, use_defaults=use_defaults), parse(payload))


@few
@given(given_data, st.booleans())
def test_the_fast_reader_reads_what_was_written(data: tuple[Schema, Any], use_defaults: bool) -> None:
    schema, value = data
    payload = dumps(JsonWriter(use_defaults=use_defaults).writer(schema)(value))
    assert outcome(fast_reader(schema, use_defaults=use_defaults), payload) == (repr(value), value)


@few
@given(given_data, given_data, st.booleans(), st.booleans())
def test_the_fast_writer_agrees_with_the_exact_one(
    data: tuple[Schema, Any], other: tuple[Schema, Any], numeric: bool, use_defaults: bool
) -> None:
    schema, value = data
    writer = JsonWriter(numeric_decimals=numeric, use_defaults=use_defaults)
    plain, quick = writer.writer(schema), fast_writer(writer, schema)
    for each in (value, other[1], None, [value], {"a": value}):  # those of other schemas mostly do not fit
        assert outcome(lambda each=each: dumps(quick(each))) == outcome(lambda each=each: dumps(plain(each)))


PLUS_ONE = dt.timezone(dt.timedelta(hours=1))
DECIMALS = [
    "0.00",
    "1.28",
    "-1.28",
    "-1.29",
    "327.67",
    "327.68",
    "-327.68",
    "-327.69",
    "1E+2",
    "1.2",
    "1.234",
    "NaN",
    "9" * 60 + ".99",
]
MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.timezone.utc),
    dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, dt.timezone.utc),
    dt.datetime(2024, 5, 6, 7, 8, 9, 1_999, PLUS_ONE),
    dt.datetime(2024, 5, 6),  # noqa: DTZ001 (taken as UTC)
    dt.date(1969, 12, 31),
    dt.date(1, 1, 1),
    dt.time(23, 59, 59, 999_999),
    Instant(86_400_000),
    None,
    5,
    "x",
]


@pytest.mark.parametrize("config", [{}, {"decimal.format": "numeric"}], ids=["base64", "numeric"])
@pytest.mark.parametrize(
    ("schema", "values"),
    [(decimal_schema(scale, optional=True), [*map(Decimal, DECIMALS), None, 5, 0.5]) for scale in (2, 0, -2, 400)]
    + [(make(optional=True), MOMENTS) for make in (date_schema, time_schema, timestamp_schema)],
)
def test_both_writers_agree_on_logical_values(config: dict[str, str], schema: Schema, values: list[Any]) -> None:
    writer = converter(config)._writer
    plain, quick = writer.writer(schema), fast_writer(writer, schema)
    for value in values:
        assert outcome(lambda value=value: dumps(quick(value))) == outcome(lambda value=value: dumps(plain(value))), value


def test_logical_values_are_written_as_connect_writes_them() -> None:
    schema = Schema.struct({"d": decimal_schema(2), "at": timestamp_schema(), "on": date_schema(), "t": time_schema()})
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.timezone.utc)
    value = Struct(schema, {"d": Decimal("-1.29"), "at": moment, "on": dt.date(1969, 12, 31), "t": dt.time(0, 0, 1, 999)})
    written = converter({"schemas.enable": "false"}).from_connect_data("t", schema, value)
    assert written == b'{"d":"/38=","at":-1,"on":-1,"t":1000}'
