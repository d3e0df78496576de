"""Databases that a test captures, one for each test, with the configs of their tasks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from sluiceway.api import SourceTask
from sluiceway.connectors.cdc.mysql.task import MariaDbSourceTask, MySqlSourceTask
from sluiceway.connectors.cdc.postgres.task import PostgresTask
from support.capture import Folded
from support.database import HOST, PASSWORD, USER, DatabaseForTest
from support.mariadb import MariaDbServer
from support.mysql import MySqlServer
from support.postgres import PostgresServer, drop_slots

_NUMBERS = itertools.count(60_000)


@dataclass
class Captured:
    """A captured database. ``schema`` begins the names of its tables in filters and topics."""

    database: DatabaseForTest
    task: type[SourceTask]
    schema: str
    config: dict[str, str] = field(default_factory=dict)

    @property
    def is_postgres(self) -> bool:
        return self.task is PostgresTask

    def execute(self, *statements: str) -> None:
        """Execute statements, each in a transaction of its own."""
        with closing(self.database.connect()) as connection, closing(connection.cursor()) as cursor:
            for statement in statements:
                cursor.execute(statement)

    def fill(self, table: str, rows: int) -> None:
        """Create a table ``(id, v)`` with the keys from 1 on."""
        numbers: dict[type[SourceTask], str] = {
            PostgresTask: f"generate_series(1, {rows}) as t(seq)",
            MariaDbSourceTask: f"seq_1_to_{rows}",
            MySqlSourceTask: f"json_table(concat('[0', repeat(',0', {rows - 1}), ']'), '$[*]' columns (seq for ordinality)) as t",
        }
        self.execute(
            f"create table {table} (id int primary key, v int)",
            f"insert into {table} select seq, 0 from {numbers[self.task]}",  # noqa: S608 (a test's own database)
            f"analyze {table}" if self.is_postgres else f"analyze table {table}",
        )

    def equals(self, folded: Folded, *tables: str) -> bool:
        """Tell whether records lead to the tables ``(id, v)`` as they are."""
        for table in tables:
            rows = self.database.execute(f"select * from {table}")  # noqa: S608
            if folded.tables.get(f"c.{self.schema}.{table}", {}) != {(row[0],): tuple(row) for row in rows}:
                return False
        return True


def _common(server: PostgresServer | MariaDbServer | MySqlServer) -> dict[str, str]:
    return {
        "database.hostname": HOST,
        "database.port": str(server.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "topic.prefix": "c",
    }


@contextmanager
def captured_postgres(server: PostgresServer, name: str) -> Iterator[Captured]:
    """Create a database of that name; drop it and its slot at the end."""
    name = name.replace("-", "_")
    server.first.execute(f"create database {name}")
    # The test server's commits are not: the log's end may then be before them.
    server.first.execute(f"alter database {name} set synchronous_commit = on")
    config = {
        **_common(server),
        "database.dbname": name,
        "slot.name": name,
        "status.update.interval.ms": "100",
    }
    source = Captured(server.database(name), PostgresTask, "public", config)
    yield source
    drop_slots(source.database, f"slot_name = '{name}'")
    server.first.execute(f"drop database {name} with (force)")


@contextmanager
def captured_binlog(server: MariaDbServer | MySqlServer, bootstrap: str, name: str) -> Iterator[Captured]:
    """Create a database of that name, and drop it at the end. The schema history is the topic of that name."""
    name = name.replace("-", "_")
    server.first.execute(f"create database {name} character set utf8mb4")
    config = {
        **_common(server),
        "database.server.id": str(next(_NUMBERS)),
        "database.include.list": name,
        "schema.history.internal.kafka.bootstrap.servers": bootstrap,
        "schema.history.internal.kafka.topic": name,
    }
    task = MariaDbSourceTask if isinstance(server, MariaDbServer) else MySqlSourceTask
    yield Captured(server.database(name), task, name, config)
    server.first.execute(f"drop database {name}")
