"""Snapshots that read tables in the order of their keys return each row once, whatever types the keys have.

``make test`` reads some tables of PostgreSQL and MariaDB, ``make test-cdc-keys`` random ones of all databases.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cdc.captured import Captured
from cdc.key_reading import FILE, TABLE, TABLE_DELETE, TOPIC, read_all, signal_table
from cdc.key_tables import (
    MARIADB_TYPES,
    MYSQL_TYPES,
    POSTGRES_SETUP,
    POSTGRES_TYPES,
    KeyTable,
    Maker,
    extension,
    key_tables,
    table_of_beginnings,
    wide_tables,
)
from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.mysql.task import MariaDbSourceTask
from sluiceway.data import Struct
from support.capture import Folded, TaskRun
from support.kafka import Kafka
from support.postgres import drop_slots

_TABLES = int(os.environ.get("TABLES", "600"))
_KILLS = int(os.environ.get("KILLS", "12"))
_SEED = int(os.environ.get("SEED", "1"))
_FIRST = int(os.environ.get("FIRST", "0"))
_BATCH, _KILL_BATCH, _KILLS_EACH, _SLICE_ROWS, _ROWS, _MOST_FAILED = 200, 20, 6, 12, 12, 9
_CHANNELS = (FILE, TABLE, TABLE_DELETE, TOPIC)


@pytest.fixture(
    params=[
        "postgres",
        pytest.param("mariadb_source", marks=pytest.mark.kafka),
        pytest.param("mysql_source", marks=[pytest.mark.long, pytest.mark.kafka]),
    ],
    ids=["postgresql", "mariadb", "mysql"],
)
def source(request: pytest.FixtureRequest) -> Captured:
    found: Captured = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def types(source: Captured) -> dict[str, Maker]:
    """Return the types of keys that the server has."""
    if not source.is_postgres:
        return MARIADB_TYPES if source.task is MariaDbSourceTask else MYSQL_TYPES
    source.execute(*POSTGRES_SETUP)
    available = {each for (each,) in source.database.execute("select name from pg_available_extensions")}
    found = {name: make for name, make in POSTGRES_TYPES.items() if extension(name) in {"", *available}}
    source.execute(*(f"create extension {name} schema elsewhere" for name in {*map(extension, found)} - {""}))
    return found


def _create(source: Captured, tables: list[KeyTable]) -> None:
    settings = () if source.is_postgres else ("set sql_mode = 'ALLOW_INVALID_DATES'",)
    source.execute(*settings, *(statement for table in tables for statement in table.statements(postgres=source.is_postgres)))
    names = ", ".join(table.name for table in tables)
    source.execute(f"analyze {names}" if source.is_postgres else f"analyze table {names}")  # a snapshot's ranges need counts


def _drop(source: Captured, tables: list[KeyTable]) -> None:
    names = [*(table.name for table in tables), signal_table(tables[0].name)]  # else later snapshots read its marks
    source.execute(f"drop table if exists {', '.join(names)}")
    if source.is_postgres:
        drop_slots(source.database, "database = current_database()")


@pytest.mark.parametrize("channel", [FILE, pytest.param(TABLE, marks=pytest.mark.long)])
def test_each_row_is_read_once(source: Captured, types: dict[str, Maker], tmp_path: Path, channel: str) -> None:
    rng = random.Random(_SEED)  # noqa: S311 (a test's data)
    tables = key_tables(rng, types, len(types), _SLICE_ROWS)
    _create(source, tables)
    read_all(source, tables, rng, tmp_path, channel=channel)


def test_each_row_with_a_long_key_or_a_document_is_read_once(source: Captured, tmp_path: Path) -> None:
    tables = wide_tables(postgres=source.is_postgres)
    _create(source, tables)
    keyed, others = ([table for table in tables if table.primary is primary] for primary in (True, False))
    read_all(source, tables, random.Random(_SEED), tmp_path, parts=[(keyed, "", ""), (others, "", "c0")])  # noqa: S311


@pytest.mark.long
@pytest.mark.kafka
def test_each_row_of_a_key_of_beginnings_is_read_once(binlog_source: Captured, tmp_path: Path) -> None:
    tables = [table_of_beginnings()]
    _create(binlog_source, tables)
    read_all(binlog_source, tables, random.Random(_SEED), tmp_path, parts=[(tables, "", "")])  # noqa: S311 (a test's data)


@pytest.mark.long
def test_each_row_is_read_after_kills(source: Captured, types: dict[str, Maker], tmp_path: Path) -> None:
    rng = random.Random(_SEED)  # noqa: S311 (a test's data)
    tables = key_tables(rng, types, len(types), _SLICE_ROWS)
    _create(source, tables)
    assert read_all(source, tables, rng, tmp_path, kills=3)


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.timeout(100_000)
def test_each_row_of_random_tables_is_read_once(source: Captured, types: dict[str, Maker], tmp_path: Path, kafka: Kafka) -> None:
    """The tables of a batch are read by one connector. Small batches are killed until there were as many kills as wanted."""
    done, kills, batch = 0, 0, _FIRST
    failed: list[str] = []
    started = time.monotonic()
    while (done < _TABLES or kills < _KILLS) and len(failed) < _MOST_FAILED:
        seed = _SEED * 1_000_000 + batch
        rng = random.Random(seed)  # noqa: S311 (a test's data)
        killed = kills < _KILLS and (batch % 2 == 1 or done >= _TABLES)
        size = _KILL_BATCH if killed else min(_BATCH, max(_KILL_BATCH, _TABLES - done))
        tables = key_tables(rng, types, size, _ROWS, f"b{batch}_")
        channel = _CHANNELS[batch // 2 % len(_CHANNELS)]
        try:
            _create(source, tables)
            each = _KILLS_EACH if killed else 0
            kills += read_all(source, tables, rng, tmp_path, kills=each, channel=channel, kafka=kafka)
        except Exception as error:  # noqa: BLE001 (all batches are read, and the failed ones named)
            failed.append(f"SEED={_SEED} FIRST={batch} TABLES={size} KILLS={int(killed)} ({channel}): {error!r}")
            print(failed[-1], flush=True)
        _drop(source, tables)
        done, batch = done + size, batch + 1
        print(f"{source.task.__name__}: {done} tables, {kills} kills, {time.monotonic() - started:.0f} s", flush=True)
    assert not failed


def test_no_signal_ends_a_connector(source: Captured, tmp_path: Path) -> None:
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
    if source.is_postgres:
        source.execute(
            "create table odd (c0 numeric primary key, n int, note json)", "insert into odd values ('NaN', 1, '1'), (1, 2, '2')"
        )
        refused += [{}, {"surrogate-key": "note"}]  # a key that no record can have, and one without order
        tables += ["odd", "odd"]
        source.execute("create sequence unused", "create function broken() returns int language plpgsql as 'begin end'")
        # psycopg's errors of these are those of lost connections.
        for condition in ("currval('unused') > 0", "broken() > n", f"{'(' * 20_000}n > 0{')' * 20_000}"):
            refused.append({"additional-conditions": [{"data-collection": "public.notes", "filter": condition}]})
            tables.append("notes")
    else:  # a binary log's server would sort these by their beginnings
        for number, declared in enumerate(("longtext", "longblob", "json", "text character set latin1")):
            value = f"concat('\"', repeat('x', {2**14 - 2}), '\"')"
            source.execute(
                f"create table long{number} (c0 int primary key, n int, note {declared})",
                f"insert into long{number} values (1, 1, null), (2, 2, {value})",  # noqa: S608 (a test's own database)
            )
            refused.append({"surrogate-key": "note"})
            tables.append(f"long{number}")
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
