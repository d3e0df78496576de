"""Taps as sources, while the task's process is killed: each record is in the topic, and no tap outlives its task.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: while a tap starts, between two of
its states, between Kafka's acknowledgement and the offset.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.connectors.singer import SingerSourceConnector
from sluiceway.singer_plugins.programs import use_singer_plugins
from support.database import HOST, PASSWORD, USER
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer
from support.singer_taps import fake_config, installed, is_running
from support.source_process import SourceProcess, task_config
from support.transactions import seen

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
ROWS = 200_000
LONGEST = 2.0  # seconds from the first new record to the kill
TAP_DIES_WITHIN = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class Source:
    """A tap with something to read.

    ``ids`` are those of the records, ``stream`` names them in the tap's messages, and ``select`` in its catalog, if that differs.
    ``folders`` have the tap.
    """

    ids: range
    stream: str
    config: dict[str, str]
    folders: list[Path] = field(default_factory=list)
    select: str = ""


Make = Callable[[pytest.FixtureRequest, Path], Source]
INCREMENTAL = json.dumps({"*": {"replication-method": "INCREMENTAL", "replication-key": "id"}})


def fake(_request: pytest.FixtureRequest, _folder: Path) -> Source:
    tap = {"streams": {"items": {"rows": ROWS}}, "state_every": 500, "sleep": 0.02}
    return Source(range(ROWS), "items", fake_config(tap))


def lines(_request: pytest.FixtureRequest, folder: Path) -> Source:
    """Files of lines: a state has the times of those that were read."""
    rows = ROWS // 10
    for number in range(10):
        with (folder / f"{number}.jsonl").open("w") as out:
            out.writelines(json.dumps({"id": number * rows + each, "name": f"n{each}"}) + "\n" for each in range(rows))
    settings = {"path": f"{folder}/*.jsonl", "stream_name": "items", "primary_keys": ["id"]}
    return Source(range(ROWS), "items", {"singer.tap": "tap-jsonl", **json_config(settings)}, [installed("tap-jsonl==0.3.1")])


def of_postgres(package: str, stream: str, **settings: Any) -> Make:
    def make(request: pytest.FixtureRequest, _folder: Path) -> Source:
        server: PostgresServer = request.getfixturevalue("postgres")
        config = {"host": HOST, "port": server.port, "user": USER, "password": PASSWORD, **settings}
        return Source(
            range(ROWS),
            stream,
            {"singer.tap": "tap-postgres", "singer.metadata": INCREMENTAL, **json_config(config)},
            [installed(package)],
        )

    return make


def of_mariadb(package: str) -> Make:
    def make(request: pytest.FixtureRequest, _folder: Path) -> Source:
        server: MariaDbServer = request.getfixturevalue("mariadb")
        config = {"host": HOST, "port": str(server.port), "user": USER, "password": PASSWORD, "filter_dbs": "lab"}
        given = {
            "singer.tap": "tap-mysql",
            "singer.metadata": INCREMENTAL,
            "singer.catalog.option": "properties",
            **json_config(config),
        }
        return Source(
            range(ROWS), "lab-items" if "pipelinewise" in package else "items", given, [installed(package)], select="lab-items"
        )

    return make


def json_config(settings: dict[str, Any]) -> dict[str, str]:
    return {"connector.class": "SingerSource", "singer.config": json.dumps(settings), "poll.interval.ms": "0"}


TAPS: dict[str, Make] = {
    "fake tap": fake,
    "tap-jsonl": lines,
    "meltanolabs-tap-postgres": of_postgres(
        "meltanolabs-tap-postgres==0.10.0", "public-items", database="postgres", filter_schemas=["public"]
    ),
    "pipelinewise-tap-postgres": of_postgres(
        "pipelinewise-tap-postgres==1.8.4", "public-items", dbname="postgres", filter_schemas="public"
    ),
    "pipelinewise-tap-mysql": of_mariadb("pipelinewise-tap-mysql==1.6.0"),
    "tap-mysql": of_mariadb("tap-mysql==1.17.7"),
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        server.execute("create table items (id int primary key, name text, at timestamptz default now())")
        server.execute(f"insert into items select id, 'n' || id from generate_series(0, {ROWS - 1}) id")  # noqa: S608
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDbServer]:
    with MariaDbServer() as server:
        server.execute("create database lab")
        server.execute("create table lab.items (id int primary key, name varchar(20), at datetime(6))")
        server.execute(f"insert into lab.items select seq, concat('n', seq), now(6) from lab.seq_0_to_{ROWS - 1}")  # noqa: S608
        yield server


@pytest.fixture
def new_topic(kafka_bootstrap: str, unique: Callable[[str], str]) -> Callable[[str], str]:
    def create(stream: str) -> str:
        prefix = unique("singer-fault")
        admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
        admin.create_topics([NewTopic(f"{prefix}-{stream}", 1, 1)])[f"{prefix}-{stream}"].result(LIMIT)
        return prefix

    return create


def ids_in(bootstrap: str, topic: str) -> Counter[int]:
    return Counter(int(json.loads(message.value() or b"")["id"]) for message in seen(bootstrap, topic))


def kill(task: SourceProcess) -> float:
    """Kill a task's process, and return the seconds until its tap has ended, too."""
    taps = psutil.Process(task.pid).children(recursive=True)
    os.kill(task.pid, signal.SIGKILL)
    started = time.monotonic()
    eventually(lambda: not any(is_running(tap.pid) for tap in taps), within=TAP_DIES_WITHIN, what="the end of the tap")
    return time.monotonic() - started


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("tap", TAPS)
def test_killed_many_times_each_record_is_in_the_topic(
    kafka_bootstrap: str,
    new_topic: Callable[[str], str],
    unique: Callable[[str], str],
    request: pytest.FixtureRequest,
    row: NewRow,
    chance: random.Random,
    tmp_path: Path,
    tap: str,
) -> None:
    source, kafka = TAPS[tap](request, tmp_path), Kafka(kafka_bootstrap)
    prefix = new_topic(source.stream)
    topic = f"{prefix}-{source.stream}"
    made = row(f"2: SingerSource with {tap}, {KILLS} kills -9 of the task", "0 lost; the tap dies within 2 s")
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "exactly.once.source.support": "disabled"}
    worker["offset.flush.interval.ms"] = "200"
    config = task_config(
        SingerSourceConnector,
        {
            **source.config,
            "name": topic,
            "topic.prefix": f"{prefix}-",
            "singer.select": f"{source.select or source.stream}.*",
            "key.converter": "StringConverter",
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
        },
    )
    longest = 0.0
    for _ in range(KILLS):
        started, before = time.monotonic(), max(kafka.count(topic), 0)
        with SourceProcess(config, worker, use_singer_plugins, (source.folders,)) as task:
            eventually(lambda: kafka.count(topic) > before or not task.alive, what="new records")  # noqa: B023
            assert task.alive
            made.recovered(time.monotonic() - started)
            time.sleep(chance.uniform(0, LONGEST))  # where to kill
            longest = max(longest, kill(task))
    with SourceProcess(config, worker, use_singer_plugins, (source.folders,)) as task:

        def complete() -> bool:
            assert task.alive
            return set(source.ids) <= set(ids_in(kafka_bootstrap, topic))

        eventually(complete, within=600, what="the last record")
        kill(task)
    found = ids_in(kafka_bootstrap, topic)
    made.lost, made.duplicated = len(set(source.ids) - set(found)), found.total() - len(found)
    made.seen = f"{found.total()} records of {len(source.ids)} rows; the tap ended after {longest:.2f} s at most"
    assert set(found) == set(source.ids)
