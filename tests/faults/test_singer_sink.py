"""Targets as sinks, while the task's process is killed: each record is in the target, and no target outlives its task.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: while a target starts, in the middle
of its records, between its STATE and the commit of the offsets.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from sluiceway.singer_plugins.programs import plugins_in
from support.database import HOST, PASSWORD, USER
from support.eventually import LIMIT, eventually
from support.faults.rows import NewRow
from support.jdbc_sink import STATIC_MEMBER, TaskProcess
from support.kafka import Kafka
from support.postgres import PostgresServer
from support.singer_taps import installed, is_running, program_of
from support.singer_targets import fake_target

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
RECORDS = 2000  # for each kill
FLUSH, PUT = 500, 500  # records of a flush, and at most of one put, which may come on top
LONGEST = 2.0  # seconds from the first new record to the kill
TARGET_DIES_WITHIN = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class Target:
    """A target. ``found`` returns how often it has each number. One that does not append has each record once."""

    program: Path
    settings: dict[str, Any]
    found: Callable[[], Counter[int]]
    appends: bool = True


Make = Callable[[pytest.FixtureRequest, Path, str], Target]


def program(requirement: str, name: str, folder: Path) -> Path:
    [plugin] = plugins_in([installed(requirement)])
    return program_of(folder, plugin.command(name))


def fake(_request: pytest.FixtureRequest, folder: Path, _topic: str) -> Target:
    out = folder / "out.jsonl"

    def found() -> Counter[int]:
        lines = map(json.loads, out.read_text().splitlines()) if out.exists() else ()
        return Counter(each["record"]["id"] for each in lines if each["type"] == "RECORD")

    return Target(fake_target(), {"out": str(out), "sleep": 0.001}, found)


def jsonl(_request: pytest.FixtureRequest, folder: Path, topic: str) -> Target:
    out = folder / f"{topic}.jsonl"

    def found() -> Counter[int]:
        return Counter(json.loads(line)["id"] for line in out.read_text().splitlines()) if out.exists() else Counter()

    settings = {"destination_path": str(folder), "do_timestamp_file": False}
    return Target(program("target-jsonl==0.1.4", "target-jsonl", folder), settings, found)


def of_postgres(request: pytest.FixtureRequest, folder: Path, topic: str) -> Target:
    server: PostgresServer = request.getfixturevalue("postgres")

    def found() -> Counter[int]:
        if server.execute("select to_regclass('public.items')") == [(None,)]:
            return Counter()
        return Counter(dict(server.execute("select id, count(*) from items group by id")))

    settings = {
        **{"host": HOST, "port": server.port, "user": USER, "password": PASSWORD, "database": "postgres"},
        **{"default_target_schema": "public", "add_record_metadata": False, "activate_version": False},
        "stream_maps": {topic: {"__alias__": "items"}},
    }
    return Target(program("meltanolabs-target-postgres==0.8.1", "target-postgres", folder), settings, found, appends=False)


TARGETS: dict[str, Make] = {"fake target": fake, "target-jsonl": jsonl, "meltanolabs-target-postgres": of_postgres}


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def kill(task: TaskProcess) -> float:
    """Kill a task's process, and return the seconds until its target has ended, too."""
    targets = psutil.Process(task.pid).children(recursive=True)
    os.kill(task.pid, signal.SIGKILL)
    started = time.monotonic()
    eventually(lambda: not any(is_running(each.pid) for each in targets), within=TARGET_DIES_WITHIN, what="the end of the target")
    return time.monotonic() - started


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS)
def test_killed_many_times_each_record_is_in_the_target(
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    request: pytest.FixtureRequest,
    row: NewRow,
    chance: random.Random,
    tmp_path: Path,
    target: str,
) -> None:
    kafka = Kafka(kafka_bootstrap)
    topic = kafka.create(unique("singer-sink-fault"))
    made = TARGETS[target](request, tmp_path, topic)
    expected = "0 lost; at most a flush twice for each kill" if made.appends else "0 lost, none twice"
    result = row(f"2: SingerSink with {target}, {KILLS} kills -9 of the task", f"{expected}; the target dies within 2 s")
    config = {
        "name": f"sink-{topic}",
        "connector.class": "SingerSink",
        "topics": topic,
        "singer.target": str(made.program),
        "singer.config": json.dumps(made.settings),
        "pk.mode": "record_value",
        "pk.fields": "id",
        "flush.size": str(FLUSH),
        "flush.interval.ms": "1000",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "key.converter": "StringConverter",
        "consumer.override.max.poll.records": str(PUT),
        **STATIC_MEMBER,
    }
    total, longest = 0, 0.0
    for _ in range(KILLS):
        produce(kafka_bootstrap, topic, range(total, total + RECORDS))
        total += RECORDS
        started, before = time.monotonic(), made.found().total()
        with TaskProcess(config, kafka_bootstrap) as task:
            eventually(lambda: made.found().total() > before or not task.alive, what="new records")  # noqa: B023
            assert task.alive
            result.recovered(time.monotonic() - started)
            time.sleep(chance.uniform(0, LONGEST))  # where to kill
            longest = max(longest, kill(task))
    with TaskProcess(config, kafka_bootstrap, bounded=True) as task:
        task.finish(within=600)
    found = made.found()
    result.lost, result.duplicated = len(set(range(total)) - set(found)), found.total() - len(found)
    result.seen = f"{found.total()} rows of {total} records; the target ended after {longest:.2f} s at most"
    assert set(found) == set(range(total))
    assert result.duplicated <= ((FLUSH + PUT) * KILLS if made.appends else 0)
    assert kafka.committed(f"connect-sink-{topic}")[topic, 0] == total


def produce(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for each in numbers:
        producer.produce(topic, json.dumps({"id": each, "name": f"n{each}", "total": each / 4}))
    assert producer.flush(LIMIT) == 0
