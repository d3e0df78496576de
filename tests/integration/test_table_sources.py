"""The Iceberg and the Delta source with a real broker: each row once, however often the task is killed while rows are added."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sluiceway.api import TopicPartition
from sluiceway.kafka.admin import end_offsets
from support.eventually import LIMIT
from support.exactly_once import exactly_once_worker, opened_stores
from support.kafka import Kafka
from support.table_source import SourceLake, numbers
from support.transactions import seen, task_process

pytestmark = pytest.mark.kafka

FIRST, ADDED, KILLS = 100_000, 20_000, 3


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> SourceLake:
    return SourceLake(request.param, tmp_path)


def end_offset(kafka: Kafka, topic: str) -> int:
    """Return the end offset, also of records that are not committed, within some milliseconds."""
    partition = TopicPartition(topic, 0)
    return end_offsets(kafka.admin, [partition], read_committed=False)[partition]


def test_kills_lose_and_repeat_nothing_while_rows_are_added(
    lake: SourceLake, kafka: Kafka, unique: Callable[[str], str], chance: random.Random
) -> None:
    worker, topic = exactly_once_worker(kafka.bootstrap, unique), kafka.create(unique("rows"))
    json_values = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    config = {**lake.config(topic, topic=topic, batch_max_rows="100", columns="id"), **json_values}
    lake.append(numbers(0, FIRST // 2))
    lake.append(numbers(FIRST // 2, FIRST))
    count, killed_at = FIRST, []
    for _ in range(KILLS):
        end = end_offset(kafka, topic) + chance.randint(0, 20_000)
        with task_process(config, worker) as process:
            deadline = time.monotonic() + 240
            while end_offset(kafka, topic) <= end and time.monotonic() < deadline:
                time.sleep(0.001)  # the rest is read within half a second
            time.sleep(chance.uniform(0, 0.05))  # kill it at a random point of a transaction
            process.kill()
        killed_at.append((kafka.end(topic), count))
        lake.append(numbers(count, count + ADDED))
        count += ADDED
    with task_process(config, worker, bounded=True) as process:
        assert process.join(LIMIT)
    found = Counter(json.loads(message.value() or b"")["id"] for message in seen(kafka.bootstrap, topic))
    expected = Counter(range(count))
    print(f"{lake.format}: killed at {killed_at} (end offset, rows in the table)")
    assert any(end < rows for end, rows in killed_at), "no kill hit a snapshot that was being read"
    lost, extra = sorted((expected - found).elements()), sorted((found - expected).elements())
    assert not lost, f"{len(lost)} of {count} rows are lost, such as {lost[:5]}"
    assert not extra, f"{len(extra)} rows are there twice, such as {extra[:5]}"
    with opened_stores(worker) as stores:
        [offset] = stores({}).get(topic, [{"table": "db.t"}])
    assert offset["snapshot"] == lake.current()
    assert "file" not in offset
