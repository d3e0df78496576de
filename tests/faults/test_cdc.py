"""Change data capture while tasks and drivers are killed, the database is restarted, and its network is cut.

The database has a mixed load with DDL, and the source runs exactly once. Its topics must add up to the tables, have each change
once, and have the changes of a key in their order. KILLS sets the number of kills for each database, SEED repeats a run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from support.database import HOST, DatabaseForTest
from support.database_server import DatabaseServer
from support.eventually import LIMIT, eventually
from support.faults.cdc_kills import disturb, kills
from support.faults.cdc_load import ROWS, Load, differences, fold
from support.faults.guarantee import Guarantee
from support.faults.proxy import TcpProxy
from support.faults.rows import NewRow
from support.faults.worker_group import Progress, WorkerGroup, read
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(7200)]

_RETRIES = {"retriable.restart.connector.wait.ms": "500", "offset.flush.interval.ms": "1000", "exactly.once.support": "required"}


@pytest.fixture
def guarantee() -> Guarantee:
    return Guarantee.EXACTLY_ONCE


def number_of(_key: bytes | None, value: bytes | None) -> int:
    return int(json.loads(value or b"")["after"]["n"])


def test_topics_of_postgresql_equal_the_tables(group: WorkerGroup, row: NewRow) -> None:
    with PostgresServer() as server:
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.dbname": "postgres",
            "slot.name": "kills",
            "slot.max.retries": "200",
            "slot.retry.delay.ms": "500",
            "status.update.interval.ms": "1000",
            "table.include.list": "public.marks,public.things",
        }
        check(group, row, server, server.first, config, "public")


def test_topics_of_mariadb_equal_the_tables(group: WorkerGroup, row: NewRow) -> None:
    with MariaDbServer(binlog=True) as server:
        server.execute("create database load_test")
        config = {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.server.id": "4711",
            "database.include.list": "load_test",
            "table.include.list": "load_test.marks,load_test.things",
            "schema.history.internal.kafka.topic": f"{group.name}-history",
            "schema.history.internal.kafka.bootstrap.servers": group.address,
        }
        check(group, row, server, server.database("load_test"), config, "load_test")


def check(
    group: WorkerGroup, row: NewRow, server: DatabaseServer, database: DatabaseForTest, config: Mapping[str, str], schema: str
) -> None:
    """Disturb a connector under load, and compare its topics with the tables."""
    made = row(f"change data capture from {server.name}, {kills()} kills", Guarantee.EXACTLY_ONCE.value)
    marks, things = (f"{group.name}.{schema}.{table}" for table in ("marks", "things"))
    admin = AdminClient({"bootstrap.servers": group.address})  # kept in a variable: its futures end with it
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in (marks, things)]).values():
        future.result(LIMIT)
    load = Load(database, random.Random(1))  # noqa: S311 (test data)
    load.create()
    with ExitStack() as stack:
        proxy = stack.enter_context(TcpProxy(server.port))
        user = {"database.user": database.user, "database.password": database.password}
        address = {"database.hostname": HOST, "database.port": str(proxy.port), "topic.prefix": group.name}
        group.herder.create(group.name, {**config, **user, **address, **_RETRIES})
        group.driver()
        group.running()
        kafka = Kafka(group.address)
        eventually(lambda: kafka.count(things) >= ROWS, what="the snapshot")  # later changes are in the log
        progress = Progress(group.address, marks, number_of)
        stack.callback(progress.close)
        with load.running():
            disturb(group, server, proxy, lambda count, driver: progress.more(count, driver=driver), made)
        last = database.execute("select max(n) from marks")[0][0]
        eventually(lambda: progress.highest >= last, what=f"transaction {last}")
        group.drain(group.drivers[-1])
    found = fold(
        (message.value for message in read(group.address, marks)),
        ((message.key, message.value) for message in read(group.address, things)),
    )
    wrong = differences(found, load, database)
    made.lost, made.duplicated = sum("lost" in each for each in wrong), found.duplicated
    made.seen = (
        f"{len(found.marks)} transactions, {len(found.numbers)} changes, {load.statements} x DDL, {len(found.disorder)} reordered"
    )
    print(f"{made.fault}: {made.seen}, {made.lost} lost, {made.duplicated} duplicated", flush=True)
    assert wrong == []
    assert found.duplicated == 0
    assert found.disorder == []
