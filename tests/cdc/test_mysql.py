"""A real MySQL, plain and with compressed transactions: the log's records have the values of the snapshot's, without a gap."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cdc.configs import JSON, mysql_config
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.mysql import MySqlServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

COLUMNS = {
    "bool": ("tinyint(1)", "{n} % 2"),
    "tiny": ("tinyint unsigned", "{n} + 100"),
    "big": ("bigint unsigned", "18446744073709551615 - {n}"),
    "price": ("decimal(12,4)", "-{n} / 8"),
    "single": ("float", "{n} / 4"),
    "ratio": ("double", "{n} / 3"),
    "day": ("date", "date_add('1969-12-20', interval {n} day)"),
    "clock": ("time(3)", "sec_to_time({n} * 1000.125)"),
    "moment": ("datetime(6)", "date_add('1999-12-31 23:59:59.123456', interval {n} second)"),
    "zoned": ("timestamp(6) null", "date_add('2001-01-01 00:00:00.500001', interval {n} minute)"),
    "since": ("year", "1990 + {n} % 100"),
    "name": ("varchar(300)", "concat('ż\\\\n\\t\\'', repeat('x', {n}))"),
    "latin": ("varchar(20) character set latin2", "if({n} % 3, 'żó', null)"),
    "fixed": ("char(9)", "'ab  '"),
    "note": ("text", "repeat('€', {n} * 50)"),
    "raw": ("varbinary(40)", "unhex(sha2({n}, 256))"),
    "flags": ("bit(9)", "{n}"),
    "size": ("enum('small','large')", "1 + {n} % 2"),
    "tags": ("set('r','g','b')", "{n} % 8"),
    "place": ("point", "point({n}, 1)"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[MySqlServer]:
    with MySqlServer() as started:
        yield started


@pytest.mark.parametrize("compressed", [False, True])
def test_the_log_continues_the_snapshot(
    server: MySqlServer, kafka: Kafka, unique: Callable[[str], str], compressed: bool
) -> None:
    name, offsets = unique("mysql"), Offsets()
    database = server.database(name.replace("-", "_"))
    server.execute(f"create database {database.name}")
    server.execute(f"set global binlog_transaction_compression = {int(compressed)}")
    declared = ", ".join(f"`{column}` {kind}" for column, (kind, _) in COLUMNS.items())
    for table in ("t", "u"):
        database.execute(f"create table {table} (id int primary key, {declared})")
    for number in range(1, 101):
        values = ", ".join(value.format(n=number) for _, value in COLUMNS.values())
        database.execute(f"insert into t values ({number}, {values})")  # noqa: S608
    config = mysql_config(database, name, kafka.bootstrap)
    worker = {"bootstrap.servers": kafka.bootstrap, **JSON, "offset.flush.interval.ms": "500"}
    topics = {table: kafka.create(f"{name}.{database.name}.{table}") for table in ("t", "u")}

    def afters(table: str, count: int) -> list[dict[str, Any] | None]:
        eventually(lambda: kafka.count(topics[table]) == count, what=f"{count} records of {table}")
        values = [message.value() for message in kafka.read(topics[table], count)]
        return [value and json.loads(value)["after"] for value in values]

    with RunningTask(config, worker, offsets=offsets) as task:
        snapshot = afters("t", 100)
        database.execute("insert into u select * from t where id <= 60")  # many rows of an event become columns
        for number in range(61, 101):
            database.execute(f"insert into u select * from t where id = {number}")  # noqa: S608
        for logged, read in zip(afters("u", 100), snapshot, strict=True):
            assert logged is not None
            assert read is not None
            assert {key: (value, read[key]) for key, value in logged.items() if value != read[key]} == {}
        assert not task.stop().failed
    database.execute("update u set price = price + 1 where id = 7")
    database.execute("alter table u add column more int default 5 after id")
    database.execute("delete from u where id = 8")
    database.execute("update u set more = 6 where id = 9")
    with RunningTask(config, worker, offsets=offsets):
        changed, deleted, tombstone, widened = afters("u", 104)[100:]
    before = {row["id"]: row for row in snapshot if row is not None}
    assert (deleted, tombstone) == (None, None)
    assert changed is not None
    assert changed["id"] == 7
    assert {key for key, value in changed.items() if value != before[7][key]} == {"price"}
    assert widened == {**before[9], "more": 6}


_UPDATES = (
    "json_set(j, '$.a[2].b', 'q')",
    "json_remove(j, '$.a[0]')",
    "json_insert(j, '$.z', json_object('y', 1.25), '$.list', json_array())",
    "json_array_insert(j, '$.a[0]', 'first', '$.list[0]', json_array(1))",
    "json_replace(j, '$.\"long name\"', cast('2020-01-01' as date))",
    "json_object('other', true)",
    'json_merge_patch(j, \'{"other": null, "ż": [1e10, "\\\\\\\\"]}\')',
)


def test_partial_documents_and_tagged_gtids_are_read(server: MySqlServer, kafka: Kafka, unique: Callable[[str], str]) -> None:
    name, offsets = unique("partial"), Offsets()
    database = server.database(name.replace("-", "_"))
    server.execute(f"create database {database.name}")
    database.execute("create table t (id int primary key, k json, j json)")
    worker = {"bootstrap.servers": kafka.bootstrap, **JSON, "offset.flush.interval.ms": "200"}
    config = mysql_config(database, name, kafka.bootstrap, snapshot_mode="no_data")
    topic = kafka.create(f"{name}.{database.name}.t")
    expected: list[Any] = []

    def changes() -> list[Any]:
        eventually(lambda: kafka.count(topic) >= len(expected), what=f"{len(expected)} records")
        return [json.loads(json.loads(message.value() or b"")["after"]["j"]) for message in kafka.read(topic, len(expected))]

    with database.connect() as connection, connection.cursor() as cursor:

        def execute(statement: str) -> None:
            cursor.execute(statement)
            cursor.execute("select cast(j as char) from t where id = 1")
            row = cursor.fetchone()
            assert row is not None
            expected.append(json.loads(str(row[0])))

        cursor.execute("set session binlog_row_value_options = PARTIAL_JSON")
        with RunningTask(config, worker, offsets=offsets) as task:
            eventually(lambda: bool(offsets.all(name)), what="the first offset")
            execute("""insert into t values (1, '1', '{"a": [1, 2, {"b": "ż"}], "f": 1.5, "long name": null, "s": "abc"}')""")
            for update in _UPDATES:
                execute(f"update t set j = {update}")  # noqa: S608
            assert changes() == expected
            assert not task.stop().failed
        for tag in ("blue", "green", "blue"):
            cursor.execute(f"set gtid_next = 'AUTOMATIC:{tag}'")
            execute(f"update t set j = json_set(j, '$.tag', '{tag}')")  # noqa: S608
        with RunningTask(config, worker, offsets=offsets) as task:  # starts at a set without tags
            assert changes() == expected
            assert not task.stop().failed
        execute("update t set j = json_set(j, '$.tag', 'last')")
        with RunningTask(config, worker, offsets=offsets) as task:  # starts at a set with tags
            assert changes() == expected
            assert not task.stop().failed
        assert kafka.count(topic) == len(expected)
        assert ":blue:1-2" in str(offsets.all(name))
