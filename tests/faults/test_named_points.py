"""A source whose machine dies at a named point in the processing of a batch, at least once and exactly once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.checker import check
from support.eventually import eventually
from support.faults.crashes import CRASHING_SOURCE, Point
from support.faults.guarantee import Guarantee
from support.faults.rows import NewRow
from support.faults.worker_group import BATCH, POLL, RATE, Progress, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ALO, EOS = Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE
CASES = [
    (1, Point.POLLED, ALO),
    (1, Point.POLLED, EOS),
    (2, Point.SENT, ALO),
    (2, Point.SENT, EOS),
    (2, Point.ACKNOWLEDGED, ALO),
    (3, Point.COMMITTED, ALO),
    (3, Point.COMMITTED, EOS),
]


@pytest.mark.parametrize(
    ("point", "guarantee"),
    [
        pytest.param(point, guarantee, marks=pytest.mark.matrix(number), id=f"{guarantee.name.lower()}-{point.name.lower()}")
        for number, point, guarantee in CASES
    ],
)
def test_a_source_killed_at_a_named_point_continues_after_its_last_commit(
    group: WorkerGroup, guarantee: Guarantee, row: NewRow, tmp_path: Path, own_connectors: None, point: Point
) -> None:
    made = row(f"kill -9 of all processes; the batch is {point.value}", guarantee.value)
    transactions = {"transaction_boundary": "interval", "crash_bootstrap": group.address} if guarantee is EOS else {}
    crash = tmp_path / "crash"
    topic = group.source(connector_class=CRASHING_SOURCE, crash_file=str(crash), **transactions)
    first = group.driver()
    progress = Progress(group.address, topic)
    progress.more(2 * RATE, driver=first)
    crash.write_text(point.name)
    eventually(lambda: not first.is_running(), what=f"the crash of {first.name}\n{first.log_tail(20)}")
    died = time.monotonic()
    assert not crash.exists(), "it died of something else"
    second = group.driver()
    progress.more(2 * RATE, driver=second)
    made.recovered(time.monotonic() - died)
    progress.close()
    group.drain(second)
    verdict = group.verdict(topic)
    made.judge(verdict)
    # After a commit, only records sent during it are repeated.
    guarantee.check(verdict, faults=1, batch=2 * POLL if point is Point.COMMITTED else BATCH)
    if guarantee is EOS and point is Point.SENT:
        aborted = check(group.seen(topic, "read_uncommitted")).duplicated
        made.seen += f"; {aborted} of a transaction that was aborted"
        assert aborted > 0
