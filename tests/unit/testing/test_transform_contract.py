"""Valid transforms and predicates fulfill the contracts, and each test of the contracts detects a violation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sluiceway.api import ConnectRecord, KeyOrValueTransform, Predicate, Resolved, SinkRecord, SourceRecord, Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.data import STRING_SCHEMA, Schema
from sluiceway.errors import ConfigError, DataError
from sluiceway.testing import PredicateContract, TransformContract, run_transform

from .breaches import breaches


class GoodTransform(Transform):
    """Sets a field of maps, drops tombstones, doubles strings, and refuses other values."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey(name="field", type=Type.STRING, doc="The field to set.")])

    def configure(self, config: Mapping[str, str]) -> None:
        self.field = str(self.config_def().parse(config)["field"])

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.value is None:
            return None
        if isinstance(record.value, str):
            return [record, record]
        if not isinstance(record.value, dict):
            raise DataError(f"Cannot set a field of {type(record.value).__name__}.")
        return record.new_record(value={**record.value, self.field: 1}, value_schema=None)


class GoodText(KeyOrValueTransform):
    """Converts values to strings, specialized once for each schema."""

    part = "value"

    def resolve(self, schema: Schema | None) -> Resolved:
        return Resolved(None if schema is None else STRING_SCHEMA, lambda value, record: f"{record.topic} {value!r}")


class HardClose(GoodTransform):
    def close(self) -> None:
        if self.__dict__.pop("field", None) is None:
            raise ConfigError("Closed already.")


class CloseNeedsConfigure(GoodTransform):
    def close(self) -> None:
        self.field.upper()


class Strict(GoodTransform):
    def configure(self, config: Mapping[str, str]) -> None:
        if set(config) - {"field"}:
            raise ConfigError(f"Unknown options: {set(config)}")
        super().configure(config)


class Lax(GoodTransform):
    def configure(self, config: Mapping[str, str]) -> None:
        self.field = config.get("field", "f")


class Raw(GoodTransform):
    def configure(self, config: Mapping[str, str]) -> None:
        self.field = config["field"]


class Popping(GoodTransform):
    def configure(self, config: Mapping[str, str]) -> None:
        self.field = config.pop("field")  # type: ignore[attr-defined]


class Undocumented(GoodTransform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey(name="field", type=Type.STRING)])


class Refusing(GoodTransform):
    def configure(self, config: Mapping[str, str]) -> None:
        raise ConfigError("No.")


class Naive(GoodTransform):
    def apply(self, record: R) -> R | Sequence[R] | None:
        return record if record.value is None else record.new_record(value={**record.value, self.field: 1})


class NoNulls(GoodTransform):
    def apply(self, record: R) -> R | Sequence[R] | None:
        # The contract must detect the TypeError of len(None).
        return None if record.key is None and len(record.key) else super().apply(record)  # type: ignore[arg-type]


class Wrong(GoodTransform):
    def apply(self, record: R) -> R | Sequence[R] | None:
        return record.value


class Mixed(GoodTransform):
    def apply(self, record: R) -> R | Sequence[R] | None:
        return SinkRecord(record.topic, 0, 0, record.value) if isinstance(record, SourceRecord) else record  # type: ignore[return-value]


class ListHeaders(GoodTransform):
    def apply(self, record: R) -> R | Sequence[R] | None:
        return record.new_record(headers=[*record.headers])


class Changing(GoodTransform):
    def apply(self, record: R) -> R | Sequence[R] | None:
        if isinstance(record.value, dict):
            record.value[self.field] = 1
        return record


class Displacing(GoodTransform):
    def apply(self, record: R) -> R | Sequence[R] | None:
        return record.new_record(source_offset={"position": 0}) if isinstance(record, SourceRecord) else record


class Rebuilding(GoodTransform):
    def apply(self, record: R) -> R | Sequence[R] | None:
        if isinstance(record, SourceRecord):
            return record
        return SinkRecord(record.topic, record.kafka_partition, record.kafka_offset, record.value)


class Counting(GoodTransform):
    count = 0

    def apply(self, record: R) -> R | Sequence[R] | None:
        self.count += 1
        return record.new_record(value=self.count)


class TwoFaced(GoodText):
    def apply(self, record: R) -> R | Sequence[R] | None:
        return record.new_record(value=str(record.value))


class Remembering(GoodText):
    def resolve(self, schema: Schema | None) -> Resolved:
        seen: list[Any] = []

        def function(value: Any, record: ConnectRecord) -> Any:
            seen.append(value)
            return f"{len(seen)}"

        return Resolved(None, function)


class Nulling(GoodText):
    def resolve(self, schema: Schema | None) -> Resolved:
        return Resolved(None, lambda value, record: None)


OPTIONS = {"field": "f"}


def found(transform: type[Transform], **settings: Any) -> dict[str, str]:
    options = OPTIONS if issubclass(transform, GoodTransform) else {}
    return breaches(TransformContract, transform_class=transform, **{"options": options, **settings})


@pytest.mark.parametrize("transform", [GoodTransform, GoodText])
def test_a_valid_transform_fulfills_the_contract(transform: type[Transform]) -> None:
    assert found(transform) == {}


