"""Prepared XA transactions of real servers: with ``sluiceway.cdc.compat=correct`` their rows come with the commit, or never."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from cdc.configs import JSON, mariadb_config, mysql_config
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.mysql import MySqlServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

_PREPARED = ("xa start 'g1'", "insert into t values (1), (2)", "xa end 'g1'", "xa prepare 'g1'")
_OTHERS = (
    "insert into t values (10)",
    *("xa start 'g2'", "insert into t values (20)", "xa end 'g2'", "xa prepare 'g2'", "xa rollback 'g2'"),
    *("xa start 'g3'", "insert into t values (30)", "xa end 'g3'", "xa commit 'g3' one phase"),
)


@pytest.mark.parametrize("kind", [MariaDbServer, MySqlServer])
def test_rows_come_with_the_commit_also_after_a_restart(
    kind: type[MariaDbServer] | type[MySqlServer], kafka: Kafka, unique: Callable[[str], str]
) -> None:
    name, offsets = unique("xa"), Offsets()
    worker = {"bootstrap.servers": kafka.bootstrap, **JSON, "offset.flush.interval.ms": "200"}
    with MariaDbServer(binlog=True) if kind is MariaDbServer else MySqlServer() as server:
        database = server.database(name.replace("-", "_"))
        server.execute(f"create database {database.name}")
        database.execute("create table t (id int primary key)")
        build = mariadb_config if kind is MariaDbServer else mysql_config
        config = build(database, name, kafka.bootstrap, snapshot_mode="no_data", sluiceway_cdc_compat="correct")
        topic = kafka.create(f"{name}.{database.name}.t")

        def rows(count: int) -> list[int]:
            eventually(lambda: kafka.count(topic) >= count, what=f"{count} records")
            return [json.loads(message.value() or b"")["after"]["id"] for message in kafka.read(topic, count)]

        with database.connect() as preparing, database.connect() as other:
            with RunningTask(config, worker, offsets=offsets) as task:
                eventually(lambda: bool(offsets.all(name)), what="the first offset")
                for statement in _PREPARED:
                    preparing.cursor().execute(statement)
                for statement in _OTHERS:
                    other.cursor().execute(statement)
                assert rows(2) == [10, 30]
                assert not task.stop().failed
            assert "6731" in str(offsets.all(name))
            server.execute("flush binary logs")
            preparing.cursor().execute("xa commit 'g1'")
            database.execute("insert into t values (40)")
            with RunningTask(config, worker, offsets=offsets) as task:
                assert rows(5) == [10, 30, 1, 2, 40]
                assert not task.stop().failed
        assert kafka.count(topic) == 5
