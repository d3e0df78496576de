"""Transforms a batch of records, with the connector's error handling: retries, tolerance, dead letter queue."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from sluiceway.api.transform import R
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.transforms.transformation_chain import TransformationChain
from sluiceway.runtime.transforms.transformed_batch import TransformationError, TransformedBatch


def transform_batch(
    chain: TransformationChain[R],
    records: Sequence[R],
    tolerance: RetryWithToleranceOperator,
    *,
    describe: Callable[[R], str],
    original: Callable[[R], ConsumerRecord | R],
) -> TransformedBatch[R]:
    """Return a transformed batch. Its ``failure`` is what ended it early, Interrupted included.

    ``describe`` names a record in messages. ``original`` returns the record that the log and the dead letter queue report.
    A retry starts at the beginning of the chain, so a chain that retries must not change records in place.
    """
    recovered: dict[int, list[R]] = {}
    position = 0

    def on_failure(record: R, error: TransformationError) -> None:
        nonlocal position
        while records[position] is not record:
            position += 1
        executing_class = type(chain.stages[error.stage].transform)
        description = f"{describe(record)} cannot be transformed by {error.alias}"
        context = ProcessingContext(Stage.TRANSFORMATION, executing_class, original(record))  # type: ignore[arg-type]
        retried = tolerance.retry(lambda: _apply(chain, record), description, _cause(error), context)
        if retried is not None:
            recovered[position] = retried
        position += 1

    batch = chain(records, on_failure)
    return _merged(batch, recovered) if recovered else batch


def _apply(chain: TransformationChain[R], record: R) -> list[R]:
    try:
        return chain.apply(record)
    except TransformationError as error:
        raise _cause(error) from error


def _cause(error: TransformationError) -> Exception:
    return error.__cause__ if isinstance(error.__cause__, Exception) else error


def _merged(batch: TransformedBatch[R], recovered: dict[int, list[R]]) -> TransformedBatch[R]:
    """Insert the records of successful retries, by the index of their input, into a transformed batch."""
    origins: Sequence[int] = range(len(batch.records)) if batch.origins is None else batch.origins
    entries: list[tuple[int, R]] = list(zip(origins, batch.records, strict=True))
    entries += [(position, record) for position, records in recovered.items() for record in records]
    entries.sort(key=_position)
    return TransformedBatch([record for _, record in entries], batch.taken, [position for position, _ in entries], batch.failure)


_position = operator.itemgetter(0)
