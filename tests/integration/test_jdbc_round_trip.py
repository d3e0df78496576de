# ruff: noqa: S608 (of databases of our own)
"""Every type from a table through a topic into a table, with both JDBC connectors and JsonConverter."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from integration.test_jdbc_source_types import MARIADB, POSTGRESQL
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.testing import MemoryConnectorContext, run_source
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.jdbc_sink import JSON

pytestmark = pytest.mark.kafka

TYPES = {"postgresql": POSTGRESQL, "mariadb": MARIADB}
NAMES = {"postgresql": "postgresql", "mysql": "mariadb"}  # fixtures by dialect
# Connect's times have milliseconds, and no zones.
ROUNDED = {".123456": ".123", "'23:00:00+02'": "'21:00:00+00'"}
ROWS = 40  # so many that PostgreSQL's upserts go through a staging table
KEYED = {"pk.mode": "record_value", "pk.fields": "id"}


@pytest.fixture(params=["postgresql", "mariadb"])
def origin(request: pytest.FixtureRequest) -> DatabaseForTest:
    """A database with the table ``origin`` of all types; every second row has nulls only."""
    database: DatabaseForTest = request.getfixturevalue(request.param)
    if request.param == "postgresql":
        database.execute("create type mood as enum ('sad', 'happy')")
        database.execute("create domain positive as int check (value > 0)")
    types = TYPES[request.param]
    fields = ", ".join(f"c{number} {text}" for number, text in enumerate(types))
    database.execute(f"create table origin (id integer not null primary key, {fields})")
    full = ", ".join(rounded(literal) for literal, _, _ in types.values())
    empty = ", ".join("null" for _ in types)
    with closing(database.connect()) as connection, closing(connection.cursor()) as cursor:
        for number in range(ROWS):
            cursor.execute(f"insert into origin values ({number}, {empty if number % 2 else full})")
    return database


def rounded(literal: str) -> str:
    for exact, kept in ROUNDED.items():
        literal = literal.replace(exact, kept)
    return literal


def copied(database: DatabaseForTest, bootstrap: str, prefix: str, sink: dict[str, str]) -> None:
    """Copy the table ``origin`` to a topic, and the topic into a table."""
    worker = {"bootstrap.servers": bootstrap}
    common = {**JSON, **database.config}
    source = {
        **common,
        "name": f"{prefix}source",
        "connector.class": "JdbcSource",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": "origin",
        "topic.prefix": prefix,
    }
    connector = JdbcSourceConnector()
    connector.initialize(MemoryConnectorContext())
    connector.start(source)
    [task] = connector.task_configs(1)
    connector.stop()
    with RunningTask({**source, **task}, worker, bounded=True) as running:
        assert (running.join().trace, running.join().records) == (None, ROWS)
    into = {**common, "name": f"{prefix}sink", "connector.class": "JdbcSink", "topics": f"{prefix}origin", **sink}
    with RunningTask(into, worker, bounded=True) as running:
        assert (running.join().trace, running.join().records) == (None, ROWS)


@pytest.mark.parametrize(
    "way",
    [{"insert.mode": "insert"}, {"insert.mode": "upsert", **KEYED}, {"insert.mode": "upsert", "batch.size": "5", **KEYED}],
    ids=["insert", "upsert", "upserts-of-few-rows"],
)
def test_a_table_of_all_types_is_copied_into_a_table_of_the_same_types(
    origin: DatabaseForTest, kafka_bootstrap: str, unique: Callable[[str], str], way: dict[str, str]
) -> None:
    origin.execute("create table target (like origin)" if origin.dialect == "postgresql" else "create table target like origin")
    if origin.dialect == "postgresql":
        origin.execute("alter table target add primary key (id)")
    copied(origin, kafka_bootstrap, unique("copy") + "-", {"table.name.format": "target", **way})
    names = ["id", *(f"c{number}" for number in range(len(TYPES[NAMES[origin.dialect]])))]
    for name in names:  # as the database itself sees them
        text = f"{name}::text" if origin.dialect == "postgresql" else f"hex({name})"
        columns = f"select id, {text} from {{}} order by 1"
        assert (name, origin.execute(columns.format("target"))) == (name, origin.execute(columns.format("origin")))


def test_a_table_of_all_types_is_copied_into_a_created_table(
    origin: DatabaseForTest, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    into = {"table.name.format": "target", "auto.create": "true", "insert.mode": "upsert", **KEYED}
    copied(origin, kafka_bootstrap, unique("copy") + "-", into)
    assert values(origin, "target") == values(origin, "origin")


def values(database: DatabaseForTest, table: str) -> list[list[Any]]:
    """Return a table's rows as Connect's values, decimals as texts, because PostgreSQL's unlimited ones are read so."""
    config = {**database.config, "mode": "bulk", "topic.prefix": "t-", "query": f"select * from {table} order by id"}
    found = run_source(JdbcSourceConnector, config, records=ROWS)[:ROWS]
    return [[str(value) if isinstance(value, Decimal) else value for value in record.value.values()] for record in found]
