"""SingerSink on a real broker: flushes and committed offsets, bad records, failed runs, pauses, and killed tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from sluiceway.metrics.registry import registry
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.eventually import eventually
from support.jdbc_sink import STATIC_MEMBER, TaskProcess
from support.kafka import Kafka
from support.singer_taps import is_running
from support.singer_targets import fake_sink, messages, records_in

pytestmark = pytest.mark.kafka

JSON = {"key.converter": "StringConverter", "value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}


@pytest.fixture
def topic(kafka: Kafka, unique: Callable[[str], str]) -> str:
    return kafka.create(unique("singer-sink"), partitions=2)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def config_of(topic: str, out: Path, target: dict[str, Any] | None = None, **more: str) -> dict[str, str]:
    return {**fake_sink(out, target, **more), **JSON, "name": f"sink-{topic}", "topics": topic}


def produce(kafka: Kafka, topic: str, numbers: range) -> None:
    for partition in (0, 1):
        kafka.produce(topic, *(json.dumps({"id": each}) for each in numbers if each % 2 == partition), partition=partition)


def ids(out: Path) -> list[int]:
    return sorted(each["id"] for each in records_in(messages(out)))


def committed(kafka: Kafka, topic: str) -> list[int]:
    found = kafka.committed(f"connect-sink-{topic}")
    return [found.get((topic, partition), 0) for partition in (0, 1)]


def test_bounded_runs_load_what_is_there_and_commit_it(kafka: Kafka, topic: str, out: Path) -> None:
    for numbers in (range(500), range(500, 700)):
        produce(kafka, topic, numbers)
        with RunningTask(config_of(topic, out), kafka.worker(), bounded=True) as task:
            assert not task.join().failed
    assert ids(out) == list(range(700))
    assert committed(kafka, topic) == [350, 350]


def test_flushes_are_due_by_time_and_the_last_one_comes_with_a_pause(kafka: Kafka, topic: str, out: Path) -> None:
    produce(kafka, topic, range(10))
    with RunningTask(config_of(topic, out, flush_interval_ms="200"), kafka.worker()) as task:
        eventually(lambda: committed(kafka, topic) == [5, 5])
        task.stop()
    with RunningTask(config_of(topic, out), kafka.worker()) as task:
        task.wait_for(State.RUNNING)
        produce(kafka, topic, range(10, 20))
        eventually(lambda: waiting(topic) == 10, what="the records in the task")
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        assert ids(out) == list(range(20))
        eventually(lambda: committed(kafka, topic) == [10, 10])


def waiting(topic: str) -> float:
    """Return how many records wait in the running task."""
    beans = [bean for bean in registry.beans() if bean.tags.get("connector") == f"sink-{topic}"]
    return max((float(bean.values["waiting-records"]) for bean in beans if "waiting-records" in bean.values), default=0.0)


def test_bad_records_go_to_the_dead_letter_queue(kafka: Kafka, topic: str, out: Path, unique: Callable[[str], str]) -> None:
    letters = unique("letters")
    errors = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    kafka.produce(topic, '{"id": 1}', "[2]", None, '"3"', '{"id": 4}')
    with RunningTask({**config_of(topic, out), **errors}, kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert ids(out) == [1, 4]
    assert committed(kafka, topic)[0] == 5
    assert [each.value() for each in kafka.read(letters, 3)] == [b"[2]", None, b'"3"']


def test_a_target_that_fails_fails_the_task_with_its_last_lines_and_nothing_is_committed(
    kafka: Kafka, topic: str, out: Path
) -> None:
    produce(kafka, topic, range(10))
    config = config_of(topic, out, {"exit": 3, "noise": 1}, flush_interval_ms="0", max_retries="1")
    with RunningTask(config, kafka.worker()) as task:
        assert task.join().failed
    trace = str(task.reports.trace)
    assert "fake_target.py ended with exit code 3. Its last lines:\nINFO noise 0" in trace
    assert "2 runs have failed in a row, more than max.retries allows" in trace
    assert committed(kafka, topic) == [0, 0]


def test_a_target_that_works_again_has_each_record(kafka: Kafka, topic: str, out: Path, tmp_path: Path) -> None:
    produce(kafka, topic, range(10))
    config = config_of(topic, out, {"once": str(tmp_path / "once")}, flush_interval_ms="0")
    with RunningTask(config, kafka.worker()):
        eventually(lambda: committed(kafka, topic) == [5, 5])
    assert ids(out) == list(range(10))


def test_a_target_dies_with_a_killed_task_and_another_task_loads_its_records(
    kafka: Kafka, kafka_bootstrap: str, topic: str, out: Path
) -> None:
    produce(kafka, topic, range(10))
    config = {**config_of(topic, out, {"sleep": 600}, flush_interval_ms="0"), **STATIC_MEMBER}
    with TaskProcess(config, kafka_bootstrap) as task:
        eventually(lambda: len(messages(out)) > 1 or not task.alive)
        [target] = [
            each for each in psutil.Process(task.pid).children(recursive=True) if "fake_target.py" in " ".join(each.cmdline())
        ]
        task.kill()
        eventually(lambda: not is_running(target.pid), within=5)
    before = len(ids(out))
    assert committed(kafka, topic) == [0, 0]
    with TaskProcess({**config, **fake_config(out)}, kafka_bootstrap, bounded=True) as task:
        task.finish()
    assert set(ids(out)) == set(range(10))
    assert len(ids(out)) == 10 + before
    assert committed(kafka, topic) == [5, 5]


def fake_config(out: Path) -> dict[str, str]:
    return {"singer.config": json.dumps({"out": str(out)})}
