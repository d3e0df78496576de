"""Source tasks on a real broker: stored offsets across restarts, kills and pauses, and records Kafka rejects."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SourceRecord
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import Offsets, RunningTask
from support.engine_connectors import SOURCE, file_source, lines, script
from support.eventually import LIMIT, eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]


def test_a_restarted_source_continues_at_its_stored_offset(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source, offsets = tmp_path / "in", Offsets()
    for number in range(3):
        with source.open("a") as out:
            out.write(f"{number}\n")
        with RunningTask(file_source(name, topic, source), kafka.worker(), offsets=offsets, bounded=True) as task:
            assert task.join().records == 1
    assert kafka.values(topic, 3) == ["0", "1", "2"]


def _run_source_until_killed(config: dict[str, str], worker: dict[str, str], log: str) -> None:
    class Logged(Offsets):
        def put(self, connector: str, offsets: Any) -> None:
            with Path(log).open("a") as out:
                out.write(json.dumps(offsets[-1][1]) + "\n")

    with RunningTask(config, worker, offsets=Logged()) as task:
        task.join(within=600)


def test_a_killed_source_loses_nothing_and_repeats_only_records_after_its_last_commit(
    kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    source, log = tmp_path / "in", tmp_path / "commits"
    written = [f"line {number:07d}" for number in range(400_000)]
    source.write_text("".join(f"{line}\n" for line in written))
    config, worker = file_source(name, topic, source), kafka.worker(offset_flush_interval_ms="50")
    victim = multiprocessing.get_context("spawn").Process(target=_run_source_until_killed, args=(config, worker, str(log)))
    victim.start()
    eventually(lambda: len(lines(log)) >= 2)
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    victim.join(LIMIT)
    position = json.loads(lines(log)[-1])["position"]
    produced = kafka.end(topic)
    offsets = Offsets()
    offsets.put(name, [({"filename": str(source)}, {"position": position})])
    with RunningTask(config, worker, offsets=offsets, bounded=True) as task:
        again = task.join().records
    assert position % len("line 0000000\n") == 0
    assert position // len("line 0000000\n") + again == len(written)
    everything = Counter(kafka.values(topic, produced + again))
    assert set(everything) == set(written)
    assert position // len("line 0000000\n") <= produced, "an offset was stored ahead of its record"
    repeated = [line for line, count in everything.items() if count > 1]
    assert all(line >= written[position // len("line 0000000\n")] for line in repeated)


def test_offsets_are_stored_although_records_come_faster_than_kafka_takes_them(kafka: Kafka, topic: str, name: str) -> None:
    records = [SourceRecord({"p": 1}, {"position": number}, topic, value="x" * 1000) for number in range(100)]
    left = script(name, *[records] * 2000)
    config = {"name": name, "connector.class": SOURCE, "topic": topic}
    with RunningTask(config, kafka.worker(offset_flush_interval_ms="10", offset_flush_timeout_ms="1")) as task:
        eventually(lambda: len(task.offsets.puts) >= 2 or not left.steps)
        assert left.steps, "no offset was stored before the source had nothing left"


def test_a_paused_source_stops_and_resumes_without_a_gap(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("a\n")
    with RunningTask(file_source(name, topic, source), kafka.worker()) as task:
        eventually(lambda: kafka.end(topic) == 1)
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        assert task.offsets.get(name, [{"filename": str(source)}]) == [{"position": 2}]
        with source.open("a") as out:
            out.write("b\n")
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: kafka.end(topic) == 2)
    assert kafka.values(topic, 2) == ["a", "b"]


def test_a_record_over_the_producers_limit_fails_the_task(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("small\n" + "x" * 1_500_000 + "\n")
    with RunningTask(file_source(name, topic, source), kafka.worker()) as task:
        result = task.join()
    assert "Unrecoverable exception from producer send callback" in (result.trace or "").splitlines()[0]
    assert task.offsets.get(name, [{"filename": str(source)}]) == [{"position": 6}]
    config = file_source(name, topic, source, producer_override_max_request_size="2000000")
    with RunningTask(config, kafka.worker(), offsets=task.offsets) as again:
        result = again.join()
    assert "MSG_SIZE_TOO_LARGE" in (result.trace or ""), "the topic's own limit was not reported"
    assert again.offsets.get(name, [{"filename": str(source)}]) == [{"position": 6}]


def test_a_source_reads_its_stored_offsets(kafka: Kafka, topic: str, name: str) -> None:
    offsets, found = Offsets(), []
    offsets.put(name, [({"file": "p"}, {"position": 7})])
    script(name, on_start=lambda task: found.append(task.context.offset_storage_reader.offsets([{"file": "p"}, {"file": "q"}])))
    config = {"name": name, "connector.class": SOURCE, "topic": topic}
    with RunningTask(config, kafka.worker(), offsets=offsets, bounded=True) as task:
        task.join()
    assert found == [[{"position": 7}, None]]
