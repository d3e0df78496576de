"""A test's database, for all supported kinds."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

POSTGRESQL, MYSQL, SQLITE = "postgresql", "mysql", "sqlite"  # names of dialects

HOST = "127.0.0.1"
USER = "sluiceway"
PASSWORD = "open-sesame"  # of servers that listen on the loopback interface during a test


@dataclass(frozen=True)
class DatabaseForTest:
    """An empty database. ``connect`` returns a driver connection, by default in autocommit mode, that the caller closes."""

    dialect: str
    name: str
    jdbc_url: str
    user: str = USER
    password: str = PASSWORD
    port: int = 0

    @property
    def config(self) -> dict[str, str]:
        """The connection keys for a connector's config."""
        if self.dialect == SQLITE:
            return {"connection.url": self.jdbc_url}
        return {"connection.url": self.jdbc_url, "connection.user": self.user, "connection.password": self.password}

    def connect(self, *, autocommit: bool = True) -> Any:
        if self.dialect == POSTGRESQL:
            import psycopg

            return psycopg.connect(
                host=HOST, port=self.port, user=self.user, password=self.password, dbname=self.name, autocommit=autocommit
            )
        if self.dialect == MYSQL:
            import pymysql

            return pymysql.connect(
                host=HOST,
                port=self.port,
                user=self.user,
                password=self.password,
                database=self.name,
                autocommit=autocommit,
                local_infile=True,
            )
        import sqlite3

        return sqlite3.connect(self.name, isolation_level=None if autocommit else "", timeout=30)

    def execute(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Execute one statement, commit it, and return its rows."""
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sql, parameters or ()) if parameters or self.dialect == SQLITE else cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
