"""The chain of transforms between poll and convert (sources), and between convert and put (sinks)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar, cast

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.errors import java_text_of
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.transforms.chain_config import TransformationStage, close, transformation_stages
from sluiceway.runtime.transforms.chain_plan import JoinedSegment, SingleSegment, segments_of

R = TypeVar("R", SourceRecord, SinkRecord)


class TransformationError(Exception):
    """A record that one stage of a chain could not transform. ``__cause__`` is what the transform or predicate raised."""

    def __init__(self, stage: int, alias: str, text: str) -> None:
        super().__init__(stage, alias, text)
        self.stage = stage
        self.alias = alias
        self.text = text

    def __str__(self) -> str:
        return f"transformation {self.alias}: {self.text}"


class TransformedBatch(NamedTuple, Generic[R]):
    """What a chain makes of a batch.

    ``origins`` has the input's index for each record; None where there is one for each input, in order. ``failure`` is
    what ``refuse`` raised, Interrupted included: then the records are those made of the first ``taken`` inputs.
    """

    records: Sequence[R]
    taken: int
    origins: Sequence[int] | None = None
    failure: Exception | Interrupted | None = None


Refuse = Callable[[R, TransformationError], None]
"""Called with each record that failed; raises to end the batch before it, returns to leave the record out."""


class TransformationChain(Generic[R]):
    """A connector's transforms, in order. For one thread, on an executor.

    Work that depends on schemas only is done once for each pair of them. ``in_place`` allows records to be changed rather
    than copied where that is quicker; for records that nobody else holds.
    """

    def __init__(self, stages: Sequence[TransformationStage] = (), *, in_place: bool = False) -> None:
        self.stages = tuple(stages)
        self._segments = list(segments_of(self.stages, in_place=in_place))

    def __call__(self, records: Sequence[R], refuse: Refuse[R]) -> TransformedBatch[R]:
        """Transform a batch. What ``refuse`` raises is in the answer; only Abandoned is raised."""
        if not self._segments:
            return TransformedBatch(records, len(records))
        return _BatchRun(self, records, refuse).run(self._only_join())

    def _only_join(self) -> JoinedSegment[R] | None:
        """Return the one segment that does it all, if so."""
        only = self._segments[0]
        return only if len(self._segments) == 1 and isinstance(only, JoinedSegment) and only.condition is None else None

    def apply(self, record: R) -> list[R]:
        """Transform one record. Raises TransformationError."""
        return self._from_segment(0, record)

    def _from_segment(self, position: int, record: R) -> list[R]:
        for index in range(position, len(self._segments)):
            segment = self._segments[index]
            try:
                result = segment(record)
            except Exception as error:
                if isinstance(segment, SingleSegment):  # asked once and no more: a retry is the tolerance's business
                    raise _stage_error(segment.first, self.stages[segment.first], error) from error
                # The plain form tells which stage it was; a join changes nothing when it fails.
                result = self.apply_plainly(record, segment.first, segment.end)
            if result is None:
                return []
            if isinstance(result, (SourceRecord, SinkRecord)):
                record = cast(R, result)
                continue
            return [last for each in result for last in self._from_segment(index + 1, each)]
        return [record]

    def apply_plainly(self, record: R, first: int = 0, end: int | None = None) -> list[R]:
        """Transform one record stage by stage: what every quicker form must equal. Raises TransformationError."""
        records = [record]
        for index, stage in enumerate(self.stages[first:end], first):
            records = [after for before in records for after in _after(index, stage, before)]
        return records

    def close(self) -> None:
        """Close the transforms and predicates. Never raises."""
        close(self.stages)


def _stage_error(index: int, stage: TransformationStage, error: Exception) -> TransformationError:
    return TransformationError(index, stage.alias, java_text_of(error))


def _after(index: int, stage: TransformationStage, record: R) -> Sequence[R]:
    try:
        if stage.predicate is not None and stage.predicate.test(record) == stage.negate:
            return (record,)
        result = stage.transform.apply(record)
    except Exception as error:
        raise _stage_error(index, stage, error) from error
    if result is None:
        return ()
    return (result,) if isinstance(result, (SourceRecord, SinkRecord)) else result


class _BatchRun(Generic[R]):
    """One batch on its way through a chain."""

    def __init__(self, chain: TransformationChain[R], records: Sequence[R], refuse: Refuse[R]) -> None:
        self._chain: TransformationChain[R] = chain
        self._records: Sequence[R] = records
        self._refuse: Refuse[R] = refuse
        self._done: list[R] = []
        self._origins: list[int] | None = None

    def run(self, only: JoinedSegment[R] | None) -> TransformedBatch[R]:
        position = 0
        while position < len(self._records):
            if only is not None and self._origins is None:
                position = self._quickly(only, position)
                if position == len(self._records):
                    break
            try:
                self._take(position, self._chain.apply(self._records[position]))
            except TransformationError as error:
                try:
                    self._refuse(self._records[position], error)
                except (Exception, Interrupted) as failure:  # noqa: BLE001 (it is the caller's own)
                    return TransformedBatch(self._done, position, self._origins, failure)
                self._take(position, ())
            position += 1
        return TransformedBatch(self._done, len(self._records), self._origins)

    def _quickly(self, only: JoinedSegment[R], position: int) -> int:
        """Transform records up to the first that fails; return its position."""
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
        except Exception:  # noqa: BLE001, S110 (the careful way deals with it)
            pass
        return len(done)

    def _take(self, position: int, records: Sequence[R]) -> None:
        if len(records) != 1 and self._origins is None:
            self._origins = list(range(len(self._done)))
        self._done += records
        if self._origins is not None:
            self._origins += [position] * len(records)


def chain_of(config: Mapping[str, str], *, in_place: bool = False) -> TransformationChain[R]:
    """Return the chain that a connector's ``transforms`` describe, configured; ``in_place`` as for ``Chain``.

    The config's ``${provider:...}`` variables are resolved already. Raises ConfigError or ConnectError.
    """
    return TransformationChain(transformation_stages(config), in_place=in_place)