APPLY = "test_apply_returns_records_or_raises_an_error_of_connects"
RESOLVED = "test_resolved_once_for_a_schema_it_does_the_same"
BROKEN = [
    (Undocumented, "test_every_option_is_documented", "option field: has no documentation"),
    (Refusing, "test_the_sample_options_are_valid", "raised ConfigError: No."),
    (Strict, "test_unknown_options_are_ignored", "Unknown options"),
    (Lax, "test_a_missing_required_option_is_refused", "without field"),
    (Raw, "test_a_missing_required_option_is_refused", "raised KeyError"),
    (Popping, "test_the_options_are_left_as_they_were", "changed the mapping"),
    (HardClose, "test_closing_twice_is_harmless", "Closed already"),
    (CloseNeedsConfigure, "test_closing_after_a_refused_configuration_is_harmless", "AttributeError"),
    (Naive, APPLY, "raised TypeError"),
    (Wrong, APPLY, "returned a Struct"),
    (Mixed, APPLY, "returned a SinkRecord for a SourceRecord"),
    (ListHeaders, APPLY, "headers to a list"),
    (NoNulls, "test_keys_and_values_may_be_null", "raised TypeError"),
    (Changing, "test_apply_leaves_the_record_as_it_was", "changed the record"),
    (Displacing, "test_a_record_keeps_where_it_came_from", "lost source_offset"),
    (Rebuilding, "test_a_record_keeps_where_it_came_from", "lost original_topic"),
    (Counting, "test_the_same_record_gives_the_same_result", "returned another result"),
    (TwoFaced, RESOLVED, "does not do what apply() does"),
    (Remembering, RESOLVED, "does not do what apply() does"),
    (Nulling, RESOLVED, "may_be_null=True"),
    (Remembering, "test_a_chain_does_what_it_does_alone", "another result in a chain"),
]


@pytest.mark.parametrize(("transform", "rule", "text"), BROKEN, ids=[f"{one[0].__name__}-{one[2]}" for one in BROKEN])
def test_a_violation_by_a_transform_is_detected(transform: type[Transform], rule: str, text: str) -> None:
    failed = found(transform, only=rule)
    assert text in failed.get(rule, "nothing"), failed


def test_every_test_of_the_contract_is_covered_by_a_violation() -> None:
    rules = {name for name in dir(TransformContract) if name.startswith("test_")}
    assert rules - {rule for _, rule, _ in BROKEN} == {"test_another_process_finds_the_class_by_its_name"}


def test_a_class_that_other_processes_cannot_import_is_detected() -> None:
    class Hidden(GoodTransform):
        """Defined in a function."""

    assert "cannot import the class" in found(Hidden)["test_another_process_finds_the_class_by_its_name"]


def test_a_transform_may_be_declared_stateful() -> None:
    assert found(Counting, stateful=True) == {}


def test_other_errors_may_be_allowed() -> None:
    assert found(Naive, allowed_errors=(TypeError,)) == {}


def test_run_transform_returns_the_resulting_records() -> None:
    records = [SourceRecord(None, None, "t", value) for value in ({"a": 1}, None, "twice")]
    assert [record.value for record in run_transform(GoodTransform, OPTIONS, *records)] == [{"a": 1, "f": 1}, "twice", "twice"]


class GoodPredicate(Predicate):
    """True for records with a string."""

    def test(self, record: ConnectRecord) -> bool:
        return isinstance(record.value, str)


class Shaky(GoodPredicate):
    def test(self, record: ConnectRecord) -> bool:
        return record.value.startswith("t")


class Vague(GoodPredicate):
    def test(self, record: ConnectRecord) -> bool:
        return record.value


class Fickle(GoodPredicate):
    answer = False

    def test(self, record: ConnectRecord) -> bool:
        self.answer = not self.answer
        return self.answer


class Scribbling(GoodPredicate):
    def test(self, record: ConnectRecord) -> bool:
        record.topic += "!"
        return True


class Texts(PredicateContract):
    def matching(self) -> Sequence[ConnectRecord]:
        return [SourceRecord(None, None, "t", "text")]

    def others(self) -> Sequence[ConnectRecord]:
        return [SourceRecord(None, None, "t", None)]


def test_a_valid_predicate_fulfills_the_contract() -> None:
    assert breaches(Texts, predicate_class=GoodPredicate) == {}


BROKEN_PREDICATES = [
    (Shaky, "test_the_answer_is_true_or_false_for_every_record", "raised AttributeError"),
    (Vague, "test_the_answer_is_true_or_false_for_every_record", "returned Struct"),
    (Scribbling, "test_the_answer_is_as_the_author_says", "is not False"),
    (Fickle, "test_the_answer_stays_the_same", "another result"),
    (Scribbling, "test_the_record_is_left_as_it_was", "changed the record"),
]


@pytest.mark.parametrize(("predicate", "rule", "text"), BROKEN_PREDICATES)
def test_a_violation_by_a_predicate_is_detected(predicate: type[Predicate], rule: str, text: str) -> None:
    failed = breaches(Texts, only=rule, predicate_class=predicate)
    assert text in failed.get(rule, "nothing"), failed


def test_every_predicate_test_is_covered_by_a_violation() -> None:
    rules = {name for name in vars(PredicateContract) if name.startswith("test_")}
    assert rules == {rule for _, rule, _ in BROKEN_PREDICATES}
