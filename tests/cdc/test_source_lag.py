"""The lag of the connectors of change data capture: it grows while they cannot read, and ends when they have caught up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cdc.configs import mariadb_config, postgres_config
from sluiceway.api import SourceConnector
from sluiceway.connectors.cdc.mysql.connector import MariaDbConnector
from sluiceway.connectors.cdc.postgres.connector import PostgresConnector
from sluiceway.testing.running import RunningSource
from support.database import DatabaseForTest
from support.eventually import eventually
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(300)]

Case = tuple[type[SourceConnector], DatabaseForTest, dict[str, str]]


@pytest.fixture(params=["postgresql", "mariadb"])
def case(request: pytest.FixtureRequest, kafka: Kafka, unique: Callable[[str], str]) -> Iterator[Case]:
    name = unique("lag")
    if request.param == "postgresql":
        with PostgresServer() as server:
            server.execute("create database shop")
            database: DatabaseForTest = server.database("shop")
            yield PostgresConnector, database, postgres_config(database, name)
    else:
        with MariaDbServer(binlog=True) as server:
            server.execute("create database shop")
            database = server.database("shop")
            yield MariaDbConnector, database, mariadb_config(database, name, kafka.bootstrap)


def test_the_lag_ends_when_all_changes_are_read_and_grows_while_none_are(case: Case) -> None:
    connector, database, config = case
    database.execute("create table t (id int primary key)")
    with RunningSource(connector, config, seconds=60) as source:
        (task,) = source.tasks

        def lag() -> float:
            source.poll()
            seconds = task.source_lag().seconds
            return 3600.0 if seconds is None else seconds

        eventually(lambda: lag() < 1, what="the end of the snapshot")
        database.execute("insert into t values (1)")
        eventually(lambda: any(record.value is not None for record in source.poll()), what="the change")
        assert task.source_lag().seconds is not None
        eventually(lambda: (task.source_lag().seconds or 0) > 2, what="a lag of two seconds without a poll")
        eventually(lambda: lag() < 1, what="the end of the lag")
