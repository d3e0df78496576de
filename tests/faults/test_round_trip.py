"""Unusual records through a sink, a file and a source: they arrive byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.faults.cluster import Cluster, StoredRecord
from support.faults.connectors import KEEPING_SINK, KEPT_SOURCE, kept
from support.faults.rows import NewRow, Row
from support.faults.worker_group import WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MEBIBYTE = 1 << 20
Header = tuple[str, "bytes | None"]
RECORDS: dict[str, tuple[bytes | None, bytes | None, list[Header], int]] = {
    "tombstone": (b"key", None, [], 1_700_000_000_000),
    "null key": (None, b"value", [], 1_700_000_000_001),
    "nothing at all": (None, None, [], 1_700_000_000_002),
    "0 bytes": (b"", b"", [("", b"")], 1_700_000_000_003),
    "1 MiB": (b"large", bytes(number % 251 for number in range(MEBIBYTE)), [], 1_700_000_000_004),
    "no timestamp": (b"timeless", b"value", [], -1),
    "the first moment": (b"early", b"value", [], 1),
    "no text": (b"\xff\xfe\x00", b"\x80\x00\xc3\x28", [("raw", b"\x00\xff")], 1_700_000_000_005),
    "headers": (b"key", b"value", [("one", b"1"), ("two", None), ("one", b"again"), ("\u00e4", b"\xc3\xa4")], 1_700_000_000_006),
}
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
CONVERTERS = dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTES)


def send_all(group: WorkerGroup, topic: str) -> None:
    producer = Producer({"bootstrap.servers": group.address, "message.max.bytes": 2 * MEBIBYTE})
    for key, value, headers, timestamp in RECORDS.values():
        producer.produce(topic, value, key, headers=list[tuple[str, str | bytes | None]](headers), timestamp=timestamp)
    assert producer.flush(30) == 0


def compare(row: Row, before: Sequence[StoredRecord], after: Sequence[StoredRecord]) -> None:
    """Compare records; one without a timestamp gets one when it is written again, as in Connect."""
    pairs = list(zip(before, after, strict=False))
    equal = [one.content[:3] == other.content[:3] and one.timestamp in (-1, other.timestamp) for one, other in pairs]
    row.seen = f"{sum(equal)} of {len(RECORDS)} equal"
    row.lost, row.duplicated = max(0, len(before) - len(after)), max(0, len(after) - len(before))
    assert [each.timestamp for each in before] == [timestamp for *_, timestamp in RECORDS.values()]
    assert dict(zip(RECORDS, equal, strict=True)) == dict.fromkeys(RECORDS, True)
    assert len(before) == len(after)


@pytest.mark.matrix(40)
def test_unusual_records_arrive_byte_for_byte(
    group: WorkerGroup, cluster: Cluster, row: NewRow, tmp_path: Path, own_connectors: None
) -> None:
    made = row(", ".join(RECORDS), "each equal in key, value, headers and timestamp")
    size = str(2 * MEBIBYTE)
    sent, arrived = (
        cluster.create(f"{group.name}-{name}", max_message_bytes=size, retention_ms="-1") for name in ("sent", "arrived")
    )
    send_all(group, sent)
    file = str(tmp_path / "kept")
    group.herder.create(f"{group.name}-out", {"connector.class": KEEPING_SINK, "topics": sent, "file": file, **CONVERTERS})
    larger = {"producer.override.max.request.size": size}
    group.herder.create(
        f"{group.name}-in", {"connector.class": KEPT_SOURCE, "topic": arrived, "file": file, **CONVERTERS, **larger}
    )
    for each in ("out", "in"):
        group.batch(f"{group.name}-{each}")
    before, after = cluster.messages(sent), cluster.messages(arrived)
    compare(made, before, after)
    timestamps = [each.timestamp for each in kept(Path(file))]
    assert timestamps == [None if timestamp < 0 else timestamp for *_, timestamp in RECORDS.values()]


@pytest.mark.matrix(40)
def test_unusual_records_reach_the_dead_letter_queue_unchanged(
    group: WorkerGroup, cluster: Cluster, row: NewRow, tmp_path: Path
) -> None:
    """The verifiable sink rejects all of them: they have no number."""
    made = row("the same, refused", "each in the dead letter queue, equal in key, value, headers and timestamp")
    size = str(2 * MEBIBYTE)
    sent, dlq = (cluster.create(f"{group.name}-{name}", max_message_bytes=size, retention_ms="-1") for name in ("sent", "dead"))
    send_all(group, sent)
    key = "errors.deadletterqueue.topic."
    tolerant = {"errors.tolerance": "all", f"{key}name": dlq, f"{key}replication.factor": "1"}
    larger = {"producer.override.max.request.size": size}
    name = group.sink(sent, tmp_path / "results", **tolerant, **CONVERTERS, **larger)
    group.batch(name)
    before, after = cluster.messages(sent), cluster.messages(dlq)
    compare(made, before, after)
