"""A connector to a database whose Python package is missing or too old is refused with what to install."""

from __future__ import annotations

import re
import sys

import pytest
import sqlalchemy

from sluiceway.connectors.cdc.mysql.connector import MariaDbConnector
from sluiceway.connectors.cdc.postgres.connector import PostgresConnector
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
from sluiceway.connectors.jdbc.dialects import parse_url
from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

SERVER = {"name": "c", "topic.prefix": "p", "database.hostname": "127.0.0.1", "database.port": "1", "database.user": "u"}
HISTORY = {"schema.history.internal.kafka.topic": "h", "schema.history.internal.kafka.bootstrap.servers": "127.0.0.1:1"}
MARIADB = {"database.server.id": "1", "database.password": "p", **HISTORY}


@pytest.mark.parametrize(
    ("connector", "more", "package"),
    [
        (MariaDbConnector, MARIADB, "pymysql"),
        (PostgresConnector, {"database.dbname": "d", "database.password": "p"}, "psycopg"),
    ],
)
def test_validation_of_change_data_capture_names_the_package(
    connector: type[MariaDbConnector] | type[PostgresConnector],
    more: dict[str, str],
    package: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    config = {**SERVER, **more, "connector.class": connector.__name__}
    errors = [error for value in connector.validate(config).values() for error in value.errors]
    assert any(f"the Python package {package}. Run: {install_command('jdbc')}" in error for error in errors), errors


@pytest.mark.parametrize(
    ("url", "package"),
    [("jdbc:postgresql://h/d", "psycopg"), ("jdbc:mariadb://h/d", "pymysql"), ("jdbc:sqlite:/d.db", "sqlalchemy")],
)
def test_the_jdbc_connectors_name_the_package(url: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingToolError, match=re.escape(f"{package} is missing. Run {install_command('jdbc')}")):
        _ = Database(ConnectionSettings(parse_url(url))).engine


def test_the_jdbc_connectors_refuse_the_sqlalchemy_of_airflow_3_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlalchemy, "__version__", "1.4.54")
    with pytest.raises(MissingToolError, match=r"need SQLAlchemy 2; this is 1\.4\.54.*Airflow 3\.1 or newer"):
        _ = Database(ConnectionSettings(parse_url("jdbc:sqlite:/d.db"))).engine
