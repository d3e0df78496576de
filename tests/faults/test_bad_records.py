"""Records that a converter, a transform or the sink rejects: one of many, and all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.numbering import NumberedRecord
from sluiceway.connectors.verifiable.results import from_file
from support.eventually import eventually
from support.faults.cluster import Cluster
from support.faults.guarantee import Guarantee
from support.faults.memory import Memory
from support.faults.rows import NewRow
from support.faults.worker_group import RATE, Progress, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MOCK_SOURCE = "sluiceway.connectors.mock.source.MockSourceConnector"
BAD = {
    "VALUE_CONVERTER": b"{not JSON",
    "TRANSFORMATION": b'{"task":0,"seqno":"not a number"}',
    "TASK_PUT": b'{"task":0}',
}
STAGES = pytest.mark.parametrize("stage", list(BAD))
CAST = {"transforms": "cast", "transforms.cast.type": "CastValue", "transforms.cast.spec": "seqno:int64"}
CONTEXT = "__connect.errors."
GROWTH = 48 << 20  # bytes: far less than the remaining records, more than allocators retain


def dead_letters(topic: str) -> dict[str, str]:
    key = "errors.deadletterqueue."
    return {
        "errors.tolerance": "all",
        f"{key}topic.name": topic,
        f"{key}topic.replication.factor": "1",
        f"{key}context.headers.enable": "true",
    }


def good(numbers: range) -> Iterator[tuple[None, bytes]]:
    return ((None, b'{"task":0,"seqno":%d}' % number) for number in numbers)


@pytest.mark.matrix(21)
def test_one_bad_record_of_ten_thousand_goes_to_the_dead_letter_queue_and_the_rest_arrives_in_order(
    group: WorkerGroup, cluster: Cluster, row: NewRow, tmp_path: Path
) -> None:
    made = row(
        "1 bad record of 10,000 at converter, transform and put",
        "0 lost, 0 duplicated, 3 dead letter queue records with the cause",
    )
    topic, dlq, file = cluster.create(f"{group.name}-mixed"), f"{group.name}-dead", tmp_path / "results"
    bad = {5000 + 10_000 * number: stage for number, stage in enumerate(BAD)}
    cluster.send(topic, good(range(5000)))
    for start, stage in bad.items():
        cluster.send(topic, [('"a key"', BAD[stage])])
        cluster.send(topic, good(range(start, start + 10_000 - (5000 if start == max(bad) else 0))))
    name = group.sink(topic, file, **CAST, **dead_letters(dlq))
    group.batch(name)
    verdict = check(from_file(file), sent={0: 29_999})
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    found = cluster.messages(dlq)
    offsets = [str(start + number) for number, start in enumerate(bad)]
    assert [each.header(f"{CONTEXT}stage") for each in found] == list(BAD)
    assert [each.header(f"{CONTEXT}offset") for each in found] == offsets
    assert [(each.key, each.value) for each in found] == [(b'"a key"', value) for value in BAD.values()]
    assert cluster.committed(name, topic) == 30_003


@pytest.mark.matrix(21)
def test_only_bad_records_neither_use_more_memory_nor_stall_another_connector(
    group: WorkerGroup, cluster: Cluster, row: NewRow, tmp_path: Path
) -> None:
    bad, filling = 90_000, "x" * 2000  # 180 MB
    made = row(f"{bad:,} records, all bad (converter, transform, put)", "each in the dead letter queue, once; no growth")
    topic, dlq = cluster.create(f"{group.name}-bad"), f"{group.name}-dead"
    cluster.create(dlq)
    filled = f',"filling":"{filling}"}}'.encode()  # after the bad part of each value
    values = {stage: value.removesuffix(b"}") + filled for stage, value in BAD.items()}
    stages = list(values)
    cluster.send(topic, ((str(number), values[stages[number % 3]]) for number in range(bad)))
    name = group.sink(topic, tmp_path / "results", **CAST, **dead_letters(dlq))
    driver = group.driver(name)
    # By then the consumer's queue has been full once, and two thirds of the records remain.
    third = bad // 3
    eventually(lambda: cluster.committed(name, topic) >= third, what=f"dead letter queue records\n{driver.log_tail(20)}")
    with Memory(driver) as memory:
        before = memory.start
        other = group.source()
        group.driver()
        group.running()
        progress = Progress(group.address, other)
        progress.more(RATE)
        seconds = progress.more(5 * RATE)
        progress.close()
        eventually(lambda: cluster.committed(name, topic) == bad, what=f"the last offset\n{driver.log_tail(20)}")
        assert memory.same_processes()
    grown = memory.peak - before
    found = cluster.messages(dlq)
    verdict = check((NumberedRecord(0, int(each.key or b"-1")) for each in found), sent={0: bad - 1})
    made.judge(verdict)
    made.seen += (
        f" in the dead letter topic; grown by {grown / 2**20:.0f} MiB; the source made {5 * RATE / seconds:.0f} records/s"
    )
    # put() gets a batch as a whole, so conversion errors are reported before the sink's: no order between stages.
    assert verdict.lost == verdict.duplicated == 0, verdict
    assert all(each.header(f"{CONTEXT}stage") == stages[int(each.key or b"-1") % 3] for each in found)
    assert not (tmp_path / "results").read_text()
    assert group.states(name) == ("RUNNING", ["RUNNING"])
    assert grown < GROWTH
    assert 5 * RATE / seconds > 0.8 * RATE


@pytest.mark.matrix(21)
@STAGES
def test_without_tolerance_a_sink_stops_at_the_bad_record_and_continues_there(
    group: WorkerGroup, cluster: Cluster, row: NewRow, tmp_path: Path, stage: str
) -> None:
    made = row(f"bad record, errors.tolerance=none ({stage})", "FAILED at its offset; then 0 lost, 0 duplicated")
    topic, dlq, file = cluster.create(f"{group.name}-strict"), f"{group.name}-dead", tmp_path / "results"
    cluster.send(topic, good(range(1000)))
    cluster.send(topic, [(None, BAD[stage])])
    cluster.send(topic, good(range(1000, 2000)))
    name = group.sink(topic, file, **CAST)
    group.batch(name)
    assert group.failed(name)
    stopped = check(from_file(file))
    assert stopped.total in ((1000,) if stage != "TASK_PUT" else range(1001)), stopped
    assert stopped.lost == stopped.duplicated == stopped.reordered == 0, stopped
    assert cluster.committed(name, topic) == stopped.total
    group.herder.put_config(name, {**group.herder.info(name).config, **dead_letters(dlq)})
    group.batch(name)
    verdict = check(from_file(file), sent={0: 1999})
    made.judge(verdict)
    made.seen += f"; stopped after {stopped.total}"
    assert verdict.exactly_once, verdict
    assert [each.value for each in cluster.messages(dlq)] == [BAD[stage]]


@pytest.mark.matrix(21)
@pytest.mark.parametrize("guarantee", list(Guarantee), ids=lambda guarantee: guarantee.name.lower())
def test_bad_records_of_a_source_go_to_the_dead_letter_queue(
    group: WorkerGroup, cluster: Cluster, row: NewRow, guarantee: Guarantee
) -> None:
    made = row(
        f"source, 1 bad record of 100 ({guarantee.name.lower()})", "0 lost, 0 duplicated, dead letter queue records included"
    )
    topic, dlq = f"{group.name}-numbers", f"{group.name}-dead"
    bad = {"bad.records.share": "0.01", "records.max": "2000", "batch.size": "50"}
    cluster.create(topic)
    group.herder.create(group.name, {"connector.class": MOCK_SOURCE, "topic": topic, **bad, **dead_letters(dlq)})
    group.batch(group.name)
    written = list(group.seen(topic))
    source_offset = "__sluiceway.errors.source.offset"
    left_out = [NumberedRecord(0, json.loads(each.header(source_offset) or "{}")["seqno"]) for each in cluster.messages(dlq)]
    assert len(left_out) == 20
    assert check(written).reordered == 0
    verdict = check((NumberedRecord(each.task, each.seqno) for each in sorted(written + left_out)), sent={0: 1999})
    made.judge(verdict)
    assert verdict.exactly_once, verdict


@pytest.mark.matrix(21)
@pytest.mark.parametrize("guarantee", list(Guarantee), ids=lambda guarantee: guarantee.name.lower())
def test_without_tolerance_a_source_stops_at_the_bad_record(
    group: WorkerGroup, cluster: Cluster, row: NewRow, guarantee: Guarantee
) -> None:
    made = row(
        f"source, bad record, errors.tolerance=none ({guarantee.name.lower()})", "FAILED, nothing after it, offset before it"
    )
    topic = cluster.create(f"{group.name}-numbers")
    bad = {"bad.records.share": "0.001", "records.max": "2000", "batch.size": "300"}
    group.herder.create(group.name, {"connector.class": MOCK_SOURCE, "topic": topic, **bad})
    group.batch(group.name)
    assert group.failed()
    verdict = check(group.seen(topic))
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    assert verdict.total <= 999
    if guarantee is Guarantee.AT_LEAST_ONCE:
        assert verdict.total == 999, "what came before it in its batch is sent"
    [(_, offset)] = group.stored_offsets()
    assert offset["seqno"] == verdict.total - 1
