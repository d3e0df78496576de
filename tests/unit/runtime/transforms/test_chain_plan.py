"""A chain specialized for each schema returns the same records as its transforms applied one by one."""

from __future__ import annotations

import copy
import datetime as dt
import functools
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.data import Header, Schema, Struct, Type
from sluiceway.data.logical import date_schema, decimal_schema, timestamp_schema
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError
from unit.runtime.chains import chain, shape

FIELDS = ("a", "b", "c")

STAGES: list[dict[str, str]] = [
    {"type": "InsertField$Value", "topic.field": "t!", "timestamp.field": "ts", "static.field": "s", "static.value": "v"},
    {"type": "InsertField$Key", "partition.field": "p"},
    {"type": "InsertField$Value", "offset.field": "o"},
    {"type": "ReplaceField$Value", "exclude": "a", "renames": "b:z"},
    {"type": "ReplaceField$Value", "include": "a,b", "replace.null.with.default": "false"},
    {"type": "ReplaceField$Key", "renames": "a:b"},
    {"type": "MaskField$Value", "fields": "a"},
    {"type": "MaskField$Value", "fields": "a,c", "replacement": "12"},
    {"type": "ValueToKey", "fields": "a,b"},
    {"type": "HoistField$Value", "field": "a"},
    {"type": "HoistField$Key", "field": "b"},
    {"type": "ExtractField$Value", "field": "a"},
    {"type": "ExtractField$Value", "field": "a.b", "field.syntax.version": "V2"},
    {"type": "ExtractField$Key", "field": "a"},
    {"type": "SetSchemaMetadata$Value", "schema.name": "N", "schema.version": "3"},
    {"type": "SetSchemaMetadata$Key", "schema.name": "K"},
    {"type": "TimestampRouter"},
    {"type": "RegexRouter", "regex": "(.)(.*)", "replacement": "$2$1"},
    {"type": "Flatten$Value"},
    {"type": "Flatten$Key", "delimiter": "_"},
    {"type": "Cast$Value", "spec": "a:string,b:int8"},
    {"type": "Cast$Value", "spec": "string"},
    {"type": "Cast$Key", "spec": "int32"},
    {"type": "TimestampConverter$Value", "field": "a", "target.type": "Timestamp"},
    {"type": "TimestampConverter$Value", "target.type": "unix"},
    {"type": "InsertHeader", "header": "h", "value.literal": "5"},
    {"type": "DropHeaders", "headers": "h"},
    {"type": "HeaderFrom$Value", "fields": "a", "headers": "x", "operation": "move"},
    {"type": "HeaderFrom$Key", "fields": "b", "headers": "y", "operation": "copy"},
    {"type": "unit.runtime.chains.Repeat"},
]
CONDITIONS = {
    "tombstone": {"type": "RecordIsTombstone"},
    "header": {"type": "HasHeaderKey", "name": "h"},
    "topic": {"type": "TopicNameMatches", "pattern": "o.*"},
}


@st.composite
def stages(draw: st.DrawFn) -> dict[str, str]:
    if draw(st.integers(0, 9)) == 0:
        return {"type": "Filter", "predicate": draw(st.sampled_from(sorted(CONDITIONS)))}
    common = [stage for stage in STAGES if stage["type"] in ("ExtractField$Value", "HoistField$Value")]
    stage = dict(draw(st.sampled_from(STAGES) | st.sampled_from(common)))  # these two make and consume nulls
    if draw(st.integers(0, 3)) == 0:
        stage |= {"predicate": draw(st.sampled_from(sorted(CONDITIONS))), "negate": draw(st.sampled_from(["true", "false"]))}
    return stage


SCALARS: list[tuple[Schema, st.SearchStrategy[Any]]] = [
    (Schema(Type.INT8), st.integers(-128, 127)),
    (Schema(Type.INT32, default=7), st.integers(-(2**31), 2**31 - 1)),
    (Schema(Type.INT64), st.integers(-(2**63), 2**63 - 1)),
    (Schema(Type.FLOAT64), st.floats()),
    (Schema(Type.BOOLEAN), st.booleans()),
    (Schema(Type.STRING, doc="d"), st.text("1x.-é", max_size=4)),
    (Schema(Type.BYTES), st.binary(max_size=3)),
    (decimal_schema(2), st.integers(-999, 999).map(lambda number: Decimal(number).scaleb(-2))),
    (date_schema(), st.dates()),
    (
        timestamp_schema(),
        st.datetimes(dt.datetime(1800, 1, 1)).map(  # noqa: DTZ001 (made aware below)
            lambda moment: moment.replace(microsecond=0, tzinfo=dt.timezone.utc)
        ),
    ),
]


