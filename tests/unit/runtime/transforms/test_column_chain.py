"""Chains of transforms with predicates return the same records from columns as from rows."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.api import SinkRecord
from sluiceway.api.columns import ColumnBatch, ColumnTransform, NotColumnar, RowFormReason
from sluiceway.api.transform import R, Transform
from sluiceway.data import STRING_SCHEMA, Schema, Struct
from sluiceway.runtime.transforms.chain_config import transformation_stages
from sluiceway.runtime.transforms.column_chain import ColumnChain
from sluiceway.transforms.mask_field import MaskFieldValue
from support.column_cases import TRANSFORMS
from support.columnar import batch_of, compare, shapes_of_columns
from unit.runtime.chains import chain_config

_EXAMPLES = int(os.environ.get("EXAMPLES", "200"))
_COLUMNAR = [name for name in (*TRANSFORMS, "Filter") if name not in ("InsertHeader", "HeaderFrom")]
_SCHEMA = Schema.struct([("a", STRING_SCHEMA)])
_BETWEEN = {"type": "sluiceway.transforms.predicates.timestamp_between.TimestampBetween"}


@pytest.mark.timeout(0)  # 10,000 cases take minutes on a busy machine
def test_chains_transform_columns_like_records() -> None:
    handled = compare(_COLUMNAR, range(_EXAMPLES), lengths=(2, 3, 4), predicates=0.3)
    print(dict(handled))
    assert handled["columns"] > _EXAMPLES // 5


def records(timestamps: list[int]) -> list[SinkRecord]:
    return [
        SinkRecord("orders", 0, at, Struct(_SCHEMA, {"a": str(at)}), _SCHEMA, timestamp=timestamp)
        for at, timestamp in enumerate(timestamps)
    ]


def column_chain(*stages: dict[str, str], **predicates: dict[str, str]) -> ColumnChain:
    return ColumnChain(transformation_stages(chain_config(*stages, **predicates)))


def refusal(*stages: dict[str, str]) -> RowFormReason | None:
    """Return why a chain has no plan for records of the schema."""
    try:
        column_chain(*stages).plan(None, _SCHEMA)
    except NotColumnar as error:
        return error.reason
    return None


def offsets(batches: list[ColumnBatch]) -> list[list[Any]]:
    return [[] if batch.offsets is None else batch.offsets.to_pylist() for batch in batches]


MASK = {"type": "MaskField$Value", "fields": "a"}
CONDITION = {"predicate": "p"}


def test_a_predicate_splits_a_batch_and_keeps_the_order() -> None:
    chain = column_chain(MASK | CONDITION, p=_BETWEEN | {"from.ms": "10", "to.ms": "20"})
    done = chain(batch_of(records([1, 12, 13, 2, 3, 14])))
    assert offsets(done) == [[0], [1, 2], [3, 4], [5]]
    assert [shape[7][2][0][1] for shape in shapes_of_columns(done)] == ["'0'", "''", "''", "'3'", "'4'", "''"]


def test_a_batch_in_many_parts_is_left_to_the_row_form() -> None:
    chain = column_chain(MASK | CONDITION, p=_BETWEEN | {"from.ms": "10", "to.ms": "20"})
    assert len(chain(batch_of(records([1, 11] * 8)))) == 16
    with pytest.raises(NotColumnar, match="17 parts"):
        chain(batch_of(records([1, 11] * 8 + [1])))


def test_filter_keeps_the_other_records_in_one_batch() -> None:
    condition = _BETWEEN | {"from.ms": "10", "to.ms": "20"}
    many = records([1, 11] * 20)
    assert offsets(column_chain({"type": "Filter"} | CONDITION, p=condition)(batch_of(many))) == [list(range(0, 40, 2))]
    kept = column_chain({"type": "Filter", "negate": "true"} | CONDITION, p=condition)
    assert offsets(kept(batch_of(many))) == [list(range(1, 40, 2))]


def test_filter_may_drop_all_records() -> None:
    chain = column_chain({"type": "Filter"} | CONDITION, MASK, p={"type": "TopicNameMatches", "pattern": "orders"})
    assert chain(batch_of(records([1, 2]))) == []


def test_there_is_no_plan_if_a_later_transform_has_no_columnar_form_for_what_reaches_it() -> None:
    extract = {"type": "ExtractField$Value", "field": "a"}
    insert = {"type": "InsertHeader", "header": "h", "value.literal": "1"}
    assert refusal(extract, {"type": "Cast$Value", "spec": "int32"}) is None
    assert refusal(extract, MASK) is RowFormReason.TRANSFORM  # a string has no fields
    assert refusal(MASK, insert) is RowFormReason.TRANSFORM
    assert refusal({"type": "unit.runtime.chains.Repeat"}) is RowFormReason.TRANSFORM


def test_columnar_forms_are_made_once_for_each_pair_of_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Schema | None] = []
    original = MaskFieldValue.column_transform

    def counted(self: MaskFieldValue, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        asked.append(value_schema)
        return original(self, key_schema, value_schema)

    monkeypatch.setattr(MaskFieldValue, "column_transform", counted)
    chain = column_chain(MASK)
    for _ in range(3):
        chain.plan(None, _SCHEMA)(batch_of(records([1])))
    assert asked == [_SCHEMA]


class OtherMask(MaskFieldValue):
    """Changes the row form only."""

    def apply(self, record: R) -> R:
        return record


class Columns(Transform):
    """Has both forms."""

    def apply(self, record: R) -> R:
        return record

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        return lambda batch: batch


def test_a_subclass_that_changes_only_the_row_form_has_no_columnar_form() -> None:
    other = {"type": f"{__name__}.OtherMask", "fields": "a"}
    assert refusal(other) is RowFormReason.TRANSFORM
    with pytest.raises(NotColumnar, match="OtherMask"):
        column_chain(other)(batch_of(records([1])))


def test_custom_transforms_may_have_a_columnar_form() -> None:
    chain = column_chain({"type": f"{__name__}.Columns"}, MASK)
    assert offsets(chain(batch_of(records([1, 2])))) == [[0, 1]]


def test_transforms_and_chains_do_not_load_arrow_until_there_are_columns() -> None:
    code = """
import sys
from sluiceway.discovery import plugins
from sluiceway.runtime.transforms.transformation_chain import chain_of
for group in ("sluiceway.transforms", "sluiceway.predicates"):
    for plugin in plugins(group).values():
        plugin.config_def()
chain_of({"transforms": "m", "transforms.m.type": "MaskField$Value", "transforms.m.fields": "a"})
assert "pyarrow" not in sys.modules, "pyarrow is loaded"
"""
    subprocess.run(
        [sys.executable, "-c", code.replace('"MaskField', '"org.apache.kafka.connect.transforms.MaskField')], check=True
    )


class Broken(Columns):
    """Has a columnar form with an error in its program."""

    error: Exception = TypeError("wrong")

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        def fail(batch: ColumnBatch) -> ColumnBatch:
            if batch.count:
                raise self.error
            return batch

        return fail


@pytest.mark.parametrize("error", [TypeError("a"), KeyError("b"), AttributeError("c"), pa.ArrowInvalid("d")])
def test_an_error_of_a_columnar_form_is_an_error_and_no_reason_for_the_row_form(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Broken, "error", error)
    with pytest.raises(type(error)) as raised:
        column_chain({"type": f"{__name__}.Broken"}, MASK)(batch_of(records([1])))
    assert raised.value is error
