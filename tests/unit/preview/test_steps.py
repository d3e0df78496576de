"""A record's way through transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sluiceway.api import Predicate, SourceRecord, Transform
from sluiceway.config.definition import ConfigDef
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import DataError, RetriableError
from sluiceway.preview.errors import ErrorPolicy
from sluiceway.preview.images import LARGEST
from sluiceway.preview.steps import Passage, pass_through
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.transforms.chain_config import TransformationStage
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError

POLICY = ErrorPolicy({"errors.tolerance": "all"})


class Do(Transform):
    """Does what it was created with."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([])

    def apply(self, record: Any) -> Any:
        return self._function(record)


class Always(Predicate):
    """Matches all records."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([])

    def test(self, record: Any) -> bool:
        return True


def through(*functions: Any, value: str = "a") -> Passage[SourceRecord]:
    stages = [TransformationStage(f"t{number}", Do(function)) for number, function in enumerate(functions)]
    return pass_through(stages, SourceRecord({}, {}, "t", value, STRING_SCHEMA), POLICY)


def upper(record: SourceRecord) -> SourceRecord:
    return record.new_record(value=record.value.upper())


def twice(record: SourceRecord) -> Sequence[SourceRecord]:
    return [record, record.new_record(value="b")]


def bad(_record: SourceRecord) -> SourceRecord:
    raise DataError("no")


def outcomes(passage: Passage[SourceRecord]) -> list[str]:
    return [step["outcome"] for step in passage.steps]


def test_each_step_shows_what_it_changed() -> None:
    passage = through(upper, lambda record: record, upper)
    assert outcomes(passage) == ["changed", "unchanged", "unchanged"]
    assert [image["value"]["data"] for image in passage.steps[0]["records"]] == ["A"]
    assert passage.steps[0]["transform"] == "t0"
    assert [record.value for record in passage.records] == ["A"]
    assert passage.error is None


def test_a_dropped_record_ends_the_chain() -> None:
    passage = through(lambda _record: None, upper)
    assert (outcomes(passage), list(passage.records)) == (["dropped"], [])


def test_a_record_may_become_several() -> None:
    passage = through(twice, upper)
    assert outcomes(passage) == ["changed", "changed"]
    assert [record.value for record in passage.records] == ["A", "B"]


def test_a_failure_names_the_transform_and_the_policy() -> None:
    passage = through(upper, bad, upper)
    assert outcomes(passage) == ["changed", "failed"]
    assert passage.error is not None
    assert (passage.error["transform"], passage.error["tolerated"]) == ("t1", True)
    assert list(passage.records) == []


@pytest.mark.parametrize(
    "error", [DataError("no"), RetriableError("no"), KeyError("no"), ZeroDivisionError(), AssertionError("no")]
)
def test_an_error_is_the_records_as_in_a_running_task(error: Exception) -> None:
    def fail(_record: SourceRecord) -> SourceRecord:
        raise error

    stage, record = TransformationStage("a", Do(fail)), SourceRecord({}, {}, "t", "a")
    failed: list[TransformationError] = []
    batch = TransformationChain[SourceRecord]([stage])([record], lambda _record, found: failed.append(found))

    assert (batch.failure, [each.__cause__ for each in failed]) == (None, [error])
    assert pass_through([stage], record, POLICY).error is not None


@pytest.mark.parametrize("command", [Interrupted(), KeyboardInterrupt()])
def test_what_ends_the_task_is_no_error_of_a_record(command: BaseException) -> None:
    def end(_record: SourceRecord) -> SourceRecord:
        raise command

    with pytest.raises(type(command)):
        pass_through([TransformationStage("a", Do(end))], SourceRecord({}, {}, "t", "a"), POLICY)


def test_a_failing_predicate_is_its_transforms_failure() -> None:
    class Fails(Always):
        def test(self, record: Any) -> bool:
            raise DataError("no")

    passage = pass_through([TransformationStage("a", Do(upper), Fails())], SourceRecord({}, {}, "t", "a"), POLICY)
    assert passage.error is not None


def test_a_record_that_the_predicate_leaves_out_is_not_selected() -> None:
    stages = [TransformationStage("a", Do(bad), Always(), negate=True)]
    passage = pass_through(stages, SourceRecord({}, {}, "t", "a"), POLICY)
    assert outcomes(passage) == ["not selected"]
    assert len(passage.records) == 1


def test_a_change_behind_the_clipped_part_counts_as_one() -> None:
    long = "x" * (LARGEST * 2)
    assert outcomes(through(lambda record: record.new_record(value=long + "y"), value=long)) == ["changed"]
    assert outcomes(through(lambda record: record, value=long)) == ["unchanged"]


def test_a_transform_that_changes_the_record_in_place_counts_as_one() -> None:
    def in_place(record: SourceRecord) -> SourceRecord:
        record.value = "other"
        return record

    passage = through(in_place)
    assert outcomes(passage) == ["changed"]
