"""Records that no converter reads, no transform takes or the sink refuses: one of many, and all of them."""

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
from support.faults.world import RATE, Progress, World

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
GROWTH = 48 << 20  # bytes: far less than what is still to come, more than what allocators keep


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
def test_one_bad_record_of_ten_thousand_is_a_dead_letter_and_the_rest_arrives_in_order(
    place: World, cluster: Cluster, row: NewRow, tmp_path: Path
) -> None:
    made = row("1 bad record of 10,000 at converter, transform and put", "0 lost, 0 duplicated, 3 dead letters that say why")
    topic, letters, file = cluster.create(f"{place.name}-mixed"), f"{place.name}-dead", tmp_path / "results"
    bad = {5000 + 10_000 * number: stage for number, stage in enumerate(BAD)}
    cluster.send(topic, good(range(5000)))
    for start, stage in bad.items():
        cluster.send(topic, [('"a key"', BAD[stage])])
        cluster.send(topic, good(range(start, start + 10_000 - (5000 if start == max(bad) else 0))))
    name = place.sink(topic, file, **CAST, **dead_letters(letters))
    place.batch(name)
    verdict = check(from_file(file), sent={0: 29_999})
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    told = cluster.messages(letters)
    offsets = [str(start + number) for number, start in enumerate(bad)]
    assert [each.header(f"{CONTEXT}stage") for each in told] == list(BAD)
    assert [each.header(f"{CONTEXT}offset") for each in told] == offsets
    assert [(each.key, each.value) for each in told] == [(b'"a key"', value) for value in BAD.values()]
    assert cluster.committed(name, topic) == 30_003


@pytest.mark.matrix(21)
def test_nothing_but_bad_records_neither_grows_nor_stalls_another_connector(
    place: World, cluster: Cluster, row: NewRow, tmp_path: Path
) -> None:
    bad, filling = 90_000, "x" * 2000  # 180 MB
    made = row(f"{bad:,} records, all bad (converter, transform, put)", "each a dead letter, once; no growth")
    topic, letters = cluster.create(f"{place.name}-bad"), f"{place.name}-dead"
    cluster.create(letters)
    filled = f',"filling":"{filling}"}}'.encode()  # behind what is wrong with each
    values = {stage: value.removesuffix(b"}") + filled for stage, value in BAD.items()}
    stages = list(values)
    cluster.send(topic, ((str(number), values[stages[number % 3]]) for number in range(bad)))
    name = place.sink(topic, tmp_path / "results", **CAST, **dead_letters(letters))
    driver = place.driver(name)
    # By then the consumer's queue has been full, and two thirds of the records are still to come.
    third = bad // 3
    eventually(lambda: cluster.committed(name, topic) >= third, within=120, what=f"dead letters\n{driver.log_tail(20)}")
    with Memory(driver) as memory:
        before = memory.start
        other = place.source()
        place.driver()
        place.running()
        progress = Progress(place.address, other)
        progress.more(RATE, within=60)
        seconds = progress.more(5 * RATE, within=60)
        progress.close()
        eventually(lambda: cluster.committed(name, topic) == bad, within=120, what=f"the last offset\n{driver.log_tail(20)}")
        assert memory.same_processes()
    grown = memory.peak - before
    told = cluster.messages(letters)
    verdict = check((NumberedRecord(0, int(each.key or b"-1")) for each in told), sent={0: bad - 1})
    made.judge(verdict)
    made.seen += (
        f" in the dead letter topic; grown by {grown / 2**20:.0f} MiB; the source made {5 * RATE / seconds:.0f} records/s"
    )
    # Each batch goes to the sink as a whole, so what its converters refuse is told of first: no order between stages.
    assert verdict.lost == verdict.duplicated == 0, verdict
    assert all(each.header(f"{CONTEXT}stage") == stages[int(each.key or b"-1") % 3] for each in told)
    assert not (tmp_path / "results").read_text()
    assert place.states(name) == ("RUNNING", ["RUNNING"])
    assert grown < GROWTH
    assert 5 * RATE / seconds > 0.8 * RATE


