# ruff: noqa: S608 (of databases of our own)
"""Snapshots in ranges, their continuation after a crash, incremental ones without writes, and micro-batches, on real servers.

``make test`` runs the first two with PostgreSQL, ``make test-cdc`` all.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cdc.captured import Captured
from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.mysql.connector import MariaDbConnector
from sluiceway.connectors.cdc.mysql.task import MariaDbSourceTask
from sluiceway.connectors.cdc.postgres.connector import PostgresConnector
from sluiceway.connectors.cdc.postgres.task import PostgresTask
from sluiceway.errors import ConnectError
from support.capture import Folded, Load, TaskRun
from support.eventually import eventually
from support.rest_replay import Connect

_ROWS, _RANGE, _THREADS = 3000, 200, 3


def test_a_crashed_snapshot_goes_on_with_the_ranges_that_are_left(source: Captured) -> None:
    source.fill("t", _ROWS)
    source.fill("u", 50)
    config = {
        **source.config,
        "snapshot.max.threads": str(_THREADS),
        "sluiceway.cdc.snapshot.range.rows": str(_RANGE),
        "max.batch.size": "50",
        "incremental.snapshot.chunk.size": "100",
        "tombstones.on.delete": "false",
    }
    folded = Folded()
    with TaskRun(source.task, config) as run:
        folded.add(run.take(_ROWS // 2 + 1000))
    offset: Any = run.offset
    assert json.loads(offset["sluiceway_snapshot"])["ranges"][f"{source.schema}.t"]
    Load(source.database, "t", _ROWS, 100).run()
    with Load(source.database, "t", _ROWS + 100, 200, seed=2) as load, TaskRun(source.task, config, offset) as run:
        run.fold_until(folded, lambda: load.ended and source.equals(folded, "t", "u"))
        while "incremental_snapshot_collections" in (run.offset or {}):
            source.execute("update t set v = v + 1 where id = 1")
            run.fold_until(folded, lambda: source.equals(folded, "t", "u"))
    assert folded.operations["r"] <= _ROWS + 150 + _RANGE * (_THREADS + 2)


@pytest.mark.long
def test_tables_without_key_are_read_again_even_after_two_crashes(source: Captured) -> None:
    source.fill("t", 10)
    source.execute("create table z (v int)", f"insert into z values {', '.join(f'({number})' for number in range(500))}")
    config = {**source.config, "max.batch.size": "20", "tombstones.on.delete": "false"}
    taken: list[Any] = []
    offset: Any = None
    for count in 300, 300, 500:
        with TaskRun(source.task, config, offset) as run:
            taken = [record.value["after"]["v"] for record in run.take(count) if record.topic == f"c.{source.schema}.z"]
        offset = run.offset
        assert offset.get("snapshot") == "INITIAL"
    assert sorted(taken) == list(range(500))


@pytest.mark.parametrize("end", [";", " -- three rows", " ;\n"], ids=["semicolon", "comment", "both"])
def test_a_statement_of_a_table_may_end_in_a_comment(source: Captured, end: str) -> None:
    source.fill("t", 10)
    key, table = "snapshot.select.statement.overrides", f"{source.schema}.t"
    config = {**source.config, "include.schema.changes": "false", key: table}
    with TaskRun(source.task, {**config, f"{key}.{table}": f"select v, id from {table} where id < 4{end}"}) as run:
        found = [record.value["after"]["id"] for record in run.take(3)]
    assert sorted(found) == [1, 2, 3]


def test_an_incremental_snapshot_needs_no_writes(source: Captured, tmp_path: Path) -> None:
    source.fill("t", _ROWS)
    signals = tmp_path / "signals"
    config = {
        **source.config,
        "snapshot.mode": "no_data",
        "read.only": "true",
        "signal.enabled.channels": "file",
        "signal.file": str(signals),
        "signal.poll.interval.ms": "0",
        "incremental.snapshot.chunk.size": "100",
    }
    folded = Folded()
    signal = {"id": "s1", "type": "execute-snapshot", "data": {"data-collections": [f"{source.schema}.t"]}}
    with TaskRun(source.task, config) as run:
        run.poll()
        signals.write_text(json.dumps(signal))
        with Load(source.database, "t", _ROWS, 300) as load:
            run.fold_until(folded, lambda: folded.operations.get("r", 0) > _ROWS // 2 and load.ended)
            run.fold_until(folded, lambda: source.equals(folded, "t"))
    assert folded.operations["r"] <= _ROWS


@pytest.mark.long
@pytest.mark.kafka
def test_a_signal_over_the_rest_api_starts_an_incremental_snapshot(source: Captured, kafka_bootstrap: str) -> None:
    """The connector runs before its signal topic exists."""
    source.fill("t", 500)
    prefix = source.schema if source.task is MariaDbSourceTask else source.config["slot.name"]
    config = {
        **source.config,
        "topic.prefix": prefix,
        "snapshot.mode": "no_data",
        "read.only": "true",
        "signal.enabled.channels": "kafka",
        "signal.kafka.bootstrap.servers": kafka_bootstrap,
    }
    connect = Connect()
    java_class = PostgresConnector.java_class if source.task is PostgresTask else MariaDbConnector.java_class
    connect.config.put_connector("c", {**config, "name": "c", "connector.class": java_class})
    signal = {"type": "execute-snapshot", "data": {"data-collections": [f"{source.schema}.t"]}}
    folded = Folded()
    topic = f"{prefix}.{source.schema}.t"
    with TaskRun(source.task, config) as run:
        run.poll()
        answer = connect.http.post("/connectors/c/signals", json=signal)
        assert (answer.status_code, answer.json()["topic"]) == (202, f"{prefix}-signal")
        run.fold_until(folded, lambda: len(folded.tables.get(topic, {})) == 500)
    assert folded.operations == {"r": 500}


@pytest.mark.long
def test_an_incremental_snapshot_of_an_idle_database_ends_soon(source: Captured, tmp_path: Path) -> None:
    tables = [f"t{number}" for number in range(40)]
    source.fill("t", 1000)
    for table in tables:
        source.fill(table, 5)
    signals = tmp_path / "signals"
    config = {
        **source.config,
        "snapshot.mode": "no_data",
        "signal.enabled.channels": "file",
        "signal.file": str(signals),
        "signal.poll.interval.ms": "0",
        "incremental.snapshot.chunk.size": "10",
    }
    folded = Folded()
    signal = {"id": "s1", "type": "execute-snapshot", "data": {"data-collections": [f"{source.schema}.t.*"]}}
    with TaskRun(source.task, config) as run:
        run.poll()
        signals.write_text(json.dumps(signal))
        run.fold_until(folded, lambda: source.equals(folded, "t", *tables))
    assert folded.operations == {"r": 1200}


@pytest.mark.long
def test_a_micro_batch_ends_at_the_end_of_the_log(source: Captured) -> None:
    source.fill("t", 100)
    config = {**source.config, "airflow.mode": "micro-batch"}
    folded, offset = Folded(), None
    for rows in 100, 150:
        with TaskRun(source.task, config, offset) as run:
            while records := run.poll():
                folded.add(records)
        assert not [thread.name for thread in threading.enumerate() if "-reader-" in thread.name]
        offset = run.offset
        assert source.equals(folded, "t")
        assert len(folded.tables[f"c.{source.schema}.t"]) == rows
        source.execute(*(f"insert into t values ({number}, 1)" for number in range(rows + 1, rows + 51)))
    assert folded.operations == {"r": 100, "c": 50}


@pytest.mark.long
@pytest.mark.kafka
def test_a_micro_batch_of_mariadb_leaves_no_log_for_the_next_one(mariadb_source: Captured) -> None:
    mariadb_source.fill("t", 10)
    mariadb_source.fill("other", 10)
    config = {**mariadb_source.config, "table.include.list": f"{mariadb_source.schema}.t", "airflow.mode": "micro-batch"}
    offset: Any = None
    for _ in range(2):
        with TaskRun(mariadb_source.task, config, offset) as run:
            while run.poll():
                pass
        offset = run.offset
        end = mariadb_source.database.execute("show master status")[0]
        assert (offset["file"], offset["pos"]) == (end[0], end[1])
        mariadb_source.execute(*(f"update other set v = v + 1 where id = {number}" for number in range(1, 11)))


@pytest.mark.parametrize("mode", ["no_data", "initial"])
@pytest.mark.parametrize("batch", ["", "micro-batch"], ids=["continuous", "micro-batch"])
def test_changes_after_a_start_without_records_are_read_at_the_next_one(source: Captured, mode: str, batch: str) -> None:
    source.execute("create table t (id int primary key, v int)")
    config = {**source.config, "snapshot.mode": mode, "include.schema.changes": "false"}
    config |= {"airflow.mode": batch} if batch else {}
    with TaskRun(source.task, config) as run:
        eventually(lambda: not run.poll() and run.offset, what="an offset")
    source.execute("insert into t values (1, 0)", "delete from t")
    with TaskRun(source.task, config, run.offset) as run:
        values: list[Any] = [record.value for record in run.take(2)]
    assert [value["op"] for value in values] == ["c", "d"]


@pytest.mark.long
def test_a_table_that_is_added_to_the_filter_is_read(source: Captured) -> None:
    source.fill("t", 20)
    source.fill("u", 30)
    config = {**source.config, "snapshot.new.tables": "incremental", "airflow.mode": "micro-batch"}
    folded, offset = Folded(), None
    for filters in f"{source.schema}.t", f"{source.schema}.t,{source.schema}.u", f"{source.schema}.t,{source.schema}.u":
        source.execute("update t set v = v + 1 where id = 1")
        with TaskRun(source.task, {**config, "table.include.list": filters}, offset) as run:
            while records := run.poll():
                folded.add(records)
        offset = run.offset
        source.execute("update t set v = v + 1 where id = 2")
    assert folded.operations["r"] == 50
    assert set(folded.tables[f"c.{source.schema}.u"]) == {(number,) for number in range(1, 31)}


@pytest.mark.long
@pytest.mark.kafka
def test_a_blocking_snapshot_of_mariadb_has_the_structures_of_its_tables_and_a_gtid(mariadb_source: Captured) -> None:
    """A change of the table that the log has not reached is in the snapshot, and rows before it still have their own form."""
    name = mariadb_source.schema
    mariadb_source.fill("t", 2)
    mariadb_source.execute("create table other (id int)")
    mariadb_source.execute("create table sig (id varchar(64), type varchar(32), data varchar(2048))")
    config = {**mariadb_source.config, "snapshot.mode": "no_data", "signal.data.collection": f"{name}.sig"}
    data = json.dumps({"data-collections": [f"{name}.t"], "type": "blocking"})
    with TaskRun(MariaDbSourceTask, config) as run:
        _poll_until(run, lambda record: record.topic == "c" and record.value["ddl"].startswith("CREATE TABLE `t`"))
        mariadb_source.execute(
            "insert into t values (4, 0)",
            f"insert into sig values ('s1', 'execute-snapshot', '{data}')",
            "alter table t add column w int default 7",
            "insert into t values (5, 0, 1)",
        )
        found = _poll_until(run, lambda record: _is_created(record, f"c.{name}.t", 5))
    changes = [record.value for record in found if record.topic == "c"]
    rows = [record.value for record in found if record.topic == f"c.{name}.t"]
    reads = [row for row in rows if row["op"] == "r"]
    blocking = [change for change in changes if change["source"]["snapshot"] == "true"]
    assert [change["ddl"].partition("(")[0].strip().replace("`", "") for change in blocking] == [
        f"DROP TABLE IF EXISTS {name}.t",
        "CREATE TABLE t",
    ]
    assert all(record["source"]["gtid"] for record in (*reads, *blocking))
    assert {row["after"]["id"] for row in reads} >= {1, 2, 4}
    created = [row["after"] for row in rows if row["op"] == "c"]
    assert [list(row.values_) for row in created] == [[4, 0], [5, 0, 1]]


@pytest.mark.long
@pytest.mark.kafka
def test_a_lost_schema_history_is_built_again_from_the_server(binlog_source: Captured) -> None:
    """The offset stays, so that no change is lost, and the history serves the next run in any mode."""
    binlog_source.fill("t", 2)
    config = {**binlog_source.config, "airflow.mode": "micro-batch"}
    lost = {**config, "schema.history.internal.kafka.topic": f"{binlog_source.schema}-new"}
    found: list[list[SourceRecord]] = []
    offset: Any = None
    for number, each in enumerate((config, {**lost, "snapshot.mode": "recovery"}, lost)):
        with TaskRun(binlog_source.task, each, offset) as run:
            found.append([])
            while records := run.poll():
                found[-1] += records
        offset = run.offset
        binlog_source.execute(f"insert into t values ({10 + number}, {number})")
    statements = [[each.value["ddl"].split()[0] for each in records if each.topic == "c"] for records in found]
    rows = [[each.value["after"]["id"] for each in records if each.topic != "c"] for records in found]
    assert statements[0] == statements[1] != []
    assert statements[2] == []
    assert rows == [[1, 2], [10], [11]]


@pytest.mark.long
@pytest.mark.kafka
def test_recovery_needs_an_offset(binlog_source: Captured) -> None:
    text = "Could not find existing binlog information while attempting schema only recovery"
    config = {**binlog_source.config, "snapshot.mode": "recovery"}
    with TaskRun(binlog_source.task, config) as run, pytest.raises(ConnectError, match=text):
        eventually(lambda: run.poll() and None)


_OTHER_UUID = "77777777-7777-7777-7777-777777777777"


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.parametrize("option", ["gtid.source.excludes", "gtid.source.includes"])
def test_changes_of_a_gtid_source_that_is_left_out_have_no_records(binlog_source: Captured, option: str) -> None:
    """Another server's changes reach a log as those of another UUID on MySQL, of another domain or server id on MariaDB."""
    binlog_source.fill("t", 1)
    mariadb = binlog_source.task is MariaDbSourceTask
    own = "0-.*" if mariadb else str(binlog_source.database.execute("select @@server_uuid")[0][0])
    other = "77-.*" if mariadb else f"{_OTHER_UUID[:8]}-.*"
    config = {**binlog_source.config, option: other if option.endswith("excludes") else own, "airflow.mode": "micro-batch"}
    folded, offset = Folded(), None
    for number in (1, 2):
        with TaskRun(binlog_source.task, config, offset) as run:
            while records := run.poll():
                folded.add(records)
        offset = run.offset
        used = _OTHER_NUMBERS[option] + number
        with closing(binlog_source.database.connect(autocommit=True)) as connection, closing(connection.cursor()) as cursor:
            for key, foreign in enumerate((0, 77, 0), 10 * number):
                gtid = f"'{_OTHER_UUID}:{used}'" if foreign else "automatic"
                cursor.execute(f"set gtid_domain_id = {foreign}" if mariadb else f"set gtid_next = {gtid}")
                cursor.execute(f"insert into t values ({key}, {foreign})")
    rows = folded.tables[f"c.{binlog_source.schema}.t"].values()
    assert {value for _, value in rows} == {0}
    assert folded.operations["c"] == 2


