# ruff: noqa: S608 (of databases of our own)
"""Snapshots that read tables in the order of their keys return each row once, whatever types the keys have.

``make test`` reads some tables of PostgreSQL and MariaDB, ``make test-cdc-keys`` random ones of all databases.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cdc.key_tables import MARIADB_TYPES, MYSQL_TYPES, POSTGRES_SETUP, POSTGRES_TYPES, KeyTable, Maker, key_tables
from sluiceway.api import SourceRecord, SourceTask
from sluiceway.connectors.cdc.mysql.task import MariaDbSourceTask, MySqlSourceTask
from sluiceway.connectors.cdc.postgres.task import PostgresTask
from sluiceway.data import Struct
from support.capture import Folded, TaskRun
from support.database import HOST, PASSWORD, USER, DatabaseForTest
from support.mariadb import MariaDbServer
from support.mysql import MySqlServer
from support.postgres import PostgresServer

_TABLES = int(os.environ.get("TABLES", "600"))
_KILLS = int(os.environ.get("KILLS", "12"))
_SEED = int(os.environ.get("SEED", "1"))
_BATCH, _SLICE_ROWS, _ROWS = 60, 12, 25
_NUMBERS = itertools.count(70_000)

Rows = dict[str, Counter[int]]
"""How often each row of each table was read, by its number."""


@dataclass
class _Source:
    """A captured database."""

    database: DatabaseForTest
    task: type[SourceTask]
    schema: str
    types: dict[str, Maker]
    config: dict[str, str]

    def create(self, tables: list[KeyTable]) -> None:
        ignore = ("", "on conflict do nothing") if self.task is PostgresTask else ("ignore", "")
        self.execute(*(statement for table in tables for statement in table.statements(ignore)))
        if self.task is not PostgresTask:
            self.execute(f"analyze table {', '.join(table.name for table in tables)}")

    def execute(self, *statements: str) -> None:
        with self.database.connect() as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            cursor.close()

    def rows(self, tables: list[KeyTable], condition: str = "") -> Rows:
        """Return the rows that the tables have."""
        where = f" where {condition}" if condition else ""
        return {
            table.name: Counter(number for (number,) in self.database.execute(f"select n from {table.name}{where}"))
            for table in tables
        }


@pytest.fixture
def postgres(postgresql_server: PostgresServer, unique: Callable[[str], str]) -> Iterator[_Source]:
    name = unique("c").replace("-", "_")
    postgresql_server.first.execute(f"create database {name}")
    postgresql_server.first.execute(f"alter database {name} set synchronous_commit = on")
    config = {
        "database.hostname": HOST,
        "database.port": str(postgresql_server.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.dbname": name,
        "topic.prefix": "c",
        "slot.name": name,
        "status.update.interval.ms": "100",
    }
    source = _Source(postgresql_server.database(name), PostgresTask, "public", POSTGRES_TYPES, config)
    source.execute(*POSTGRES_SETUP)
    available = {each for (each,) in source.database.execute("select name from pg_available_extensions")}
    for extension in ("citext", "ltree", "hstore"):
        if extension in available:
            source.execute(f"create extension {extension} schema elsewhere")
    source.types = {
        declared: make
        for declared, make in POSTGRES_TYPES.items()
        if not declared.startswith("elsewhere.") or declared.removeprefix("elsewhere.") in available
    }
    yield source
    source.execute(f"select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '{name}'")
    postgresql_server.first.execute(f"drop database {name} with (force)")


@pytest.fixture(scope="module")
def binlog_server() -> Iterator[MariaDbServer]:
    with MariaDbServer(binlog=True) as server:
        yield server


@pytest.fixture(scope="module")
def mysql_server() -> Iterator[MySqlServer]:
    with MySqlServer() as server:
        yield server


@pytest.fixture
def mariadb_source(binlog_server: MariaDbServer, kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[_Source]:
    yield from _binlog(binlog_server, MariaDbSourceTask, MARIADB_TYPES, kafka_bootstrap, unique("c"))


@pytest.fixture
def mysql_source(mysql_server: MySqlServer, kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[_Source]:
    yield from _binlog(mysql_server, MySqlSourceTask, MYSQL_TYPES, kafka_bootstrap, unique("c"))


def _binlog(
    server: MariaDbServer | MySqlServer, task: type[SourceTask], types: dict[str, Maker], bootstrap: str, name: str
) -> Iterator[_Source]:
    name = name.replace("-", "_")
    server.first.execute(f"create database {name} character set utf8mb4")
    config = {
        "database.hostname": HOST,
        "database.port": str(server.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.server.id": str(next(_NUMBERS)),
        "database.include.list": name,
        "topic.prefix": "c",
        "schema.history.internal.kafka.bootstrap.servers": bootstrap,
        "schema.history.internal.kafka.topic": name,
    }
    yield _Source(server.database(name), task, name, types, config)
    server.first.execute(f"drop database {name}")


@pytest.fixture(
    params=[
        "postgres",
        pytest.param("mariadb_source", marks=pytest.mark.kafka),
        pytest.param("mysql_source", marks=[pytest.mark.long, pytest.mark.kafka]),
    ],
    ids=["postgresql", "mariadb", "mysql"],
)
def source(request: pytest.FixtureRequest) -> _Source:
    found: _Source = request.getfixturevalue(request.param)
    return found


class _Reading(Folded):
    """The rows that a task has read, over its restarts. ``operations`` names the tables whose rows are still wrong."""

    def __init__(self, source: _Source, config: dict[str, str]) -> None:
        super().__init__()
        self.rows: Rows = {}
        self._source = source
        # As a decimal, NaN would be null, which a key must not be.
        self._config = {**source.config, **config, "sluiceway.cdc.compat": "correct", "decimal.handling.mode": "string"}
        self._offset: Any = None

    def run(self, done: Callable[[], bool], at: Callable[[], None] | None = None) -> None:
        """Run the task until a condition holds; ``at`` is executed when it is running."""
        with TaskRun(self._source.task, self._config, self._offset) as run:
            if at is not None:
                run.poll()
                at()
            run.fold_until(self, done)
        self._offset = run.offset

    def crash(self, rng: random.Random, most: int) -> None:
        """Run the task until it has read some rows, and forget all that it knows but the offset of the last one."""
        with TaskRun(self._source.task, self._config, self._offset) as run:
            self.add(run.take(rng.randint(1, most)))
        self._offset = run.offset

    def add(self, records: Iterable[SourceRecord]) -> None:
        for record in records:
            value = record.value
            if isinstance(value, Struct) and (value.schema.name or "").endswith(".Envelope") and value["op"] == "r":
                self.rows.setdefault(record.topic.rpartition(".")[2], Counter())[value["after"]["n"]] += 1

    def fresh(self) -> None:
        """Forget all rows, and a snapshot that has only to find out that no rows are left."""
        self.rows.clear()
        self._offset = {name: value for name, value in self._offset.items() if "incremental" not in name}


def _check(source: _Source, tables: list[KeyTable], rng: random.Random, tmp_path: Path, *, crash: bool) -> None:
    """Read tables by an initial snapshot, then by incremental ones: each row is read once, or at least once after a crash."""
    signals = tmp_path / f"signals-{rng.random()}"
    config = {
        "snapshot.max.threads": str(rng.randint(1, 3)),
        "sluiceway.cdc.snapshot.range.rows": str(rng.randint(1, 6)),
        "incremental.snapshot.chunk.size": str(rng.randint(1, 6)),
        "max.batch.size": str(rng.choice([3, 2048])),
        "read.only": "true",
        "signal.enabled.channels": "file",
        "signal.file": str(signals),
        "signal.poll.interval.ms": "0",
    }
    reading = _Reading(source, config)

    def complete(expected: Rows) -> Callable[[], bool]:
        def done() -> bool:
            found = {name: Counter(set(counts)) for name, counts in reading.rows.items()} if crash else reading.rows
            reading.operations = {
                f"{table.name} {table.types}: missing {dict(wanted - rows)}, surplus {dict(rows - wanted)}": rows.total()
                for table in tables
                if (rows := found.get(table.name, Counter())) != (wanted := expected.get(table.name, Counter()))
            }
            return not reading.operations

        return done

    def signal(tables: list[KeyTable], condition: str, surrogate: str) -> Callable[[], None]:
        names = [f"{source.schema}.{table.name}" for table in tables]
        data: dict[str, Any] = {"data-collections": names}
        if condition:
            data["additional-conditions"] = [{"data-collection": name, "filter": condition} for name in names]
        if surrogate:
            data["surrogate-key"] = surrogate
        document = json.dumps({"id": "s", "type": "execute-snapshot", "data": data})

        def send() -> None:
            signals.write_text(document)

        return send

    every = source.rows(tables)
    total = sum(map(len, every.values()))
    if crash:
        reading.crash(rng, total)
    reading.run(complete(every))
    keyed = [table for table in tables if table.primary]
    condition = rng.choice(["", "n % 3 <> 1"])
    requests = [(keyed, condition, ""), (tables, "", "c0"), (keyed[::4], "", "n")]
    for wanted, each, surrogate in requests:
        reading.fresh()
        expected = source.rows(wanted, each)
        some = sum(map(len, expected.values())) // 3
        if not crash:
            reading.run(complete(expected), signal(wanted, each, surrogate))
            continue
        reading.run(lambda least=some: sum(map(len, reading.rows.values())) >= least, signal(wanted, each, surrogate))  # type: ignore[misc]
        reading.run(complete(expected))


@pytest.mark.parametrize("crash", [False, pytest.param(True, marks=pytest.mark.long)], ids=["", "after_a_crash"])
def test_each_row_is_read_once(source: _Source, tmp_path: Path, crash: bool) -> None:
    rng = random.Random(_SEED)  # noqa: S311 (a test's data)
    tables = key_tables(rng, source.types, len(source.types), _SLICE_ROWS)
    source.create(tables)
    _check(source, tables, rng, tmp_path, crash=crash)


@pytest.mark.long
@pytest.mark.timeout(100_000)
def test_each_row_of_random_tables_is_read_once(source: _Source, tmp_path: Path) -> None:
    for start in range(0, _TABLES, _BATCH):
        seed = _SEED * 1_000_000 + start
        rng = random.Random(seed)  # noqa: S311 (a test's data)
        tables = key_tables(rng, source.types, min(_BATCH, _TABLES - start), _ROWS)
        crash = start // _BATCH % max(1, _TABLES // _BATCH // max(1, _KILLS)) == 0
        try:
            source.create(tables)
            _check(source, tables, rng, tmp_path, crash=crash)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        finally:
            source.execute(*(f"drop table if exists {table.name}" for table in tables))
    print(f"{source.config['topic.prefix']} {_TABLES} tables")


def test_no_signal_ends_a_connector(source: _Source, tmp_path: Path) -> None:
    """Requests that the database or a record's schema refuses end with a notification, and the log is read on."""
    source.execute(
        "create table good (c0 int primary key, n int)",
        "insert into good values (1, 1), (2, 2)",
        "create table notes (c0 int primary key, n int, note text)",
        "insert into notes values (1, 1, 'a')",
    )
    refused: list[dict[str, Any]] = [
        {"additional-conditions": [{"data-collection": f"{source.schema}.notes", "filter": "nothing = 1"}]},
        {"additional-conditions": [{"data-collection": f"{source.schema}.notes", "filter": "1 = "}], "type": "blocking"},
        {"surrogate-key": "nothing"},
        {"surrogate-key": ["c0"]},
        {"type": "strange"},
        {"data-collections": ["nothing"]},
        {"additional-conditions": 5},
    ]
    tables = ["notes"] * len(refused)
    if source.task is PostgresTask:
        source.execute(
            "create table odd (c0 numeric primary key, n int, note json)", "insert into odd values ('NaN', 1, '1'), (1, 2, '2')"
        )
        refused += [{}, {"surrogate-key": "note"}]  # a key that no record can have, and one without order
        tables += ["odd", "odd"]
    signals = tmp_path / "signals"
    config = {
        **source.config,
        "snapshot.mode": "no_data",
        "read.only": "true",
        "signal.enabled.channels": "file",
        "signal.file": str(signals),
        "signal.poll.interval.ms": "0",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": "notifications",
    }
    ended: dict[str, str] = {}
    numbers: set[int] = set()

    def ends(records: Iterable[SourceRecord]) -> None:
        for record in records:
            value: Any = record.value
            if record.topic == "notifications":
                data = value["additional_data"]
                ended[value["id"]] = data.get("status", "") + data.get("reason", "") or ended.get(value["id"], "")
            elif isinstance(value, Struct) and record.topic.endswith(".good"):
                numbers.add(value["after"]["n"])

    class Ended(Folded):
        def add(self, records: Iterable[SourceRecord]) -> None:
            ends(records)

    def send(identifier: str, table: str, data: dict[str, Any]) -> None:
        named = {"data-collections": [f"{source.schema}.{table}"], **data}
        signals.write_text(json.dumps({"id": identifier, "type": "execute-snapshot", "data": named}))

    with TaskRun(source.task, config) as run:
        run.poll()
        for number, (table, data) in enumerate(zip(tables, refused, strict=True)):
            identifier = f"s{number}"
            send(identifier, table, data)
            run.fold_until(Ended(), lambda identifier=identifier: bool(ended.get(identifier)))  # type: ignore[misc]
        send("last", "good", {})
        run.fold_until(Ended(), lambda: numbers == {1, 2})
        source.execute("insert into good values (3, 3)")
        run.fold_until(Ended(), lambda: 3 in numbers)
    assert "SUCCEEDED" not in [status for identifier, status in ended.items() if identifier != "last"]