@pytest.mark.matrix(21)
@STAGES
def test_without_tolerance_a_sink_stops_at_the_bad_record_and_goes_on_there(
    place: World, cluster: Cluster, row: NewRow, tmp_path: Path, stage: str
) -> None:
    made = row(f"bad record, errors.tolerance=none ({stage})", "FAILED at its offset; then 0 lost, 0 duplicated")
    topic, letters, file = cluster.create(f"{place.name}-strict"), f"{place.name}-dead", tmp_path / "results"
    cluster.send(topic, good(range(1000)))
    cluster.send(topic, [(None, BAD[stage])])
    cluster.send(topic, good(range(1000, 2000)))
    name = place.sink(topic, file, **CAST)
    place.batch(name)
    assert place.failed(name)
    stopped = check(from_file(file))
    assert stopped.total in ((1000,) if stage != "TASK_PUT" else range(1001)), stopped
    assert stopped.lost == stopped.duplicated == stopped.reordered == 0, stopped
    assert cluster.committed(name, topic) == stopped.total
    place.herder.put_config(name, {**place.herder.info(name).config, **dead_letters(letters)})
    place.batch(name)
    verdict = check(from_file(file), sent={0: 1999})
    made.judge(verdict)
    made.seen += f"; stopped after {stopped.total}"
    assert verdict.exactly_once, verdict
    assert [each.value for each in cluster.messages(letters)] == [BAD[stage]]


@pytest.mark.matrix(21)
@pytest.mark.parametrize("guarantee", list(Guarantee), ids=lambda guarantee: guarantee.name.lower())
def test_bad_records_of_a_source_are_dead_letters_too(place: World, cluster: Cluster, row: NewRow, guarantee: Guarantee) -> None:
    made = row(f"source, 1 bad record of 100 ({guarantee.name.lower()})", "0 lost, 0 duplicated, letters included")
    topic, letters = f"{place.name}-numbers", f"{place.name}-dead"
    bad = {"bad.records.share": "0.01", "records.max": "2000", "batch.size": "50"}
    cluster.create(topic)
    place.herder.create(place.name, {"connector.class": MOCK_SOURCE, "topic": topic, **bad, **dead_letters(letters)})
    place.batch(place.name)
    written = list(place.seen(topic))
    source_offset = "__sluiceway.errors.source.offset"
    left_out = [NumberedRecord(0, json.loads(each.header(source_offset) or "{}")["seqno"]) for each in cluster.messages(letters)]
    assert len(left_out) == 20
    assert check(written).reordered == 0
    verdict = check((NumberedRecord(each.task, each.seqno) for each in sorted(written + left_out)), sent={0: 1999})
    made.judge(verdict)
    assert verdict.exactly_once, verdict


@pytest.mark.matrix(21)
@pytest.mark.parametrize("guarantee", list(Guarantee), ids=lambda guarantee: guarantee.name.lower())
def test_without_tolerance_a_source_stops_at_the_bad_record(
    place: World, cluster: Cluster, row: NewRow, guarantee: Guarantee
) -> None:
    made = row(
        f"source, bad record, errors.tolerance=none ({guarantee.name.lower()})", "FAILED, nothing after it, offset before it"
    )
    topic = cluster.create(f"{place.name}-numbers")
    bad = {"bad.records.share": "0.001", "records.max": "2000", "batch.size": "300"}
    place.herder.create(place.name, {"connector.class": MOCK_SOURCE, "topic": topic, **bad})
    place.batch(place.name)
    assert place.failed()
    verdict = check(place.seen(topic))
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    assert verdict.total <= 999
    if guarantee is Guarantee.AT_LEAST_ONCE:
        assert verdict.total == 999, "what came before it in its batch is sent"
    [(_, offset)] = place.stored_offsets()
    assert offset["seqno"] == verdict.total - 1
