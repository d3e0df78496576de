"""Splits a chain into segments, and joins successive key and value transforms into one function for each schema.

A segment returns what its stages return one after the other. Unusual cases (a null between two transforms, an error) take a
slower path that applies one transform at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast

from sluiceway.api import Predicate, SinkRecord, SourceRecord
from sluiceway.api.transform import KeyOrValueTransform, Resolved
from sluiceway.data import Schema
from sluiceway.runtime.transforms.chain_config import TransformationStage

R = TypeVar("R", SourceRecord, SinkRecord)
Outcome = SourceRecord | SinkRecord | Sequence[Any] | None

_Function = Callable[[Any, Any], Any]
_MOST_SCHEMAS = 1000  # cached; a connector that keeps making new schemas must not exhaust the memory


class _NullBetweenTransforms(Exception):  # noqa: N818 (a signal, caught in this module)
    """A value became null between two transforms. ``step_by_step`` then applies each transform's rule for nulls."""


class SingleSegment(Generic[R]):
    """A transform that cannot be joined with others."""

    def __init__(self, stage: TransformationStage, first: int) -> None:
        self.first, self.end = first, first + 1
        self._apply = stage.transform.apply
        self._condition = stage.predicate
        self._negate = stage.negate

    def __call__(self, record: R) -> R | Sequence[R] | None:
        if self._condition is not None and self._condition.test(record) == self._negate:
            return record
        return self._apply(record)


class JoinedSegment(Generic[R]):
    """Successive key and value transforms with one predicate (usually none), as one function for each pair of schemas.

    ``in_place`` changes records instead of copying them. Use it only for records without another owner.
    """

    def __init__(self, stages: Sequence[TransformationStage], first: int, *, in_place: bool) -> None:
        self.first, self.end = first, first + len(stages)
        self.condition: Predicate | None = stages[0].predicate
        self._negate = stages[0].negate
        self._transforms = [cast(KeyOrValueTransform, stage.transform) for stage in stages]
        self._resolved: list[dict[Schema | None, Resolved]] = [{} for _ in stages]
        self._plans: dict[tuple[Schema | None, Schema | None], Callable[[R], R]] = {}
        self._in_place = in_place
        self._key_schema: object = self  # of the previous record; self is never a schema
        self._value_schema: object = self
        self._plan: Callable[[R], R] = self.step_by_step

    def __call__(self, record: R) -> R:
        if self.condition is not None and self.condition.test(record) == self._negate:
            return record
        if record.value_schema is not self._value_schema or record.key_schema is not self._key_schema:
            self.plan_for(record.key_schema, record.value_schema)
        return self._plan(record)

    def plan_for(self, key_schema: Schema | None, value_schema: Schema | None) -> Callable[[R], R]:
        """Return the function for records of these schemas. It raises what a transform raises."""
        plan = self._plans.get((key_schema, value_schema))
        if plan is None:
            if len(self._plans) >= _MOST_SCHEMAS:
                self._plans.clear()
            plan = self._plans[key_schema, value_schema] = self._new_plan(key_schema, value_schema)
        self._key_schema, self._value_schema, self._plan = key_schema, value_schema, plan
        return plan

    def step_by_step(self, record: R) -> R:
        """Apply one transform after the other. Handles all values, nulls included."""
        key_schema, key, value_schema, value = record.key_schema, record.key, record.value_schema, record.value
        for index, transform in enumerate(self._transforms):
            if transform.part == "key":
                key_schema, key = self._step(index, transform, key_schema, key, record)
            else:
                value_schema, value = self._step(index, transform, value_schema, value, record)
        return self._result(record)(key_schema, key, value_schema, value)

    def _result(self, record: R) -> Callable[[Any, Any, Any, Any], R]:
        return record.replace_data if self._in_place else record.with_data

    def _step(
        self, index: int, transform: KeyOrValueTransform, schema: Schema | None, value: Any, record: R
    ) -> tuple[Schema | None, Any]:
        if value is None:
            return transform.on_null(schema)
        resolved = self._resolve(index, transform, schema)
        return resolved.schema, resolved.function(value, record)

    def _resolve(self, index: int, transform: KeyOrValueTransform, schema: Schema | None) -> Resolved:
        known = self._resolved[index]
        resolved = known.get(schema)
        if resolved is None:
            if len(known) >= _MOST_SCHEMAS:
                known.clear()
            resolved = known[schema] = transform.resolve(schema)
        return resolved

    def _new_plan(self, key_schema: Schema | None, value_schema: Schema | None) -> Callable[[R], R]:
        try:
            new_key_schema, key_function = self._joined("key", key_schema)
            new_value_schema, value_function = self._joined("value", value_schema)
        except Exception:  # noqa: BLE001 (values of this schema fail one by one, but nulls may pass)
            return self.step_by_step
        if key_function is None and value_function is not None:
            return self._value_plan(value_function, new_value_schema)
        return self._plan_of_both(key_function, new_key_schema, value_function, new_value_schema)

    def _joined(self, part: str, schema: Schema | None) -> tuple[Schema | None, _Function | None]:
        """Return the schema after all transforms of the key or value, and one function for all (None without transforms)."""
        steps: list[Resolved] = []
        for index, transform in enumerate(self._transforms):
            if transform.part == part:
                steps.append(self._resolve(index, transform, steps[-1].schema if steps else schema))
        return (steps[-1].schema, _join(steps)) if steps else (schema, None)

    def _value_plan(self, function: _Function, schema: Schema | None) -> Callable[[R], R]:
        """Return a function that only transforms the value, which is the common case."""
        step_by_step = self.step_by_step

        def in_place(record: R) -> R:
            value = record.value
            if value is None:
                return step_by_step(record)
            try:
                record.value = function(value, record)
            except _NullBetweenTransforms:
                return step_by_step(record)
            record.value_schema = schema
            return record

        def copied(record: R) -> R:
            value = record.value
            if value is None:
                return step_by_step(record)
            try:
                return record.with_data(record.key_schema, record.key, schema, function(value, record))
            except _NullBetweenTransforms:
                return step_by_step(record)

        return in_place if self._in_place else copied

    def _plan_of_both(
        self,
        key_function: _Function | None,
        key_schema: Schema | None,
        value_function: _Function | None,
        value_schema: Schema | None,
    ) -> Callable[[R], R]:
        step_by_step = self.step_by_step

        def both(record: R) -> R:
            key, value = record.key, record.value
            if (key is None and key_function is not None) or (value is None and value_function is not None):
                return step_by_step(record)
            try:
                if key_function is not None:
                    key = key_function(key, record)
                if value_function is not None:
                    value = value_function(value, record)
            except _NullBetweenTransforms:
                return step_by_step(record)
            return self._result(record)(key_schema, key, value_schema, value)

        return both


