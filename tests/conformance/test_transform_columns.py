"""Compares the columnar forms of transforms with Kafka Connect 4.3.0's recorded results, for all vectors they can handle."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from conformance.answer import read_record, write_record
from conformance.compare_vectors import check
from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.api.columns import ColumnBatch, NotColumnar
from sluiceway.columns.rows import column_values
from sluiceway.runtime.transforms.chain_config import transformation_stages
from sluiceway.runtime.transforms.column_chain import ColumnChain
from support.columnar import Case, batch_of, differences

_DATA = Path(__file__).parent / "data"
_MANY = 7


def transform_vectors() -> list[dict[str, Any]]:
    texts = [(_DATA / name).read_text(encoding="utf-8") for name in ("vectors.jsonl", "more_vectors.jsonl")]
    vectors = [json.loads(line) for text in texts for line in text.split("\n") if line]
    return [vector for vector in vectors if vector["kind"] == "transform" and not vector["record"]["headers"]]


VECTORS = transform_vectors()


def config_of(vector: dict[str, Any]) -> dict[str, str]:
    return {"name": "conformance", **vector["config"]}


def record_of(batch: ColumnBatch) -> SourceRecord | SinkRecord:
    """Return the record of a batch with one."""
    (key,), (value,) = column_values(batch.key, 1), column_values(batch.value, 1)
    timestamp = None if batch.timestamps is None else batch.timestamps[0].as_py()
    if batch.offsets is None:
        return SourceRecord({}, {}, batch.topic, value, batch.value.schema, key, batch.key.schema, batch.partition, timestamp)
    offset = int(str(batch.offsets[0]))
    return SinkRecord(batch.topic, batch.partition or 0, offset, value, batch.value.schema, key, batch.key.schema, timestamp)


def answer_of(vector: dict[str, Any]) -> dict[str, Any] | None:
    """Return the columnar form's answer, or None where there is none."""
    try:
        chain = ColumnChain(transformation_stages(config_of(vector)))
    except Exception:  # noqa: BLE001 (the row form's test compares errors of configs)
        return None
    try:
        batches = chain(batch_of([read_record(vector["record"])]))
    except NotColumnar:
        return None
    return {"id": vector["id"], "records": [write_record(record_of(batch)) for batch in batches]}


def test_columnar_forms_answer_like_kafka_connect() -> None:
    answers = {vector["id"]: answer_of(vector) for vector in VECTORS}
    misses = {
        vector["id"]: found
        for vector in VECTORS
        if (answer := answers[vector["id"]]) is not None and (found := check(vector, answer, "message"))
    }
    print(f"{sum(answer is not None for answer in answers.values())} of {len(VECTORS)} vectors answered as columns")
    assert not misses
    assert sum(answer is not None for answer in answers.values()) > len(VECTORS) // 4


def test_vectors_in_batches_are_transformed_like_records() -> None:
    handled: Counter[str] = Counter()
    for vector in VECTORS:
        record = read_record(vector["record"])
        records: list[SourceRecord | SinkRecord] = [
            record.new_record(kafka_offset=at) if isinstance(record, SinkRecord) else record for at in range(_MANY)
        ]
        try:
            case = Case(records, batch_of(records))
            transformation_stages(config_of(vector))
        except Exception:  # noqa: BLE001 (no columns, or no valid config)
            handled["no columns"] += 1
            continue
        how, difference = differences(config_of(vector), case)
        assert difference is None, f"{vector['id']}: {difference}"
        handled[how] += 1
    print(dict(handled))
    assert handled["columns"] > len(VECTORS) // 4
