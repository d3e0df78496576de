"""Applies a connector's transforms to batches of columns. Loads Arrow, so import it only when there is such a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api import Predicate, Transform
from sluiceway.api.columns import ColumnBatch, ColumnPredicate, ColumnTransform, NotColumnar, Refusal, RowFormReason
from sluiceway.columns.batches import empty_batch, filtered, sliced
from sluiceway.data import Schema
from sluiceway.runtime.transforms.chain_config import TransformationStage
from sluiceway.transforms.filter_ import Filter

ColumnPlan = Callable[[ColumnBatch], list[ColumnBatch]]
"""Transforms a batch. Raises NotColumnar if the row form must handle it."""

_Schemas = tuple[Schema | None, Schema | None]

_MOST_BATCHES = 16  # that a predicate may split a batch into; smaller batches are not faster than records
_MOST_SCHEMAS = 1000  # cached; a connector that keeps making new schemas must not exhaust the memory


class ColumnChain:
    """The columnar form of a chain: its result is that of ``TransformationChain``. Not thread-safe.

    Uses the same configured transforms. A transform's or predicate's columnar form is asked for once for each pair of schemas.
    """

    def __init__(self, stages: Sequence[TransformationStage]) -> None:
        self._stages = [_ColumnStage(stage) for stage in stages]
        self._refusals: dict[_Schemas, Refusal | None] = {}

    def plan(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnPlan:
        """Return the columnar form for records of these schemas. Raises NotColumnar if a transform or predicate has none."""
        schemas = key_schema, value_schema
        if schemas not in self._refusals:
            if len(self._refusals) >= _MOST_SCHEMAS:
                self._refusals.clear()
            self._refusals[schemas] = self._refusal(schemas)
        refusal = self._refusals[schemas]
        if refusal is not None:
            raise NotColumnar(refusal.text, refusal.reason, field=refusal.field)
        return self.__call__

    def __call__(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Return the transformed batches in the order of the records; none if all records were dropped.

        Raises NotColumnar if the row form must handle the batch, also after an error of the row form (``api.row_form``). Any
        other exception is an error of a transform's program.
        """
        batches = [batch]
        for stage in self._stages:
            batches = [after for before in batches for after in stage(before) if after.count]
            if len(batches) > _MOST_BATCHES:
                raise NotColumnar(f"a batch in more than {_MOST_BATCHES} parts", RowFormReason.PARTS)
        return batches

    def _refusal(self, schemas: _Schemas) -> Refusal | None:
        """Return why a stage has no columnar form for the schemas with which records reach it, None if all have one."""
        reached = {schemas}
        try:
            for stage in self._stages:
                reached = {after for before in reached for after in stage.schemas_after(before)}
        except NotColumnar as error:
            return error.refusal
        return None


class _Forms(NamedTuple):
    """The columnar forms of a stage; its predicate's is None if the stage has no predicate."""

    transform: ColumnTransform
    predicate: ColumnPredicate | None


class _ColumnStage:
    """A transform with its predicate."""

    def __init__(self, stage: TransformationStage) -> None:
        self._transform, self._predicate, self._negate = stage.transform, stage.predicate, stage.negate
        self._drops = type(stage.transform) is Filter
        self._forms: dict[_Schemas, _Forms | None] = {}
        plugins = (stage.transform,) if stage.predicate is None else (stage.transform, stage.predicate)
        self._name = " or ".join(type(plugin).__name__ for plugin in plugins)

    def __call__(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Return the batches that the stage makes of a batch, in order. Raises NotColumnar."""
        transform, predicate = self._forms_for((batch.key.schema, batch.value.schema))
        if predicate is None:
            return [transform(batch)]
        mask = predicate(batch)
        applies = pc.invert(mask) if self._negate else mask
        if not applies.true_count:
            return [batch]
        if applies.true_count == batch.count:
            return [transform(batch)]
        if self._drops:
            return [filtered(batch, pc.invert(applies))]
        return [transform(part) if applied else part for part, applied in _runs(batch, applies)]

    def schemas_after(self, schemas: _Schemas) -> set[_Schemas]:
        """Return the schemas of the records that the stage makes of records of these schemas. Raises NotColumnar."""
        transform, predicate = self._forms_for(schemas)
        after = transform(empty_batch(*schemas))
        changed = after.key.schema, after.value.schema
        return {changed} if predicate is None else {changed, schemas}

    def _forms_for(self, schemas: _Schemas) -> _Forms:
        if schemas not in self._forms:
            if len(self._forms) >= _MOST_SCHEMAS:
                self._forms.clear()
            self._forms[schemas] = self._new_forms(*schemas)
        forms = self._forms[schemas]
        if forms is None:
            raise NotColumnar(f"{self._name} has no columnar form for {schemas[0]} and {schemas[1]}", RowFormReason.TRANSFORM)
        return forms

    def _new_forms(self, key_schema: Schema | None, value_schema: Schema | None) -> _Forms | None:
        if not _has_own_columnar_form(self._transform) or (
            self._predicate is not None and not _has_own_columnar_form(self._predicate)
        ):
            return None
        transform = self._transform.column_transform(key_schema, value_schema)
        if transform is None or self._predicate is None:
            return None if transform is None else _Forms(transform, None)
        predicate = self._predicate.column_predicate(key_schema, value_schema)
        return None if predicate is None else _Forms(transform, predicate)


_ROW_FORM = {"apply", "resolve", "on_null", "test"}
_COLUMNAR_FORM = {"column_transform", "column_function", "column_predicate"}


def _has_own_columnar_form(plugin: Transform | Predicate) -> bool:
    """Return False for a subclass that changes the row form but inherits the columnar form."""
    for kind in type(plugin).__mro__:
        if _COLUMNAR_FORM & vars(kind).keys():
            return True
        if _ROW_FORM & vars(kind).keys():
            return False
    return False


def _runs(batch: ColumnBatch, applies: pa.BooleanArray) -> list[tuple[ColumnBatch, bool]]:
    """Return the runs of records to which a stage applies or does not. Raises NotColumnar if they are many."""
    changes = pc.indices_nonzero(pc.not_equal(applies[1:], applies[:-1]))
    if len(changes) >= _MOST_BATCHES:
        raise NotColumnar(f"a predicate splits a batch into {len(changes) + 1} parts", RowFormReason.PARTS)
    starts: list[int] = [0, *pc.add(changes, 1).to_pylist(), batch.count]  # type: ignore[list-item]  # has no nulls
    return [(sliced(batch, start, end), bool(applies[start].as_py())) for start, end in pairwise(starts)]