def _join(steps: Sequence[Resolved]) -> _Function:
    """Return one function for successive steps. It raises _NullBetweenTransforms if a value is null before the last."""
    function = steps[0].function
    for before, step in itertools.pairwise(steps):
        function = _pair(function, step.function, check=before.may_be_null)
    return function


def _pair(first: _Function, second: _Function, *, check: bool) -> _Function:
    def unchecked(value: Any, record: Any) -> Any:
        return second(first(value, record), record)

    def checked(value: Any, record: Any) -> Any:
        value = first(value, record)
        if value is None:
            raise _NullBetweenTransforms
        return second(value, record)

    return checked if check else unchecked


def segments(
    stages: Sequence[TransformationStage], first: int = 0, *, in_place: bool
) -> Iterator[SingleSegment[Any] | JoinedSegment[Any]]:
    """Yield the segments of stages in order. Successive key and value transforms without a predicate are joined.

    ``first`` is the index of the first stage in the chain.
    """
    run: list[TransformationStage] = []
    for index, stage in enumerate(stages, first):
        if _joinable(stage) and stage.predicate is None:
            run.append(stage)
            continue
        if run:
            yield JoinedSegment(run, index - len(run), in_place=in_place)
            run = []
        yield JoinedSegment([stage], index, in_place=in_place) if _joinable(stage) else SingleSegment(stage, index)
    if run:
        yield JoinedSegment(run, first + len(stages) - len(run), in_place=in_place)


def _joinable(stage: TransformationStage) -> bool:
    """Return True for a transform defined by ``resolve`` and ``on_null`` alone; a subclass may override ``apply``."""
    kind = type(stage.transform)
    return (
        issubclass(kind, KeyOrValueTransform)
        and kind.apply is KeyOrValueTransform.apply
        and kind._operate is KeyOrValueTransform._operate
    )
