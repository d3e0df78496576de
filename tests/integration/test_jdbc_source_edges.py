# ruff: noqa: S608 (of a database of our own)
"""JdbcSource where databases are not as one would like them: odd zones, types, moments, and tables that go at the wrong one."""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from typing import Any

import pytest
from sluiceway.connectors.jdbc import source_reader
from sluiceway.connectors.jdbc.source import JdbcSourceConnector
from sluiceway.connectors.jdbc.source_horizon import MySqlHorizon
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.testing import MemoryOffsets
from sluiceway.testing.running import RunningSource

from support.databases import DatabaseForTest, mariadb_process

UTC = dt.timezone.utc


def config_of(database: DatabaseForTest, mode: str, **more: str) -> dict[str, str]:
    keys = {name.replace("_", "."): value for name, value in more.items()}
    return {**database.config, "mode": mode, "topic.prefix": "t-", "poll.interval.ms": "20", "connection.attempts": "1", **keys}


@pytest.mark.parametrize("zone", ["EST5", "CET-1"])
def test_a_transaction_of_mariadb_begins_when_it_began_whatever_the_servers_zone(zone: str) -> None:
    with mariadb_process(zone=zone) as server, closing(server.connect(autocommit=False)) as late:
        late.cursor().execute("start transaction with consistent snapshot")
        late.cursor().execute("create temporary table t (id integer)")
        late.cursor().execute("select * from mysql.innodb_table_stats for update")
        with closing(server.connect()) as connection:
            horizon = MySqlHorizon(server.connect)
            since, now = horizon.open_since(connection), horizon.clock(connection)
        assert since is not None
        assert abs((now - since).total_seconds()) < 60
