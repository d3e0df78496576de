# ruff: noqa: S608 (of databases of our own)
"""Exact runs of a database's log: each change in the interval in which it was committed, also after kills, on real servers.

``make test`` runs PostgreSQL's. SEQUENCES in the environment is the number of random sequences.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from cdc.captured import Captured, captured_postgres
from sluiceway.api import SourceRecord
from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.config.worker import WorkerConfig
from sluiceway.connectors.cdc.postgres.connector import PostgresConnector
from sluiceway.provider.driver import interval_runs
from sluiceway.storage.intervals import IntervalState
from support.capture import TaskRun
from support.exactly_once import exactly_once_worker
from support.intervals import IntervalMover, hours
from support.kafka import Kafka
from support.postgres import PostgresServer, drop_slots

_SECOND = 1000
_COUNT = 5
_SEQUENCES = int(os.environ.get("SEQUENCES", "1"))


@dataclass(frozen=True)
class Written:
    """The keys of the rows that were inserted, those that were committed later, and the whole seconds of that time."""

    keys: list[int]
    later: set[int]
    seconds: list[Interval]


def write(source: Captured, chance: random.Random) -> Written:
    """Insert rows into a table ``(id, v)`` for some seconds, some of them in transactions that commit later."""
    source.execute("create table t (id int primary key, v int)")
    seconds = hours((time.time_ns() // 1_000_000 // _SECOND + 1) * _SECOND, _COUNT, _SECOND)
    number, is_open, of_later = 0, False, set[int]()
    with closing(source.database.connect()) as short, closing(source.database.connect()) as long:
        at_once, later = short.cursor(), long.cursor()
        while time.time_ns() // 1_000_000 < seconds[-1].end + 300 or is_open:
            number += 1
            if not is_open and chance.random() < 0.1:
                later.execute("begin")
                is_open = True
            is_later = is_open and chance.random() < 0.3
            (later if is_later else at_once).execute(f"insert into t values ({number}, 0)")
            if is_later:
                of_later.add(number)
            if is_open and chance.random() < 0.1:
                later.execute("commit")
                is_open = False
            time.sleep(0.005)  # the rate
    return Written(list(range(1, number + 1)), of_later, seconds)


def moved(
    source: Captured, config: Mapping[str, str], interval: Interval, offset: Any, most: int | None = None
) -> tuple[list[SourceRecord], Any]:
    """Return the records that a run of an interval takes, and the offset behind them. With ``most``, it dies behind these."""
    run = {**config, "airflow.mode": "micro-batch", **IntervalRun("c", interval, 1).keys()}
    found: list[SourceRecord] = []
    with TaskRun(source.task, run, offset) as task:
        if most is not None:
            return task.take(most), task.offset
        while records := task.poll():
            found += records
    return found, task.offset


def test_each_change_is_in_the_interval_of_its_commit(source: Captured, chance: random.Random) -> None:
    config = {**source.config, "snapshot.mode": "no_data", "include.schema.changes": "false"}
    source.execute("create table first (id int primary key)")
    with TaskRun(source.task, config) as task:
        number = itertools.count()
        while not task.poll():  # the log is read from some moment after the start
            source.execute(f"insert into first values ({next(number)})")
    offset: Any = task.offset
    written = write(source, chance)
    keys: list[int] = []
    for second in [*written.seconds, Interval(written.seconds[-1].end, written.seconds[-1].end + 60_000)]:
        died, offset = moved(source, config, second, offset, most=5) if chance.random() < 0.5 else ([], offset)
        rest, offset = moved(source, config, second, offset)
        times = {record.value["after"]["id"]: record.value["source"]["ts_ms"] for record in (*died, *rest)}
        assert len(times) > 10
        assert max(times.values()) < second.end
        # MariaDB's rows have the times of their statements, although the interval is that of the commit.
        committed = [at for key, at in times.items() if source.is_postgres or key not in written.later]
        assert min(committed) >= second.start or second is written.seconds[0]
        keys += times
    assert sorted(keys) == written.keys


@pytest.fixture(scope="module")
def logged(postgresql_server: PostgresServer) -> Iterator[tuple[Captured, Written]]:
    """A database whose log has changes of some seconds, all of it kept by the slot ``first``."""
    with captured_postgres(postgresql_server, "logged") as source:
        source.execute(
            "create publication dbz_publication for all tables",
            "select pg_create_logical_replication_slot('first', 'pgoutput')",
        )
        yield source, write(source, random.Random(7))  # noqa: S311 (test data)
        drop_slots(source.database, "slot_name = 'first' or slot_name like 'copy%'")


@pytest.mark.kafka
@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_in_any_sequence_of_runs_clears_and_kills_each_change_is_in_the_topic_once(
    logged: tuple[Captured, Written],
    kafka: Kafka,
    unique: Callable[[str], str],
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    sequence: int,
) -> None:
    monkeypatch.setattr(interval_runs, "_DRIVER_MS", 0)  # else a run waits that long after another one has died
    source, written = logged
    slot = unique("copy").lower().replace("-", "_")
    source.execute(f"select pg_copy_logical_replication_slot('first', '{slot}')")
    topic = kafka.create(f"{slot}.public.t")
    worker = WorkerConfig.of({**exactly_once_worker(kafka.bootstrap, unique), "offset.flush.interval.ms": "50"})
    own = {"name": unique("source"), "connector.class": PostgresConnector.java_class, "airflow.interval.lateness": "0s"}
    batches = {"max.batch.size": "10", "snapshot.mode": "no_data", "tasks.max": "1", "exactly.once.support": "required"}
    json = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false", "key.converter": "JsonConverter"}
    mover = IntervalMover(worker, {**source.config, **own, **batches, **json, "slot.name": slot, "topic.prefix": slot})
    kills = clears = 0
    done: set[Interval] = set()
    for _ in range(8):
        open_ = [each for each in written.seconds if each not in done]
        second = chance.choice([*open_[:1], chance.choice(written.seconds)])
        clears += second in done
        entry = mover.move(second, f"run-{second.start}", chance.uniform(0, mover.seconds) if chance.random() < 0.6 else None)
        kills += entry is None
        done |= {second} if entry is not None else set()
    for second in [*written.seconds, Interval(written.seconds[-1].end, written.seconds[-1].end + 1000)]:
        assert mover.move(second, f"run-{second.start}") is not None
    found = [orjson.loads(message.value())["after"]["id"] for message in kafka.read_committed(topic)]
    assert sorted(found) == written.keys
    drop_slots(source.database, f"slot_name = '{slot}'")
    states = {entry.state for entry in mover.ledger().entries.values()}
    assert states == {IntervalState.DONE}
    print(f"sequence {sequence}: {kills} kills, {clears} clears")