_OTHER_NUMBERS = {"gtid.source.excludes": 0, "gtid.source.includes": 10}
"""Each test has transactions of its own: the tests share a server, which skips one that it has had."""


def _is_created(record: SourceRecord, topic: str, id_: int) -> bool:
    return record.topic == topic and record.value["op"] == "c" and record.value["after"]["id"] == id_


def _poll_until(run: TaskRun, last: Callable[[SourceRecord], bool]) -> list[SourceRecord]:
    found: list[SourceRecord] = []

    def arrived() -> bool:
        found.extend(run.poll() or ())
        return any(map(last, found))

    eventually(arrived)
    return found


_ARRAYS = {
    "int": "'{1,NULL,3}'",
    "text": "'{a,NULL,\"b,c\"}'",
    "numeric(6,2)": "'{1.5,NULL}'",
    "date": "'{2024-01-01,infinity,\"0044-03-15 BC\"}'",
    "timestamptz(3)": "'{2024-01-01 00:00+00}'",
    "mood": "'{ok,sad}'",
    "comp": "array[row(1,'q')::comp]",
    "d_text": "'{a,b}'",
    "d_comp": "array[row(1,'q')::comp]::d_comp[]",
    "point": "array['(1,2)'::point]",
    "box": "array['(1,1),(0,0)'::box, '(2,2),(0,0)'::box]",
    "circle": "array['<(1,2),3>'::circle]",
    "numrange": "'{\"[1,2)\"}'",
    "own_range": "'{\"[1.5,2)\"}'",
    "bit(3)": "'{101}'",
    "money": "'{$5}'",
    "interval": "'{1 day}'",
    "uuid": "'{6f1c9b1e-3c55-4a3a-9d35-6a3a1a1a1a1a}'",
    "inet": "'{10.0.0.0/8}'",
    "name": "'{n}'",
    "xml": "array['<a/>'::xml]",
    "tsvector": "array['a b'::tsvector]",
}


