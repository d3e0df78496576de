"""The contract of a transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sluiceway.api import ConnectRecord, KeyOrValueTransform, SinkRecord, SourceRecord, Transform
from sluiceway.errors import ConnectError
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError, chain_of
from sluiceway.testing.checks import breach, fingerprint, only_these_errors, outcome
from sluiceway.testing.options import ClosedContract
from sluiceway.testing.running import as_list
from sluiceway.testing.samples import all_records

_KEPT = {
    SourceRecord: ("source_partition", "source_offset"),
    SinkRecord: ("original_topic", "original_kafka_partition", "original_kafka_offset"),
}


class TransformContract(ClosedContract):
    """Subclass as ``Test...``; set ``transform_class`` and ``options`` (without ``transforms.<alias>.``).

    Override ``records`` if the sample records do not exercise the transform. ``allowed_errors`` are the errors that ``apply``
    may raise for invalid records. Set ``stateful = True`` for a transform that keeps state between records.
    """

    transform_class: ClassVar[type[Transform]]
    allowed_errors: ClassVar[tuple[type[Exception], ...]] = (ConnectError,)
    stateful: ClassVar[bool] = False

    def records(self) -> Sequence[ConnectRecord]:
        """Return records to transform; new objects at each call."""
        return all_records()

    def subject(self) -> type[Transform]:
        return self.transform_class

    def test_apply_returns_records_or_raises_an_error_of_connects(self) -> None:
        transform = self.configured()
        for record in self.records():
            self._apply(transform, record)

    def test_keys_and_values_may_be_null(self) -> None:
        transform = self.configured()
        for record in self.records():
            self._apply(transform, record.new_record(value=None, value_schema=None))
            self._apply(transform, record.new_record(key=None, key_schema=None))
            self._apply(transform, record.new_record(key=None, key_schema=None, value=None, value_schema=None))

    def test_apply_leaves_the_record_as_it_was(self) -> None:
        transform = self.configured()
        for record in self.records():
            before = fingerprint(record)
            outcome(transform.apply, record)
            if fingerprint(record) != before:
                advice = "Copy the record with changes: record.new_record(value={**record.value, ...})"
                breach(self._where("apply"), f"changed the record that it was given, {record!r}", advice)

    def test_a_record_keeps_where_it_came_from(self) -> None:
        transform = self.configured()
        for record in self.records():
            for after in self._apply(transform, record):
                for name in _KEPT[type(record)]:
                    if getattr(after, name) != getattr(record, name):
                        advice = "Create the record with record.new_record(...): offsets are committed by these attributes"
                        breach(self._where("apply"), f"lost {name} of {record!r}: {getattr(after, name)!r}", advice)

    def test_the_same_record_gives_the_same_result(self) -> None:
        if self.stateful:
            return
        used = self.configured()
        for record in self.records():
            first, again = outcome(used.apply, record), outcome(used.apply, record)
            if first != again or first != outcome(self.configured().apply, record):
                advice = "Keep no state between records, or set stateful = True if that is intended"
                breach(self._where("apply"), f"returned another result for {record!r} at the second call", advice)

    def test_resolved_once_for_a_schema_it_does_the_same(self) -> None:
        """For a KeyOrValueTransform: the function that the chain caches for each schema must do the same as ``apply``."""
        transform = self.configured()
        if not isinstance(transform, KeyOrValueTransform):
            return
        key = transform.part == "key"
        kept: dict[Any, Any] = {}
        for record in self.records():
            schema, value = (record.key_schema, record.key) if key else (record.value_schema, record.value)
            if value is None:
                continue
            if schema not in kept:
                kept[schema] = _resolved(transform, schema)
            resolved = kept[schema]
            alone = outcome(self._part, self.configured(), record)
            together = outcome(lambda resolved=resolved, value=value, record=record: _use(resolved, value, record))
            if alone != together:
                advice = "Let resolve() depend only on the schema, and its function only on the value and record"
                breach(self._where("resolve"), f"does not do what apply() does to {record!r}: {together} is not {alone}", advice)
            if together[0] is tuple and together[1][1] == (type(None), None) and not resolved.may_be_null:
                advice = "Return Resolved(schema, function, may_be_null=True)"
                breach(self._where("resolve"), f"returned null for {record!r} without may_be_null=True", advice)

    def test_a_chain_does_what_it_does_alone(self) -> None:
        """The runtime's chain for batches must return the same records as ``apply`` for each record."""
        cls = self.transform_class
        chain: TransformationChain[Any] = chain_of(
            {
                "transforms": "it",
                "transforms.it.type": f"{cls.__module__}.{cls.__qualname__}",
                **{f"transforms.it.{name}": value for name, value in self.options.items()},
            }
        )
        records = self.records()
        for kind in (SourceRecord, SinkRecord):
            batch = [record for record in records if isinstance(record, kind)]
            together = chain(batch, lambda _record, _error: None).records
            alone = [after for record in batch for after in _apply_each(chain, record)]
            if fingerprint(list(together)) != fingerprint(alone) and not self.stateful:
                advice = "Let the result depend only on the record, and let resolve() agree with apply()"
                breach(self._where("apply"), f"returned another result in a chain: {together} is not {alone}", advice)
        chain.close()

    def _part(self, transform: KeyOrValueTransform, record: Any) -> tuple[object, object]:
        after = transform.apply(record)
        if not isinstance(after, type(record)):
            breach(self._where("apply"), f"returned {after!r}", "Return exactly one record from a KeyOrValueTransform")
        return (after.key_schema, after.key) if transform.part == "key" else (after.value_schema, after.value)

    def _apply(self, transform: Transform, record: Any) -> list[Any]:
        """Apply the transform, check the types of the results, and return them; none for an allowed error."""
        where = self._where("apply")
        advice = f"Raise DataError for a record that cannot be transformed (this one: {record!r})"
        after: list[Any] = []
        with only_these_errors(where, self.allowed_errors, advice):
            result: Any = transform.apply(record)
            if result is not None and not isinstance(result, (SourceRecord, SinkRecord, Sequence)):
                breach(
                    where, f"returned a {type(result).__name__}", "Return the record, None to drop it, or a sequence of records"
                )
            after = as_list(result)
            for one in after:
                headers = getattr(one, "headers", None)
                if type(one) is not type(record):
                    advice = "Create new records with record.new_record(...)"
                    breach(where, f"returned a {type(one).__name__} for a {type(record).__name__}", advice)
                if not isinstance(headers, tuple):
                    breach(where, f"set headers to a {type(headers).__name__}", "Use a tuple of Header")
        return after


def _apply_each(chain: TransformationChain[Any], record: ConnectRecord) -> list[Any]:
    try:
        return chain.apply_one_by_one(record)
    except TransformationError:
        return []


def _resolved(transform: KeyOrValueTransform, schema: Any) -> Any:
    try:
        return transform.resolve(schema)
    except Exception as error:  # noqa: BLE001 (compared with what apply raises)
        return error


def _use(resolved: Any, value: Any, record: ConnectRecord) -> tuple[object, object]:
    if isinstance(resolved, Exception):
        raise resolved
    return resolved.schema, resolved.function(value, record)
