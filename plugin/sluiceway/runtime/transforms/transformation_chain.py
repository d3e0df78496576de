"""Applies a connector's transforms: between poll and conversion in sources, between conversion and put in sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sluiceway.api import ColumnBatch, SinkRecord, SourceRecord
from sluiceway.errors import java_text_of
from sluiceway.java_plugins.stages import JavaTransform
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.java_chain import java_transform
from sluiceway.runtime.transforms.chain_config import TransformationStage, close, transformation_stages
from sluiceway.runtime.transforms.chain_plan import JoinedSegment, SingleSegment, segments
from sluiceway.runtime.transforms.java_segment import JavaSegment, java_segments
from sluiceway.runtime.transforms.segment_run import SegmentRun
from sluiceway.runtime.transforms.transformed_batch import TransformationError as TransformationError  # also imported from here
from sluiceway.runtime.transforms.transformed_batch import TransformedBatch as TransformedBatch

if TYPE_CHECKING:
    from sluiceway.runtime.transforms.column_chain import ColumnChain

R = TypeVar("R", SourceRecord, SinkRecord)


Segment = JoinedSegment[R] | SingleSegment[R] | JavaSegment[R]

OnFailure = Callable[[R, TransformationError], None]
"""Called with each record that failed. Raises to end the batch before the record, returns to skip the record."""


class TransformationChain(Generic[R]):
    """A connector's transforms in order. Runs on an executor. Not thread-safe.

    Work that depends only on schemas is done once for each pair of key and value schema. ``in_place`` allows changing
    records instead of copying them. Use it only for records without another owner.
    """

    def __init__(
        self,
        stages: Sequence[TransformationStage] = (),
        *,
        in_place: bool = False,
        java: Sequence[JavaSegment[R]] = (),
    ) -> None:
        self.stages: tuple[TransformationStage, ...] = tuple(stages)
        self._java: Sequence[JavaSegment[R]] = java
        self._column_chain: ColumnChain | None = None
        self._segments: list[Segment[R]] = _with_java(self.stages, java, in_place=in_place)

    def __call__(self, records: Sequence[R], on_failure: OnFailure[R]) -> TransformedBatch[R]:
        """Return a transformed batch. What ``on_failure`` raises is in its ``failure``, except Abandoned, which is raised."""
        if not self._segments:
            return TransformedBatch(records, len(records))
        if self._java:
            return SegmentRun(self._segments, self._from_segment, records).run(on_failure)
        return _BatchRun(self, records, on_failure).run(self._single_joined_segment())

    def _single_joined_segment(self) -> JoinedSegment[R] | None:
        """Return the chain's only segment, if it is a joined one without a predicate."""
        only = self._segments[0]
        return only if len(self._segments) == 1 and isinstance(only, JoinedSegment) and only.condition is None else None

    def apply(self, record: R) -> list[R]:
        """Return the records that one record is transformed into. Raises TransformationError."""
        return self._from_segment(0, len(self._segments), record)

    def _from_segment(self, position: int, end: int, record: R) -> list[R]:
        for index in range(position, end):
            segment = self._segments[index]
            try:
                result = segment(record)
            except TransformationError:
                raise
            except Exception as error:
                if isinstance(segment, SingleSegment):  # must not run twice; retries are the caller's decision
                    raise _stage_error(segment.first, self.stages[segment.first], error) from error
                # Applying the stages one by one shows which one fails; a joined segment that fails changes nothing.
                result = self.apply_one_by_one(record, segment.first, segment.end)
            if result is None:
                return []
            if isinstance(result, (SourceRecord, SinkRecord)):
                record = result
                continue
            return [last for each in result for last in self._from_segment(index + 1, end, each)]
        return [record]

    def columns(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Return the transformed batches of a batch, in order and none empty. Raises NotColumnar if it needs the row form."""
        if not self.stages:
            return [batch]
        if self._column_chain is None:
            from sluiceway.runtime.transforms.column_chain import ColumnChain  # loads Arrow

            self._column_chain = ColumnChain(self.stages)
        return self._column_chain.plan(batch.key.schema, batch.value.schema)(batch)

    def apply_one_by_one(self, record: R, first: int = 0, end: int | None = None) -> list[R]:
        """Transform one record stage by stage. Joined segments must return the same. Raises TransformationError."""
        records = [record]
        for index, stage in enumerate(self.stages[first:end], first):
            records = [after for before in records for after in _apply_stage(index, stage, before)]
        return records

    def close(self) -> None:
        """Close the transforms and predicates. Never raises."""
        for segment in self._java:
            segment.close()
        close(self.stages)


def _with_java(stages: Sequence[TransformationStage], java: Sequence[JavaSegment[Any]], *, in_place: bool) -> list[Any]:
    """Return the segments of a chain, those of Java and those between them."""
    found: list[Any] = []
    position = 0
    for segment in java:
        found += [*segments(stages[position : segment.first], position, in_place=in_place), segment]
        position = segment.end
    return [*found, *segments(stages[position:], position, in_place=in_place)]


def _stage_error(index: int, stage: TransformationStage, error: Exception) -> TransformationError:
    return TransformationError(index, stage.alias, java_text_of(error))


def selects(stage: TransformationStage, record: SourceRecord | SinkRecord) -> bool:
    """Return whether a stage transforms a record, by its predicate. Raises what the predicate raises."""
    return stage.predicate is None or stage.predicate.test(record) != stage.negate


def as_records(result: R | Sequence[R] | None) -> Sequence[R]:
    """Return the result of a transform's ``apply`` as a sequence."""
    if result is None:
        return ()
    return (result,) if isinstance(result, (SourceRecord, SinkRecord)) else result


def _apply_stage(index: int, stage: TransformationStage, record: R) -> Sequence[R]:
    try:
        return as_records(stage.transform.apply(record)) if selects(stage, record) else (record,)
    except Exception as error:
        raise _stage_error(index, stage, error) from error


class _BatchRun(Generic[R]):
    """State of one batch while it is transformed."""

    def __init__(self, chain: TransformationChain[R], records: Sequence[R], on_failure: OnFailure[R]) -> None:
        self._chain: TransformationChain[R] = chain
        self._records: Sequence[R] = records
        self._on_failure: OnFailure[R] = on_failure
        self._done: list[R] = []
        self._origins: list[int] | None = None

    def run(self, only: JoinedSegment[R] | None) -> TransformedBatch[R]:
        position = 0
        while position < len(self._records):
            if only is not None and self._origins is None:
                position = self._run_joined(only, position)
                if position == len(self._records):
                    break
            try:
                self._append(position, self._chain.apply(self._records[position]))
            except TransformationError as error:
                try:
                    self._on_failure(self._records[position], error)
                except (Exception, Interrupted) as failure:  # noqa: BLE001 (what the callback raised is returned)
                    return TransformedBatch(self._done, position, self._origins, failure)
                self._append(position, ())
            position += 1
        return TransformedBatch(self._done, len(self._records), self._origins)

    def _run_joined(self, only: JoinedSegment[R], position: int) -> int:
        """Transform records up to the first that fails. Return its position."""
        done = self._done
        key_schema: object = self
        value_schema: object = self
        plan: Callable[[R], R] = only.step_by_step
        try:
            for record in self._records[position:] if position else self._records:
                if record.value_schema is not value_schema or record.key_schema is not key_schema:
                    key_schema, value_schema = record.key_schema, record.value_schema
                    plan = only.plan_for(record.key_schema, record.value_schema)
                done.append(plan(record))
        except Exception:  # noqa: BLE001, S110 (the caller transforms this record again and handles the error)
            pass
        return len(done)

    def _append(self, position: int, records: Sequence[R]) -> None:
        if len(records) != 1 and self._origins is None:
            self._origins = list(range(len(self._done)))
        self._done += records
        if self._origins is not None:
            self._origins += [position] * len(records)


def chain_of(config: Mapping[str, str], *, in_place: bool = False) -> TransformationChain[R]:
    """Return the configured chain of a connector's ``transforms``. ``in_place`` as for ``TransformationChain``.

    Variables such as ``${provider:...}`` must be resolved already. Raises ConfigError or ConnectError.
    """
    stages = transformation_stages(config)
    java: Sequence[JavaSegment[R]] = ()
    if any(isinstance(stage.transform, JavaTransform) for stage in stages):
        java = java_segments(stages, [java_transform(stage.alias, config) for stage in stages])
    return TransformationChain(stages, in_place=in_place, java=java)