@pytest.mark.parametrize("more", [{}, {"include.unknown.datatypes": "true"}, {"sluiceway.cdc.compat": "correct"}], ids=str)
def test_arrays_are_the_same_in_snapshot_log_and_incremental_snapshot(
    postgres: Captured, tmp_path: Path, more: dict[str, str]
) -> None:
    columns = ", ".join(f"a{index} {type_}[], e{index} {type_}[]" for index, type_ in enumerate(_ARRAYS))
    values = ", ".join(f"{value}, '{{}}'" for value in _ARRAYS.values())
    postgres.execute(
        "create type mood as enum ('ok', 'sad')",
        "create type comp as (x int, y text)",
        "create type own_range as range (subtype = float8)",
        "create domain d_text as text",
        "create domain d_comp as comp",
        f"create table t (id int primary key, {columns}, d int[][])",
        "alter table t replica identity full",
        f"insert into t values (1, {values}, '{{{{1,2}},{{3,4}}}}')",
    )
    signals = tmp_path / "signals"
    config = {
        **postgres.config,
        **more,
        "signal.enabled.channels": "file",
        "signal.file": str(signals),
        "signal.poll.interval.ms": "0",
        "read.only": "true",
    }
    with TaskRun(PostgresTask, config) as run:
        found = run.take(1)
        postgres.execute("update t set id = 1")
        found += run.take(1)
        signals.write_text(json.dumps({"id": "s", "type": "execute-snapshot", "data": {"data-collections": ["public.t"]}}))
        found += run.take(1)
    assert [record.value["op"] for record in found] == ["r", "u", "r"]
    rows = [found[0].value["after"], found[1].value["before"], *(record.value["after"] for record in found[1:])]
    assert all(row == rows[0] for row in rows)
    assert rows[0]["a0"] == [1, None, 3]
    assert rows[0]["e0"] == []
    assert rows[0]["d"] == [None, None]
    names = {field.name for field in rows[0].schema.fields}
    of_points, of_composites = (f"a{list(_ARRAYS).index(type_)}" for type_ in ("point", "comp"))
    assert (of_points in names, of_composites in names) == ("sluiceway.cdc.compat" in more, "include.unknown.datatypes" in more)
