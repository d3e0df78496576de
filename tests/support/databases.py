"""Provides real databases as fixtures: PostgreSQL 15 and MariaDB 10.11 servers, and SQLite files.

A server starts with the first test that requests it and stops with the test session, even if that is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.database import SQLITE, DatabaseForTest
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresServer]:
    """The PostgreSQL server of this test session."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDbServer]:
    """The MariaDB server of this test session."""
    with MariaDbServer() as server:
        yield server


@pytest.fixture
def postgresql(postgresql_server: PostgresServer, unique: Callable[[str], str]) -> Iterator[DatabaseForTest]:
    """An empty PostgreSQL database."""
    name = unique("db").replace("-", "_")
    postgresql_server.execute(f"create database {name}")
    yield postgresql_server.database(name)
    postgresql_server.execute(f"drop database {name} with (force)")


@pytest.fixture
def mariadb(mariadb_server: MariaDbServer, unique: Callable[[str], str]) -> Iterator[DatabaseForTest]:
    """An empty MariaDB database."""
    name = unique("db").replace("-", "_")
    mariadb_server.execute(f"create database {name}")
    yield mariadb_server.database(name)
    mariadb_server.execute(f"drop database {name}")


@pytest.fixture
def sqlite(tmp_path: Path) -> DatabaseForTest:
    """An empty SQLite database."""
    file = tmp_path / "test.db"
    return DatabaseForTest(SQLITE, str(file), f"jdbc:sqlite:{file}")


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> DatabaseForTest:
    """An empty database of each kind in turn."""
    found: DatabaseForTest = request.getfixturevalue(request.param)
    return found
