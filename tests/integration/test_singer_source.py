"""SingerSource on a real broker: columns, offsets, the end of a run, a killed task, and an installed tap in plugin.path."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from sluiceway.connectors.singer import SingerSourceConnector
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import Offsets, RunningTask, batch_forms
from support.eventually import eventually
from support.kafka import Kafka, worker_for
from support.singer_taps import PARTITION, fake_config, is_running
from support.source_process import SourceProcess, task_config

pytestmark = pytest.mark.kafka

JSON = {
    "key.converter": "JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
}


@pytest.fixture
def stream(kafka: Kafka, unique: Callable[[str], str]) -> str:
    name = unique("stream")
    kafka.create(name)
    return name


def config_of(stream: str, tap: dict[str, Any], **more: str) -> dict[str, str]:
    return {**fake_config(tap, **more), "name": stream, **JSON}


def ids(kafka: Kafka, topic: str, count: int) -> list[int]:
    return [json.loads(value)["id"] for value in kafka.values(topic, count)]


def state_in(offsets: Offsets, connector: str) -> Any:
    [offset] = offsets.get(connector, [PARTITION])
    return None if offset is None else json.loads(offset["state"])


def test_bounded_runs_end_with_the_tap_and_continue_from_its_state(
    kafka: Kafka, kafka_bootstrap: str, unique: Callable[[str], str], stream: str
) -> None:
    worker, offsets = worker_for(kafka_bootstrap, unique).raw, Offsets()
    for rows in (1000, 1500, 1500):
        config = config_of(stream, {"streams": {stream: {"rows": rows}}, "final": True}, poll_interval_ms="600000")
        with RunningTask(config, worker, offsets=offsets, bounded=True) as task:
            assert not task.join().failed
        assert state_in(offsets, stream) == {"bookmarks": {stream: {"id": rows - 1}}}
    assert ids(kafka, stream, 1502) == [*range(1000), *range(999, 1500), 1499]


def test_many_records_are_columns_with_and_without_states(
    kafka: Kafka, kafka_bootstrap: str, unique: Callable[[str], str], stream: str
) -> None:
    worker, offsets = worker_for(kafka_bootstrap, unique).raw, Offsets()
    config = config_of(stream, {"streams": {stream: {"rows": 20_000}}}, poll_interval_ms="600000")
    with RunningTask(config, worker, offsets=offsets) as task:
        eventually(lambda: kafka.count(stream) == 20_000)
        forms = batch_forms(stream)
        assert forms["columns"] >= 1
        assert not set(forms) - {"columns", "few-records"}
        task.stop()
    assert ids(kafka, stream, 20_000) == list(range(20_000))
    assert not offsets.stored


def test_a_failed_tap_fails_the_task_with_what_it_said_and_the_state_before(
    kafka: Kafka, kafka_bootstrap: str, unique: Callable[[str], str], stream: str
) -> None:
    worker, offsets = worker_for(kafka_bootstrap, unique).raw, Offsets()
    config = config_of(stream, {"streams": {stream: {"rows": 10}}, "state_every": 4, "exit": 2})
    with RunningTask(config, worker, offsets=offsets) as task:
        assert task.join().failed
        assert "fake_tap.py ended with exit code 2. Its last lines:\nINFO starts with state {}" in str(task.reports.trace)
    assert ids(kafka, stream, 10) == list(range(10))
    assert state_in(offsets, stream) == {"bookmarks": {stream: {"id": 7}}}


def test_a_paused_task_keeps_its_tap_and_goes_on(
    kafka: Kafka, kafka_bootstrap: str, unique: Callable[[str], str], stream: str
) -> None:
    tap = {"streams": {stream: {"rows": 1_000_000}}, "state_every": 100, "sleep": 0.01}
    with RunningTask(config_of(stream, tap), worker_for(kafka_bootstrap, unique).raw) as task:
        eventually(lambda: kafka.count(stream) > 0)
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        before = kafka.count(stream)
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: kafka.count(stream) > before)
        task.stop()
        count = kafka.count(stream)
    assert ids(kafka, stream, count) == list(range(count))


def test_a_tap_dies_with_a_killed_task_and_another_task_goes_on_from_the_state(
    kafka: Kafka, kafka_bootstrap: str, unique: Callable[[str], str], stream: str
) -> None:
    """The tap prints nothing for long after its first records, so that no broken pipe can end it."""
    tap = {"streams": {stream: {"rows": 200}}, "state_every": 100, "sleep": 600}
    more = {"offset.storage.partitions": "1", "offset.flush.interval.ms": "100"}
    worker = worker_for(kafka_bootstrap, unique, **more).raw
    with SourceProcess(task_config(SingerSourceConnector, config_of(stream, tap)), worker) as task:
        eventually(lambda: kafka.count(stream) == 100 and kafka.count(worker["offset.storage.topic"]) > 0)
        [process] = psutil.Process(task.pid).children(recursive=True)
        assert "fake_tap.py" in " ".join(process.cmdline())
        os.kill(task.pid, signal.SIGKILL)
        eventually(lambda: not is_running(process.pid), within=2)
    config = config_of(stream, {**tap, "sleep": 0, "final": True}, poll_interval_ms="600000")
    with SourceProcess(task_config(SingerSourceConnector, config), worker):
        eventually(lambda: kafka.count(stream) >= 201)
    assert ids(kafka, stream, kafka.count(stream)) == [*range(100), *range(99, 200)]
