"""Takes a batch through a chain, and records that failed with a RetriableError through it again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from sluiceway.api.transform import R
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError, TransformedBatch


def transform_batch(
    chain: TransformationChain[R],
    records: Sequence[R],
    tolerance: RetryWithToleranceOperator,
    *,
    place: Callable[[R], str],
    original: Callable[[R], ConsumerRecord | R],
) -> TransformedBatch[R]:
    """Return what a chain makes of a batch; its answer's ``failure`` is what ended it early, another order included.

    ``place`` tells a record from others in messages, ``original`` is what the log and dead letters tell of it. A record
    is tried again from the start of the chain: a chain that retries may not change records in place.
    """
    recovered: dict[int, list[R]] = {}
    position = 0

    def refuse(record: R, error: TransformationError) -> None:
        nonlocal position
        while records[position] is not record:
            position += 1
        kind = type(chain.stages[error.stage].transform)
        what = f"{place(record)} cannot be transformed by {error.alias}"
        failure = ProcessingContext(Stage.TRANSFORMATION, kind, original(record))  # type: ignore[arg-type]
        made = tolerance.recover(lambda: _apply(chain, record), what, _cause(error), failure)
        if made is not None:
            recovered[position] = made
        position += 1

    made = chain(records, refuse)
    return _with(made, recovered) if recovered else made


def _apply(chain: TransformationChain[R], record: R) -> list[R]:
    try:
        return chain.apply(record)
    except TransformationError as error:
        raise _cause(error) from error


def _cause(error: TransformationError) -> Exception:
    return error.__cause__ if isinstance(error.__cause__, Exception) else error


def _with(made: TransformedBatch[R], recovered: dict[int, list[R]]) -> TransformedBatch[R]:
    """Return a chain's answer with records put in at their places."""
    origins: Sequence[int] = range(len(made.records)) if made.origins is None else made.origins
    entries: list[tuple[int, R]] = list(zip(origins, made.records, strict=True))
    entries += [(position, record) for position, records in recovered.items() for record in records]
    entries.sort(key=_position)
    return TransformedBatch([record for _, record in entries], made.taken, [position for position, _ in entries], made.failure)


_position = operator.itemgetter(0)
