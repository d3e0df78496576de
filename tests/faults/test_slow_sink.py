"""A sink that takes a record a second from a topic full of them: no memory, no repeats, no harm to others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file

from support.eventually import eventually
from support.faults.feed import Feed
from support.faults.processes import resident
from support.faults.rows import NewRow
from support.faults.world import RATE, Progress, World

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MOCK_SINK = "sluiceway.connectors.mock.sink.MockSinkConnector"
BACKLOG, FILLING = 200_000, 1000  # 200 MB, more than the consumer may hold
GROWTH = 96 << 20  # bytes: the consumer's queue (64 MB) and what allocators keep


@pytest.fixture
def feed(place: World) -> Iterator[Feed]:
    with Feed(place.address, f"{place.name}-backlog", rate=0, filling=FILLING) as made:
        made.send(BACKLOG)
        made.finish()
        yield made


def test_a_slow_sink_neither_grows_nor_repeats_nor_stalls_another_connector(
    place: World, feed: Feed, row: NewRow, tmp_path: Path
) -> None:
    made = row("34: sink at 1 record/s, 200 MB waiting", "RUNNING, no growth, no repeats; a source beside it at full rate")
    file, name = tmp_path / "results", f"{place.name}-slow"
    config = {"connector.class": MOCK_SINK, "topics": feed.topic, "file": str(file), "throughput": "1"}
    place.herder.create(name, {**config, "consumer.override.max.poll.records": "2"})
    slow = place.driver(name)
    place.running(name)
    eventually(lambda: check(from_file(file)).total >= 5, within=60, what=f"5 records\n{slow.log_tail(30)}")
    before = resident(slow)
    topic = place.source()
    place.driver()
    place.running()
    progress = Progress(place.address, topic)
    progress.more(5 * RATE, within=60)
    seconds = progress.more(10 * RATE, within=60)
    progress.close()
    written = check(from_file(file)).total
    eventually(lambda: check(from_file(file)).total >= written + 10, within=60, what="10 more records")
    now = resident(slow)
    verdict = check(from_file(file))
    made.judge(verdict)
    made.seen += f"; {before >> 20} MiB, then {now >> 20}; the source made {10 * RATE / seconds:.0f} records/s"
    assert place.states(name) == ("RUNNING", ["RUNNING"])
    assert verdict.exactly_once, verdict
    assert now - before < GROWTH
    assert 10 * RATE / seconds > 0.8 * RATE