def optional(schema: Schema) -> Schema:
    return Schema(
        schema.type,
        optional=True,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        default=schema.default,
        fields=[(field.name, field.schema) for field in schema.fields],
        key_schema=schema.key_schema,
        value_schema=schema.value_schema,
    )


def struct_of(schema: Schema, values: dict[str, Any]) -> Struct:
    return Struct(schema, {name: value for name, value in values.items() if value is not None})


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> tuple[Schema, st.SearchStrategy[Any]]:
    """Return a schema and a strategy for its values."""
    kind = draw(st.sampled_from(["scalar", "scalar", "struct", "struct", "array", "map"])) if depth else "scalar"
    may_be_null = draw(st.booleans())
    values: st.SearchStrategy[Any]
    if kind == "scalar":
        schema, values = draw(st.sampled_from(SCALARS))
        schema = optional(schema) if may_be_null else schema
    elif kind == "struct":
        names = draw(st.lists(st.sampled_from(FIELDS), unique=True, max_size=3))
        parts = {name: draw(schemas(depth=depth - 1)) for name in names}
        fields = {name: part for name, (part, _) in parts.items()}
        schema = Schema.struct(fields, name=draw(st.sampled_from([None, "S"])), optional=may_be_null)
        values = st.fixed_dictionaries({name: part for name, (_, part) in parts.items()}).map(
            functools.partial(struct_of, schema)
        )
    else:
        inner, inner_values = draw(schemas(depth=0))
        lists, maps = st.lists(inner_values, max_size=2), st.dictionaries(st.sampled_from(FIELDS), inner_values, max_size=2)
        schema = Schema.array(inner, optional=may_be_null)
        values = lists
        if kind == "map":
            schema, values = Schema.map(Schema(Type.STRING), inner, optional=may_be_null), maps
    return schema, st.none() | values if may_be_null else values


SCHEMALESS = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.booleans() | st.text("1x.-é", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def batches(draw: st.DrawFn) -> list[SourceRecord | SinkRecord]:
    kinds = draw(st.lists(schemas() | st.just((None, SCHEMALESS)), min_size=1, max_size=2))
    sink = draw(st.booleans())
    made: list[SourceRecord | SinkRecord] = []
    for number in range(draw(st.integers(1, 6))):
        (key_schema, keys), (value_schema, of_value) = draw(st.sampled_from(kinds)), draw(st.sampled_from(kinds))
        data = {
            "topic": draw(st.sampled_from(["orders", "o", "x"])),
            "value": draw(of_value),
            "value_schema": value_schema,
            "key": draw(st.none() | keys),
            "key_schema": key_schema,
            "timestamp": draw(st.sampled_from([None, 0, 1_700_000_000_123])),
            "headers": draw(st.sampled_from([(), (Header("h", 1), Header("h", "x"))])),
        }
        made.append(
            SinkRecord(kafka_partition=1, kafka_offset=number, **data) if sink else SourceRecord({"p": 1}, {"o": number}, **data)
        )
    return made


def one_by_one(made: TransformationChain[Any], records: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the expected result: the records, their origins, and the failures with stage and error."""
    done: list[Any] = []
    origins: list[Any] = []
    failed: list[Any] = []
    for index, record in enumerate(records):
        try:
            results = made.apply_one_by_one(record)
        except TransformationError as error:
            failed.append((index, error.stage, type(error.__cause__), str(error.__cause__)))
            continue
        done += map(shape, results)
        origins += [index] * len(results)
    return done, origins, failed


@pytest.mark.parametrize("in_place", [False, True])
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(wanted=st.lists(stages(), min_size=1, max_size=4), records=batches())
def test_a_batch_is_transformed_like_its_records_one_by_one(
    in_place: bool, wanted: list[dict[str, str]], records: list[Any]
) -> None:
    expected = one_by_one(chain(*wanted, in_place=False, **CONDITIONS), records)
    given_records = [copy.copy(record) for record in records]
    before = [shape(record) for record in records]
    failed: list[Any] = []
    quick = chain(*wanted, in_place=in_place, **CONDITIONS)
    for _ in range(2):  # what the first batch cached must not change the second
        if in_place:
            given_records = [copy.copy(record) for record in records]
        failed.clear()
        numbers = {id(record): index for index, record in enumerate(given_records)}

        def on_failure(record: Any, error: TransformationError, numbers: dict[int, int] = numbers) -> None:
            failed.append((numbers[id(record)], error.stage, type(error.__cause__), str(error.__cause__)))

        made = quick(given_records, on_failure)
        origins = list(range(len(records))) if made.origins is None else list(made.origins)
        assert ([shape(record) for record in made.records], origins, failed) == expected
    assert [shape(record) for record in records] == before
    if not in_place:
        assert [shape(record) for record in given_records] == before, "a record of the task was changed"
