"""Stages of a chain that run in Java together, and the results of batches that pass such segments. Java itself is replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sluiceway.api import Transform
from sluiceway.errors import ConnectError, DataError
from sluiceway.java_plugins.stages import JavaTransform, StageFailure
from sluiceway.runtime.transforms import java_segment
from sluiceway.runtime.transforms.chain_config import TransformationStage
from sluiceway.runtime.transforms.java_segment import JavaSegment, java_segments
from sluiceway.runtime.transforms.transformation_chain import TransformationChain
from sluiceway.runtime.transforms.transformed_batch import TransformationError
from unit.runtime.chains import run, sink, values


class Suffix(Transform):
    """Adds a letter; fails for values with an exclamation mark."""

    def apply(self, record: Any) -> Any:
        if "!" in record.value:
            raise DataError(f"cannot take {record.value}")
        return [record.new_record(value=f"{record.value}p")] * (2 if "2" in record.value else 1)


class FakeJava:
    """Stands for ``JavaTransforms``: adds the aliases of its steps, drops "drop", fails for a question mark at its last step."""

    def __init__(self, specs: Sequence[Mapping[str, object]]) -> None:
        self._aliases = [str(spec["alias"]) for spec in specs]
        if "refuse" in self._aliases:
            raise ConnectError("no such option")

    def apply(self, records: Sequence[Any]) -> list[Any]:
        return [self._one(record) for record in records]

    def _one(self, record: Any) -> Any:
        if "?" in record.value:
            return StageFailure(len(self._aliases) - 1, DataError(f"Java cannot take {record.value}"))
        return None if record.value.startswith("drop") else record.new_record(value=record.value + "".join(self._aliases))

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_segment, "JavaTransforms", FakeJava)


def stages(kinds: str) -> tuple[list[TransformationStage], list[dict[str, object] | None]]:
    """Return stages and their Java forms: j is a Java transform, k one of Kafka's own, p one of Python, x Java's with a
    predicate in Python."""
    made = [TransformationStage(kind, JavaTransform() if kind in "jx" else Suffix()) for kind in kinds]
    return made, [{"alias": kind} if kind in "jk" else None for kind in kinds]


def segments(kinds: str) -> list[JavaSegment[Any]]:
    return java_segments(*stages(kinds))


def chain(kinds: str) -> TransformationChain[Any]:
    return TransformationChain(stages(kinds)[0], java=segments(kinds))


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("", []),
        ("pk", []),
        ("j", [(0, 1)]),
        ("kjjk", [(1, 3)]),
        ("jkkj", [(0, 4)]),
        ("jpj", [(0, 1), (2, 3)]),
        ("jkpkj", [(0, 1), (4, 5)]),
        ("jxj", [(0, 1), (2, 3)]),
    ],
)
def test_a_segment_reaches_from_java_to_java_without_python(kinds: str, expected: list[tuple[int, int]]) -> None:
    assert [(segment.first, segment.end) for segment in segments(kinds)] == expected


def test_records_pass_all_segments_in_order() -> None:
    batch, failed = run(chain("jpjp"), sink("a"), sink("drop"), sink("2"))
    assert values(batch.records) == ["ajpjp", "2jpjp", "2jpjp", "2jpjp", "2jpjp"]
    assert (batch.origins, batch.taken, failed) == ([0, 2, 2, 2, 2], 3, [])


def test_one_record_for_each_needs_no_origins() -> None:
    assert run(chain("pj"), sink("a"), sink("b"))[0].origins is None


def test_failures_of_all_segments_are_handled_in_the_order_of_the_records() -> None:
    batch, failed = run(chain("jp"), sink("a!"), sink("b?"), sink("c"), sink("d?"))
    assert values(batch.records) == ["cjp"]
    assert [(record.value, error.stage, error.alias) for record, error in failed] == [
        ("a!", 1, "p"),
        ("b?", 0, "j"),
        ("d?", 0, "j"),
    ]


def test_the_first_failure_that_is_not_tolerated_ends_the_batch_before_its_record() -> None:
    def refuse(record: Any, error: TransformationError) -> None:
        raise ConnectError(f"not tolerated: {record.value}")

    batch = chain("jp")([sink("a"), sink("b!"), sink("c?"), sink("d")], refuse)
    assert (values(batch.records), batch.taken, str(batch.failure)) == (["ajp"], 1, "not tolerated: b!")


def test_a_single_record_fails_with_its_stage() -> None:
    with pytest.raises(TransformationError) as failure:
        chain("pjkj").apply(sink("a?"))
    assert (failure.value.stage, failure.value.alias) == (3, "j")


def test_an_error_of_configure_is_connects() -> None:
    with pytest.raises(ConnectError, match="ConnectException: no such option"):
        JavaSegment([{"alias": "refuse"}], 0)
