"""Which batches each transform and predicate handles as columns, exactly, and why not the others.

A batch handled as columns has the same records as in row form. A columnar form that refuses a batch it used to handle makes
connectors slow without an error, so the table below has all of them.
"""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import Predicate, SinkRecord, Transform
from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.data import FLOAT64_SCHEMA, INT32_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, timestamp_schema
from sluiceway.data.instant import timestamp_of
from sluiceway.runtime.columns import has_columnar_form
from sluiceway.runtime.transforms.chain_config import transformation_stages
from sluiceway.runtime.transforms.column_chain import ColumnChain
from support.columnar import Case, batch_of, differences
from unit.runtime.chains import chain_config
from unit.transforms.columns.test_equality import classes

_COUNT = 8
_DAY = 86_400_000
_NOON = 1_700_000_000_000
_INNER = Schema.struct({"x": INT32_SCHEMA, "y": STRING_SCHEMA})
_FIELDS = {"a": INT32_SCHEMA, "b": STRING_SCHEMA, "f": FLOAT64_SCHEMA, "t": INT64_SCHEMA, "s": _INNER}
_STRUCT = Schema.struct(_FIELDS, name="Order")
_OPTIONAL = {name: schema.replace(optional=True) for name, schema in _FIELDS.items()}
_GAPS = Schema.struct(_OPTIONAL, name="Order", optional=True)
_REQUIRED = {**_OPTIONAL, "a": INT32_SCHEMA.replace(default=7)}
_DEFAULTS = Schema.struct(_REQUIRED, name="Order")


def _map(at: int) -> dict[str, Any]:
    return {"a": at, "b": str(at), "f": at + 0.5, "t": _NOON + at, "s": {"x": at, "y": "y"}}


def _struct(schema: Schema, at: int) -> Struct:
    inner = schema.field("s")
    assert inner is not None
    return Struct(schema, {**_map(at), "s": Struct(inner.schema, {"x": at, "y": "y"})})


def _with_gaps(at: int) -> Struct | None:
    if at % 4 == 0:
        return None
    return Struct(_GAPS, {}) if at % 4 == 1 else _struct(_GAPS, at)


DATA: dict[str, tuple[Schema | None, list[Any]]] = {
    "struct": (_STRUCT, [_struct(_STRUCT, at) for at in range(_COUNT)]),
    "gaps": (_GAPS, [_with_gaps(at) for at in range(_COUNT)]),
    "defaults": (_DEFAULTS, [Struct(_DEFAULTS, {}) for _ in range(_COUNT)]),
    "map": (None, [_map(at) for at in range(_COUNT)]),
    "string": (STRING_SCHEMA, [str(at) for at in range(_COUNT)]),
    "long": (INT64_SCHEMA, [_NOON + at for at in range(_COUNT)]),
    "timestamp": (timestamp_schema(), [timestamp_of(_NOON + at) for at in range(_COUNT)]),
    "null": (None, [None] * _COUNT),
}
TRANSFORMS: dict[str, tuple[str, dict[str, str]]] = {
    "insert": ("InsertField", {"topic.field": "_t", "partition.field": "_p", "offset.field": "_o", "timestamp.field": "_s"}),
    "insert static": ("InsertField", {"static.field": "_c", "static.value": "v"}),
    "mask": ("MaskField", {"fields": "a,b,f"}),
    "mask with": ("MaskField", {"fields": "b", "replacement": "x"}),
    "exclude": ("ReplaceField", {"exclude": "b"}),
    "rename": ("ReplaceField", {"renames": "a:z"}),
    "cast": ("Cast", {"spec": "a:string,b:int32,f:int64"}),
    "cast whole": ("Cast", {"spec": "string"}),
    "extract": ("ExtractField", {"field": "a"}),
    "extract path": ("ExtractField", {"field": "s.x", "field.syntax.version": "V2"}),
    "hoist": ("HoistField", {"field": "h"}),
    "flatten": ("Flatten", {}),
    "to key": ("ValueToKey", {"fields": "a,b"}),
    "to timestamp": ("TimestampConverter", {"field": "t", "target.type": "Timestamp"}),
    "to text": ("TimestampConverter", {"field": "t", "target.type": "string", "format": "yyyy-MM-dd"}),
    "whole to date": ("TimestampConverter", {"target.type": "Date"}),
    "by time": ("TimestampRouter", {}),
    "by regex": ("RegexRouter", {"regex": "(.*)", "replacement": "$1-x"}),
    "metadata": ("SetSchemaMetadata", {"schema.name": "N", "schema.version": "3"}),
    "drop headers": ("DropHeaders", {"headers": "h"}),
    "insert header": ("InsertHeader", {"header": "h", "value.literal": "1"}),
    "header from": ("HeaderFrom", {"fields": "a", "headers": "h", "operation": "copy"}),
}


def records(data: str, part: str) -> list[Any]:
    schema, values = DATA[data]
    made = []
    for at, value in enumerate(values):
        key, of_value = ((value, schema), (None, None)) if part == "key" else ((None, None), (value, schema))
        made.append(SinkRecord("orders", 0, 7 + at, *of_value, *key, timestamp=_NOON + at, timestamp_type=1))
    return made


