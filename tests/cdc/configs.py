"""Configs of the connectors of change data capture for tests, on a test's database."""

from __future__ import annotations

from support.database import HOST, DatabaseForTest

JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
MARIADB = "io.debezium.connector.mariadb.MariaDbConnector"
MYSQL = "io.debezium.connector.mysql.MySqlConnector"


def postgres_config(database: DatabaseForTest, name: str, **more: str) -> dict[str, str]:
    """Return a config; ``name`` names the connector, the prefix of its topics, and its slot. Keywords have _ for dots."""
    return {
        **_common(POSTGRES, database, name),
        "database.dbname": database.name,
        "plugin.name": "pgoutput",
        "slot.name": name.replace("-", "_"),
        "publication.name": name.replace("-", "_"),
        "slot.max.retries": "100",
        "slot.retry.delay.ms": "300",
        **_keys(more),
    }


def mariadb_config(database: DatabaseForTest, name: str, bootstrap: str, **more: str) -> dict[str, str]:
    """Return a config; ``name`` names the connector, the prefix of its topics, and its history topic."""
    return {**_binlog(MARIADB, database, name, bootstrap), **_keys(more)}


def mysql_config(database: DatabaseForTest, name: str, bootstrap: str, **more: str) -> dict[str, str]:
    """Return a config like ``mariadb_config``."""
    return {**_binlog(MYSQL, database, name, bootstrap), **_keys(more)}


def _binlog(connector: str, database: DatabaseForTest, name: str, bootstrap: str) -> dict[str, str]:
    return {
        **_common(connector, database, name),
        "database.server.id": "4711",
        "database.include.list": database.name,
        "schema.history.internal.kafka.topic": f"{name}-history",
        "schema.history.internal.kafka.bootstrap.servers": bootstrap,
    }


def _common(connector: str, database: DatabaseForTest, name: str) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": connector,
        "tasks.max": "1",
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": database.user,
        "database.password": database.password,
        "topic.prefix": name,
        "retriable.restart.connector.wait.ms": "500",
        "poll.interval.ms": "50",
        **JSON,
    }


def _keys(more: dict[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in more.items()}
