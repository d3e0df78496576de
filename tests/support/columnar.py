"""Compares the columnar form of a chain with its row form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.api.columns import ColumnBatch, NotColumnar
from sluiceway.columns.batches import sliced
from sluiceway.columns.rows import column_of, column_values
from sluiceway.data import Struct
from sluiceway.runtime.transforms.chain_config import transformation_stages
from sluiceway.runtime.transforms.column_chain import ColumnChain
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError
from support.column_cases import PREDICATES, Cases, chain_config, data

Record = SinkRecord | SourceRecord


class Case(NamedTuple):
    """Records of one topic partition with the same schemas, as rows and as columns."""

    records: list[Record]
    batch: ColumnBatch


def batch_of(records: Sequence[Record]) -> ColumnBatch:
    """Return records of one topic partition with the same schemas as columns. Raises NotColumnar."""
    first, count = records[0], len(records)
    timestamps = [record.timestamp for record in records]
    offsets = [record.kafka_offset for record in records if isinstance(record, SinkRecord)]
    return ColumnBatch(
        topic=first.topic,
        partition=first.kafka_partition,
        key=column_of(first.key_schema, [record.key for record in records]),
        value=column_of(first.value_schema, [record.value for record in records]),
        count=count,
        timestamps=None if set(timestamps) == {None} else pa.array(timestamps, pa.int64()),
        timestamp_type=first.timestamp_type if isinstance(first, SinkRecord) else 0,
        offsets=pa.array(offsets, pa.int64()) if offsets else None,
        original_topic=first.original_topic if isinstance(first, SinkRecord) else "",
    )


def random_case(rng: Cases) -> Case:
    """Return random records of a sink or source. Sometimes their arrays are slices of longer ones."""
    count = rng.randrange(1, 7)
    (key_schema, keys), (value_schema, values) = data(rng, count), data(rng, count)
    rng.schemas = {"$Key": key_schema, "$Value": value_schema}
    start = rng.choice((0, 1_700_000_000_000, 86_399_998))
    step = rng.choice((0, 1, 1000))
    timestamps: list[int | None] = [None if start == 0 else start + at * step for at in range(count)]
    if rng.random() < 0.1:
        timestamps[0] = None
    is_sink, partition = rng.random() < 0.8, rng.choice((0, 3))
    records: list[Record] = []
    for at, (key, value, timestamp) in enumerate(zip(keys, values, timestamps, strict=True)):
        if is_sink:
            records.append(SinkRecord("orders", partition, 7 + at, value, value_schema, key, key_schema, timestamp, 1))
        else:
            chosen = partition or None
            records.append(SourceRecord({}, {}, "orders", value, value_schema, key, key_schema, chosen, timestamp))
    if rng.random() < 0.3:  # arrays with an offset
        return Case(records, sliced(batch_of([records[0], *records, records[-1]]), 1, count + 1))
    return Case(records, batch_of(records))


def shapes_of_rows(records: Sequence[Record]) -> list[tuple[Any, ...]]:
    """Return all of each record that a batch has, in comparable form."""
    return [
        (
            record.topic,
            record.kafka_partition,
            record.timestamp,
            (record.kafka_offset, record.original_topic, record.timestamp_type) if isinstance(record, SinkRecord) else None,
            record.key_schema,
            comparable(record.key),
            record.value_schema,
            comparable(record.value),
            list(record.headers),
        )
        for record in records
    ]


def shapes_of_columns(batches: Sequence[ColumnBatch]) -> list[tuple[Any, ...]]:
    """Return the same of each record in batches."""
    shapes: list[tuple[Any, ...]] = []
    for batch in batches:
        for column in (batch.key, batch.value):
            if column.values is not None:
                column.values.validate(full=True)
                assert len(column.values) == batch.count
        timestamps = [None] * batch.count if batch.timestamps is None else batch.timestamps.to_pylist()
        offsets = [None] * batch.count if batch.offsets is None else batch.offsets.to_pylist()
        keys, values = column_values(batch.key, batch.count), column_values(batch.value, batch.count)
        for key, value, timestamp, offset in zip(keys, values, timestamps, offsets, strict=True):
            sink = None if offset is None else (offset, batch.original_topic, batch.timestamp_type)
            key_part, value_part = (batch.key.schema, comparable(key)), (batch.value.schema, comparable(value))
            shapes.append((batch.topic, batch.partition, timestamp, sink, *key_part, *value_part, []))
    return shapes


def comparable(value: Any) -> Any:
    """Return a value with the classes of its parts; NaN equals itself, -0.0 differs from 0.0, 1 from True."""
    if isinstance(value, Struct):
        return Struct, value.schema, [comparable(item) for item in value.values_]
    if isinstance(value, Mapping):
        return dict, [(comparable(key), comparable(item)) for key, item in value.items()]
    if isinstance(value, list):
        return list, [comparable(item) for item in value]
    return type(value), repr(value)


def differences(config: Mapping[str, str], case: Case) -> tuple[str, str | None]:
    """Return how a case was handled (``columns``, ``rows``, ``error``), and the difference between the forms or None."""
    stages = transformation_stages(config)
    rows: TransformationChain[Any] = TransformationChain(stages)
    expected: list[tuple[Any, ...]] | None
    try:
        expected = shapes_of_rows([after for record in case.records for after in rows.apply(record)])
    except TransformationError:
        expected = None
    chain = ColumnChain(stages)
    try:
        found = shapes_of_columns(chain(case.batch))
    except NotColumnar:
        return "error" if expected is None else "rows", None
    if expected is None:
        return "columns", "the row form fails"
    return "columns", None if found == expected else f"\n  columns {found}\n  rows    {expected}"


def compare(
    names: Sequence[str],
    seeds: range,
    *,
    lengths: Sequence[int] = (1,),
    predicates: float = 0.0,
    predicate_names: Sequence[str] = tuple(PREDICATES),
) -> Counter[str]:
    """Compare random cases of chains of these transforms; return how they were handled.

    Raises AssertionError with the seed, the config and the records of the first difference.
    """
    handled: Counter[str] = Counter()
    for seed in seeds:
        rng = Cases(f"{names} {seed}")
        try:
            case = random_case(rng)
        except NotColumnar:
            handled["no columns"] += 1
            continue
        chain = [rng.choice(names) for _ in range(rng.choice(lengths))]
        config = chain_config(rng, chain, predicates=predicates, predicate_names=predicate_names)
        try:
            how, difference = differences(config, case)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {config}\n{shapes_of_rows(case.records)}") from error
        assert difference is None, f"seed {seed}: {config}\n{shapes_of_rows(case.records)}{difference}"
        handled[how] += 1
    return handled