def outcome(config: dict[str, str], made: list[Any]) -> RowFormReason | None:
    """Return None if a chain handles records as columns, with the same results as in row form, or why it does not."""
    case = Case(made, batch_of(made))
    try:
        ColumnChain(transformation_stages(config))(case.batch)
    except NotColumnar as error:
        return error.reason
    how, difference = differences(config, case)
    assert (how, difference) == ("columns", None)
    return None


_WHOLE = ("string", "long", "timestamp")
_ONLY_STRUCTS = dict.fromkeys(_WHOLE, RowFormReason.TRANSFORM)
_MIXED = {"gaps": RowFormReason.VALUE}  # records without a value keep another schema than the others
_OF_NULL = {"null": RowFormReason.ERROR}
_NO_FORM = dict.fromkeys(DATA, RowFormReason.TRANSFORM)
_NOT_LONG = ("struct", "gaps", "defaults", "map", "string")
REFUSED: dict[str, dict[str, RowFormReason]] = {
    "insert": _ONLY_STRUCTS | _MIXED,
    "insert static": _ONLY_STRUCTS | _MIXED,
    "mask": _ONLY_STRUCTS | _MIXED | _OF_NULL,
    "mask with": _ONLY_STRUCTS | _MIXED | _OF_NULL,
    "exclude": _ONLY_STRUCTS | _MIXED,
    "rename": _ONLY_STRUCTS | _MIXED,
    "cast": _MIXED | dict.fromkeys(_WHOLE, RowFormReason.ERROR),
    "cast whole": {
        **_MIXED,
        **dict.fromkeys(("struct", "defaults", "map"), RowFormReason.ERROR),
        "timestamp": RowFormReason.TRANSFORM,  # keeps the name of the logical type
    },
    "extract": _ONLY_STRUCTS,
    "extract path": _ONLY_STRUCTS | _MIXED | {"defaults": RowFormReason.VALUE},
    "hoist": {},
    "flatten": _ONLY_STRUCTS | _MIXED,
    "to key": _ONLY_STRUCTS | _MIXED | _OF_NULL,
    "to timestamp": _ONLY_STRUCTS,
    "to text": _ONLY_STRUCTS,
    "whole to date": dict.fromkeys(_NOT_LONG, RowFormReason.ERROR),
    "by time": {},
    "by regex": {},
    "metadata": dict.fromkeys(("map", *_WHOLE), RowFormReason.ERROR),
    "drop headers": {},
    "insert header": _NO_FORM,
    "header from": _NO_FORM,
}
"""Why transforms do not handle data as columns; what is not here is handled as columns."""

_JAVA = "org.apache.kafka.connect.transforms.predicates."
PREDICATES: dict[str, dict[str, str]] = {
    "RecordIsTombstone": {"type": f"{_JAVA}RecordIsTombstone"},
    "HasHeaderKey": {"type": f"{_JAVA}HasHeaderKey", "name": "h"},
    "TopicNameMatches": {"type": f"{_JAVA}TopicNameMatches", "pattern": "o.*"},
    "TimestampBetween": {
        "type": "sluiceway.transforms.predicates.timestamp_between.TimestampBetween",
        "from.ms": str(_NOON + 2),
        "to.ms": str(_NOON + 5),
    },
}


def _parts(transform: str) -> tuple[str, ...]:
    name, _ = TRANSFORMS[transform]
    whole = ("ValueToKey", "TimestampRouter", "RegexRouter", "DropHeaders", "InsertHeader")
    return ("",) if name in whole else ("$Value", "$Key")


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_each_transform_handles_these_batches_as_columns_and_no_others(transform: str) -> None:
    name, options = TRANSFORMS[transform]
    for part in _parts(transform):
        config = chain_config({"type": f"{name}{part}", **options})
        found = {data: outcome(config, records(data, "key" if part == "$Key" else "value")) for data in DATA}
        assert found == {data: REFUSED[transform].get(data) for data in DATA}, part


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("transform", [{"type": "Filter"}, {"type": "SetSchemaMetadata$Value", "schema.name": "N"}])
def test_each_predicate_handles_all_batches_as_columns(predicate: str, transform: dict[str, str]) -> None:
    for negate in ("true", "false"):
        config = chain_config({**transform, "predicate": "p", "negate": negate}, p=PREDICATES[predicate])
        for data in ("struct", "gaps", "null"):
            assert outcome(config, records(data, "value")) is None, data


def test_a_batch_for_several_topics_is_left_to_the_row_form() -> None:
    made = [record.new_record(timestamp=_NOON + at * _DAY) for at, record in enumerate(records("struct", "value"))]
    assert outcome(chain_config({"type": "TimestampRouter"}), made) is RowFormReason.PARTS


def test_the_table_has_every_transform_and_predicate_that_has_a_columnar_form() -> None:
    forms = {each.java_class: has_columnar_form(each, "column_transform", "apply") for each in classes(Transform)}
    columnar = {name.rpartition(".")[2].partition("$")[0] for name, form in forms.items() if name and form}
    handled = {TRANSFORMS[name][0] for name, refused in REFUSED.items() if refused != _NO_FORM}
    assert columnar == handled | {"Filter"}
    predicates = {each.__name__ for each in classes(Predicate) if has_columnar_form(each, "column_predicate", "test")}
    assert predicates - {"Predicate"} == set(PREDICATES)
