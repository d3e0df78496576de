"""The columnar form of each transform on values that tell it from a wrong one: nulls, defaults, edges, other parts of records.

The row form says what is right. Random cases (test_equality.py) find such values only sometimes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from sluiceway.api import Column, SinkRecord
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.data import Schema, Struct, Type, date_schema, timestamp_schema
from sluiceway.data.instant import date_of, timestamp_of
from support.columnar import Case, batch_of, differences
from unit.runtime.chains import chain_config

_INT, _TEXT, _OPTIONAL = Schema(Type.INT32), Schema(Type.STRING), Schema(Type.INT32, optional=True)
_DEFAULT = Schema(Type.INT32, optional=True, default=5)
_PAIR = Schema.struct([("a", _INT), ("b", _INT)])
_WITH_DEFAULT = Schema.struct([("a", _INT), ("d", _DEFAULT)], optional=True)
_OTHERS = Schema.struct([("a", _INT), ("b", _TEXT)])
_INNER = Schema.struct([("x", _INT), ("v", _INT)])
_MIDDLE = Schema.struct([("y", _INT), ("n", _INNER)])
_DEEP = Schema.struct([("z", _INNER), ("m", _MIDDLE)])
_MAYBE = Schema.struct([("d", _DEFAULT)], optional=True)
_OUTER = Schema.struct([("a", _INT), ("s", _MAYBE)])
_STRUCT_DEFAULT = Schema.struct(
    [("v", _OPTIONAL)], optional=True, default=Struct(Schema.struct([("v", _OPTIONAL)], optional=True), {"v": 9})
)
_FILLED = Schema(Type.INT32, default=5)
_MAP = Schema.map(_TEXT, _FILLED)
_TWINS = Schema.struct([("a", _DEFAULT), ("b", _INT)])
_LONG = Schema(Type.INT64)
_MINUTE = 60_000
_DAY = 86_400_000
_MOMENTS, _DAYS = [timestamp_of(1_234), timestamp_of(-1)], [date_of(0), date_of(_DAY), date_of(-_DAY)]


def _pair(schema: Schema, *values: Any) -> Struct:
    return Struct.of(schema, list(values))


def _deep(number: int) -> Struct:
    inner = [_pair(_INNER, 10 * number + at, 20 * number + at) for at in (1, 2)]
    return _pair(_DEEP, inner[0], _pair(_MIDDLE, number, inner[1]))


class _Example(NamedTuple):
    """Stages, the records they get, and how these are handled: as ``columns``, as ``rows``, or with an ``error``."""

    stages: Sequence[Mapping[str, str]]
    schema: Schema | None
    values: Sequence[Any]
    how: str = "columns"
    timestamps: Sequence[int | None] = ()
    predicates: Mapping[str, Mapping[str, str]] = {}


def _of(type_: str, schema: Schema | None, values: Sequence[Any], how: str = "columns", **options: Any) -> _Example:
    timestamps, predicates = options.pop("timestamps", ()), options.pop("predicates", {})
    stage = {"type": type_, **{name.replace("_", "."): text for name, text in options.items()}}
    return _Example([stage], schema, values, how, timestamps, predicates)


_ONCE = {
    "once": {"type": "sluiceway.transforms.predicates.timestamp_between.TimestampBetween", "from.ms": "1000", "to.ms": "3000"}
}
_NAMED = {"named": {"type": "TopicNameMatches", "pattern": "order"}}
_GONE = {"gone": {"type": "RecordIsTombstone"}}
_TWO_DEFAULTS = [_pair(_WITH_DEFAULT, 1, None), _pair(_WITH_DEFAULT, 2, 3)]
_PAIRS = [_pair(_PAIR, 1, 20), _pair(_PAIR, 2, 30), _pair(_PAIR, 3, 40)]

_EXAMPLES = {
    "ExtractField-default": _of("ExtractField$Value", _WITH_DEFAULT, _TWO_DEFAULTS, field="d"),
    "ExtractField-null": _of("ExtractField$Value", _WITH_DEFAULT, _TWO_DEFAULTS, field="d", replace_null_with_default="false"),
    "ExtractField-deep": _of("ExtractField$Value", _DEEP, [_deep(1), _deep(2)], field="m.n.v", field_syntax_version="V2"),
    "ExtractField-default-of-outer": _of(
        "ExtractField$Value",
        outer := Schema.struct([("s", _STRUCT_DEFAULT)]),
        [_pair(outer, None)],
        "rows",
        field="s.v",
        field_syntax_version="V2",
    ),
    "Flatten-null-struct": _of("Flatten$Value", _OUTER, [_pair(_OUTER, 1, None), _pair(_OUTER, 2, _pair(_MAYBE, None))]),
    "Flatten-deep": _of("Flatten$Value", _DEEP, [_deep(1), _deep(2)]),
    "HoistField-required": _of("HoistField$Value", _FILLED, [1, None], "error", field="f"),
    "HoistField-map": _of("HoistField$Value", _MAP, [{"a": 1}, {"b": None}], "error", field="f"),
    "HoistField-optional": _of("HoistField$Value", _OPTIONAL, [1, None], field="f"),
    "InsertField-all": _of(
        "InsertField$Value",
        _PAIR,
        _PAIRS,
        timestamps=(1000, 2000, 3000),
        topic_field="t",
        partition_field="p",
        offset_field="o",
        timestamp_field="at",
        static_field="s",
        static_value="Fixed",
    ),
    "InsertField-required": _of("InsertField$Value", _PAIR, _PAIRS, "rows", timestamps=(1000, None, 3000), timestamp_field="at!"),
    "InsertField-schemaless": _of(
        "InsertField$Value", None, [{"a": 1}, {"a": 2}], timestamps=(1000, None), offset_field="o", timestamp_field="at"
    ),
    "MaskField-null": _of("MaskField$Value", _WITH_DEFAULT, _TWO_DEFAULTS, fields="d", replace_null_with_default="false"),
    "MaskField-text": _of(
        "MaskField$Value", _OTHERS, [_pair(_OTHERS, 1, "x"), _pair(_OTHERS, 2, "y")], fields="b", replacement="*"
    ),
    "ReplaceField-include": _of("ReplaceField$Value", _PAIR, _PAIRS, include="b"),
    "ReplaceField-crossing": _of("ReplaceField$Value", _TWINS, [_pair(_TWINS, 1, 2)], "rows", exclude="a", renames="a:b"),
    "ReplaceField-null-struct": _of("ReplaceField$Value", _WITH_DEFAULT, [*_TWO_DEFAULTS, None], "rows", exclude="a"),
    "ReplaceField-null": _of("ReplaceField$Value", _WITH_DEFAULT, _TWO_DEFAULTS, exclude="a", replace_null_with_default="false"),
    "SetSchemaMetadata-default": _of("SetSchemaMetadata$Value", _WITH_DEFAULT, _TWO_DEFAULTS, schema_name="n"),
    "SetSchemaMetadata-null-struct": _of("SetSchemaMetadata$Value", _WITH_DEFAULT, [*_TWO_DEFAULTS, None], schema_version="2"),
    "TimestampConverter-micros": _of(
        "TimestampConverter$Value",
        timestamp_schema(),
        [timestamp_of(1_234), timestamp_of(-1)],
        target_type="unix",
        unix_precision="microseconds",
    ),
    "TimestampConverter-from-nanos": _of(
        "TimestampConverter$Value", _LONG, [1_999_999, -1_999_999], target_type="Timestamp", unix_precision="nanoseconds"
    ),
    "TimestampConverter-date": _of("TimestampConverter$Value", _LONG, [-1, -_DAY, _DAY - 1, _DAY], target_type="Date"),
    "TimestampConverter-time": _of("TimestampConverter$Value", _LONG, [-1, 1_234, _DAY + 5], target_type="Time"),
    "TimestampConverter-seconds": _of(
        "TimestampConverter$Value", _LONG, [1, 2**62], "rows", target_type="unix", unix_precision="seconds"
    ),
    "TimestampConverter-to-seconds": _of(
        "TimestampConverter$Value",
        date_schema(),
        [date_of(0), date_of(_DAY), date_of(-_DAY)],
        target_type="unix",
        unix_precision="seconds",
    ),
    "TimestampRouter-minute": _of(
        "TimestampRouter", _INT, [1, 2], "rows", timestamps=(0, _MINUTE), timestamp_format="yyyyMMddHHmm"
    ),
    "TimestampRouter-days": _of("TimestampRouter", _INT, [1, 2], "rows", timestamps=(_DAY - 1, _DAY)),
    "TimestampRouter-day": _of("TimestampRouter", _INT, [1, 2], timestamps=(_DAY, 2 * _DAY - 1)),
    "ValueToKey": _of("ValueToKey", _PAIR, _PAIRS, fields="b"),
    "ValueToKey-null": _of("ValueToKey", _WITH_DEFAULT, [*_TWO_DEFAULTS, None], "error", fields="a"),
    "ValueToKey-schemaless": _of("ValueToKey", None, [{"a": 1, "b": 2}, {"a": 3}], fields="a"),
    "RegexRouter": _of("RegexRouter", _INT, [1], regex="(.*)ers", replacement="$1-x"),
    "Filter": _of("Filter", _INT, [1, 2]),
    "DropHeaders": _of("DropHeaders", _INT, [1, 2], headers="h", timestamps=(1000, None)),
    "TimestampBetween": _of("Filter", _INT, [1, 2, 3, 4], timestamps=(999, 1000, 2999, 3000), predicate="once", predicates=_ONCE),
    "TimestampBetween-negated": _of(
        "Filter", _INT, [1, 2, 3, 4], timestamps=(999, 1000, None, 3000), predicate="once", negate="true", predicates=_ONCE
    ),
    "TopicNameMatches": _of("Filter", _INT, [1, 2], predicate="named", predicates=_NAMED),
    "RecordIsTombstone": _of("Filter", None, [None, None], predicate="gone", predicates=_GONE),
    "RecordIsTombstone-some": _of("Filter", _OPTIONAL, [1, None, 3], predicate="gone", predicates=_GONE),
    "predicate-splits": _of(
        "InsertField$Value",
        _PAIR,
        _PAIRS,
        timestamps=(999, 1000, 3000),
        static_field="s",
        static_value="in",
        predicate="once",
        predicates=_ONCE,
    ),
    "key": _of("Cast$Key", _PAIR, _PAIRS, spec="a:int64"),
}


@pytest.mark.parametrize("name", _EXAMPLES)
def test_columns_have_the_values_of_rows(name: str) -> None:
    example = _EXAMPLES[name]
    key_schema = _PAIR if name == "key" else None
    records: list[Any] = []
    for at, value in enumerate(example.values):
        timestamp = example.timestamps[at] if example.timestamps else None
        key = _pair(_PAIR, 100 + at, 200 + at) if key_schema else None
        records.append(SinkRecord("orders", 3, 7 + at, value, example.schema, key, key_schema, timestamp, 1))
    config = chain_config(*example.stages, **example.predicates)
    assert differences(config, Case(records, batch_of(records))) == (example.how, None)


def test_flatten_leaves_null_in_a_required_field_to_the_row_form() -> None:
    """A source's own arrays may have it; ``to_array`` makes none."""
    records: list[Any] = [SinkRecord("orders", 3, 7, _pair(_PAIR, 1, None), _PAIR)]
    whole = batch_of([SinkRecord("orders", 3, 7, _pair(_PAIR, 1, 2), _PAIR)])
    batch = replace(whole, value=Column(_PAIR, pa.array([{"a": 1, "b": None}], arrow_type(_PAIR))))
    assert differences(chain_config({"type": "Flatten$Value"}), Case(records, batch)) == ("error", None)
