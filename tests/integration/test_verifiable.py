"""The verifiable and mock connectors on a real broker, checked by the verifiable checker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.connectors.verifiable.checker import Verdict, check
from sluiceway.connectors.verifiable.numbering import TopicRecord, from_topic
from sluiceway.connectors.verifiable.results import from_file
from sluiceway.storage.model import State
from support.engine import Offsets, RunningTask
from support.eventually import LIMIT, eventually
from support.faults.worker_group import SINK, SOURCE, read

pytestmark = pytest.mark.kafka

MOCK_SOURCE = "sluiceway.connectors.mock.source.MockSourceConnector"
MOCK_SINK = "sluiceway.connectors.mock.sink.MockSinkConnector"

Names = Callable[[str], str]


@pytest.fixture
def worker(kafka_bootstrap: str) -> dict[str, str]:
    return {"bootstrap.servers": kafka_bootstrap, "offset.flush.interval.ms": "200"}


def new_topic(bootstrap: str, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT)
    return name


def judged(bootstrap: str, topic: str, sent: int) -> Verdict:
    return check(
        from_topic(TopicRecord(topic, 0, message.key, message.value) for message in read(bootstrap, topic)), sent={0: sent}
    )


@pytest.mark.parametrize(
    "form",
    [{}, {"complete.record.data": "true"}, {"complete.record.data": "true", "record.size": "100", "record.key": "none"}],
    ids=["number", "complete", "filled"],
)
@pytest.mark.parametrize("schemas", ["true", "false"])
def test_each_number_is_copied_from_source_to_file_once(
    worker: dict[str, str], unique: Names, tmp_path: Path, form: dict[str, str], schemas: str
) -> None:
    topic = new_topic(worker["bootstrap.servers"], unique("numbers"))
    converters = {
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": schemas,
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": schemas,
    }
    source = {"name": unique("source"), "connector.class": SOURCE, "topic": topic, "records.max": "1500", **form, **converters}
    sink = {"name": unique("sink"), "connector.class": SINK, "topics": topic, "file": str(tmp_path / "out"), **converters}
    for config in (source, sink):
        with RunningTask(config, worker, bounded=True) as task:
            result = task.join()
            assert not result.failed, result.trace
    assert judged(worker["bootstrap.servers"], topic, 1499).exactly_once
    verdict = check(from_file(tmp_path / "out"), sent={0: 1499})
    assert verdict.exactly_once, verdict


def test_a_failed_and_restarted_task_leaves_no_gap(worker: dict[str, str], unique: Names) -> None:
    topic = new_topic(worker["bootstrap.servers"], unique("numbers"))
    config = {
        "name": unique("source"),
        "connector.class": MOCK_SOURCE,
        "topic": topic,
        "records.max": "1000",
        "failure.in": "poll",
        "failure.after.records": "400",
        "batch.size": "30",
    }
    offsets = Offsets()
    for _ in range(2):
        with RunningTask(config, worker, offsets=offsets, bounded=True) as task:
            result = task.join()
            assert result.failed
            assert "Mock failure in poll after 400 records" in str(result.trace)
    with RunningTask(config, worker, offsets=offsets, bounded=True) as task:
        assert not task.join().failed
    assert judged(worker["bootstrap.servers"], topic, 999).exactly_once


def test_only_tolerated_bad_records_are_missing(worker: dict[str, str], unique: Names) -> None:
    topic = new_topic(worker["bootstrap.servers"], unique("numbers"))
    config = {
        "name": unique("source"),
        "connector.class": MOCK_SOURCE,
        "topic": topic,
        "records.max": "1000",
        "bad.records.share": "0.1",
        "errors.tolerance": "all",
    }
    with RunningTask(config, worker, bounded=True) as task:
        assert not task.join().failed
    verdict = judged(worker["bootstrap.servers"], topic, 999)
    assert (verdict.lost, verdict.duplicated, verdict.reordered) == (100, 0, 0)


def test_a_sink_with_failing_commits_writes_each_record(worker: dict[str, str], unique: Names, tmp_path: Path) -> None:
    topic = new_topic(worker["bootstrap.servers"], unique("numbers"))
    source = {"name": unique("source"), "connector.class": SOURCE, "topic": topic, "records.max": "500"}
    with RunningTask(source, worker, bounded=True) as task:
        assert not task.join().failed
    sink = {
        "name": unique("sink"),
        "connector.class": MOCK_SINK,
        "topics": topic,
        "file": str(tmp_path / "out"),
        "failure.in": "commit",
        "failure.times": "2",
    }
    with RunningTask(sink, worker) as task:
        task.wait_for(State.RUNNING)
        eventually(lambda: check(from_file(tmp_path / "out"), sent={0: 499}).lost == 0, what="all records in the file")
        assert not task.stop().failed
    assert check(from_file(tmp_path / "out"), sent={0: 499}).lost == 0
