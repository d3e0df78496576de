# ruff: noqa: S608 (of databases of our own)
"""Heartbeats have their turn while the connectors of change data capture are busy with a large transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cdc.configs import JSON, mariadb_config, postgres_config
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

_ROWS = 400_000
_HEARTBEATS = {"heartbeat_interval_ms": "100", "snapshot_mode": "no_data"}

Case = tuple[DatabaseForTest, dict[str, str], str, str]


@pytest.fixture(params=["postgresql", "mariadb"])
def case(request: pytest.FixtureRequest, kafka: Kafka, unique: Callable[[str], str]) -> Iterator[Case]:
    """The database, the config, the schema, and the rows of a large transaction."""
    name = unique("beats")
    if request.param == "postgresql":
        with PostgresServer() as server:
            rows = f"select g, 'text of row ' || g from generate_series(1, {_ROWS}) g"
            yield server.first, postgres_config(server.first, name, **_HEARTBEATS), "public", rows
    else:
        with MariaDbServer(binlog=True) as server:
            server.execute("create database shop")
            database = server.database("shop")
            rows = f"select seq, concat('text of row ', seq) from seq_1_to_{_ROWS}"
            yield database, mariadb_config(database, name, kafka.bootstrap, **_HEARTBEATS), "shop", rows


def test_heartbeats_come_during_a_large_transaction(case: Case, kafka: Kafka) -> None:
    database, config, schema, rows = case
    database.execute("create table t (id int primary key, b varchar(50))")
    topic = kafka.create(f"{config['name']}.{schema}.t")
    beats = kafka.create(f"__debezium-heartbeat.{config['name']}")
    worker = {"bootstrap.servers": kafka.bootstrap, **JSON, "offset.flush.interval.ms": "1000"}
    with RunningTask(config, worker) as task:
        numbers = iter(range(_ROWS + 1, 2 * _ROWS))

        def started() -> bool:
            database.execute(f"insert into t values ({next(numbers)}, '')")
            return kafka.count(topic) > 0

        eventually(started, what="the first record")
        database.execute(f"insert into t {rows}")
        eventually(lambda: kafka.count(topic) > _ROWS // 10, what="the begin of the transaction")
        before = kafka.count(beats)
        eventually(lambda: kafka.count(topic) > _ROWS * 9 // 10, what="its end")
        during = kafka.count(beats) - before
        assert not task.stop().failed
    assert during >= 3
