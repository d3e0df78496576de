"""Runs successive Java transforms of a chain whose other stages are Python's: a batch passes through them in one call of Java."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.errors import ConnectError, java_text_of
from sluiceway.java_plugins.stages import JavaTransform, JavaTransforms, StageFailure
from sluiceway.runtime.transforms.chain_config import TransformationStage
from sluiceway.runtime.transforms.transformed_batch import TransformationError

R = TypeVar("R", SourceRecord, SinkRecord)


class JavaSegment(Generic[R]):
    """Successive stages that run in Java. ``specs`` describe them as ``Chain.java`` reads them; ``first`` is an index."""

    def __init__(self, specs: Sequence[Mapping[str, object]], first: int) -> None:
        """Create the transforms. Raises ConnectError with what their ``configure`` throws."""
        self.first, self.end = first, first + len(specs)
        self._aliases = [str(spec["alias"]) for spec in specs]
        try:
            self._transforms = JavaTransforms(specs)
        except ConnectError as error:
            raise ConnectError(java_text_of(error)) from error

    def __call__(self, record: R) -> R | Sequence[R] | None:
        """Transform one record. Raises TransformationError."""
        outcome = self.batch([record])[0]
        if isinstance(outcome, TransformationError):
            raise outcome
        return outcome

    def batch(self, records: Sequence[R]) -> list[Sequence[R] | TransformationError]:
        """Return for each record what it was transformed into, or why it could not be."""
        return [self._outcome(each) for each in self._transforms.apply(records)]

    def close(self) -> None:
        """Close the transforms."""
        self._transforms.close()

    def _outcome(self, outcome: R | StageFailure | None) -> Sequence[R] | TransformationError:
        if outcome is None:
            return ()
        if not isinstance(outcome, StageFailure):
            return (outcome,)
        error = TransformationError(self.first + outcome.step, self._aliases[outcome.step], java_text_of(outcome.error))
        error.__cause__ = outcome.error
        return error


def java_segments(stages: Sequence[TransformationStage], specs: Sequence[Mapping[str, object] | None]) -> list[JavaSegment[R]]:
    """Return the segments of a chain that run in Java.

    A segment starts and ends with a Java transform. Kafka's own transforms between two of them run in Java as well, which
    saves two changes of side. ``specs`` has the Java form of each stage, None for a stage that needs Python.
    """
    found: list[JavaSegment[R]] = []
    first = 0
    while first < len(stages):
        end = first
        for index in range(first, len(stages)):
            if specs[index] is None:
                break
            if isinstance(stages[index].transform, JavaTransform):
                end = index + 1
            elif end == first:
                break
        if end > first:
            found.append(JavaSegment([spec for spec in specs[first:end] if spec is not None], first))
        first = max(end, first + 1)
    return found
