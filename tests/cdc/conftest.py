"""Fixtures of the tests of change data capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cdc.captured import Captured, captured_binlog, captured_postgres
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.mysql import MySqlServer
from support.postgres import PostgresServer


@pytest.fixture
def kafka(kafka_bootstrap: str) -> Kafka:
    return Kafka(kafka_bootstrap)


@pytest.fixture
def postgres(postgresql_server: PostgresServer, unique: Callable[[str], str]) -> Iterator[Captured]:
    with captured_postgres(postgresql_server, unique("c")) as source:
        yield source


@pytest.fixture(scope="module")
def binlog_server() -> Iterator[MariaDbServer]:
    with MariaDbServer(binlog=True) as server:
        yield server


@pytest.fixture(scope="module")
def mysql_server() -> Iterator[MySqlServer]:
    with MySqlServer() as server:
        yield server


@pytest.fixture
def mariadb_source(binlog_server: MariaDbServer, kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[Captured]:
    with captured_binlog(binlog_server, kafka_bootstrap, unique("c")) as source:
        yield source


@pytest.fixture
def mysql_source(mysql_server: MySqlServer, kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[Captured]:
    with captured_binlog(mysql_server, kafka_bootstrap, unique("c")) as source:
        yield source


@pytest.fixture(
    params=["postgres", pytest.param("mariadb_source", marks=[pytest.mark.long, pytest.mark.kafka])],
    ids=["postgresql", "mariadb"],
)
def source(request: pytest.FixtureRequest) -> Captured:
    found: Captured = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["mariadb_source", "mysql_source"], ids=["mariadb", "mysql"])
def binlog_source(request: pytest.FixtureRequest) -> Captured:
    found: Captured = request.getfixturevalue(request.param)
    return found
