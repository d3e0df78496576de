"""The JDBC sink's task under concurrent changes: lost responses to commits, tables that other tasks change."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.writer import Writer
from sluiceway.connectors.jdbc.sink.tables import Tables
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, Schema
from sluiceway.errors import FencedError, RetriableError
from support.database import DatabaseForTest
from support.jdbc_sink import KEYED, Sink, person, record, sink

PEOPLE = "select id, name from people order by id"


class LostAnswer:
    """A driver connection whose next commit succeeds, but whose response is lost."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.armed = True

    def commit(self) -> None:
        self._connection.commit()
        if self.armed:
            raise ConnectionResetError("Connection reset by peer")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def writer_of(made: Sink) -> Writer:
    session = made.task._session
    assert session is not None
    assert session._connected is not None
    return session._connected.writer


def test_a_commit_whose_response_is_lost_is_not_repeated(database: DatabaseForTest) -> None:
    with sink(database, pk_mode="none", auto_create="true") as made:
        made.put(person(0, 1, "a"))
        writer = writer_of(made)
        writer.connection = LostAnswer(writer.connection)
        batch = [person(1, 2, "b"), person(2, 3, "c")]
        with pytest.raises(RetriableError):
            made.put(*batch)
        made.put(*batch, person(3, 4, "d"))
        assert made.rows(PEOPLE) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
        made.put(person(4, 5, "e"))
        assert made.rows("select next_offset from sluiceway_offsets") == [(5,)]


def test_a_task_that_was_replaced_while_a_commits_response_was_lost_writes_nothing(database: DatabaseForTest) -> None:
    with sink(database, pk_mode="none", auto_create="true") as earlier:
        earlier.put(person(0, 1, "a"))
        writer = writer_of(earlier)
        writer.connection = LostAnswer(writer.connection)
        with pytest.raises(RetriableError):
            earlier.put(person(1, 2, "b"))
        with sink(database, pk_mode="none") as later:
            later.put(person(2, 3, "c"))
            with pytest.raises((RetriableError, FencedError)):
                earlier.put(person(1, 2, "b"), person(2, 3, "c"))
            assert later.rows(PEOPLE) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_tasks_that_add_the_same_columns_at_once_do_not_fail_each_other(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    database: DatabaseForTest = request.getfixturevalue(name)
    wide = Schema.struct({"id": INT64_SCHEMA, **dict.fromkeys(("a", "b", "c"), OPTIONAL_STRING_SCHEMA)})
    row = record(0, {"id": 1}, {"id": 1, "a": "x", "b": "y", "c": "z"}, schema=wide)
    database.execute("create table people (id bigint not null primary key)")
    steps = ["alter table people add column a text", "alter table people add column b text"]
    usual = Tables._change

    def change(self: Tables, table: TableId, *more: Any) -> Any:
        if steps:
            database.execute(steps.pop(0))  # another task is a statement ahead
        return usual(self, table, *more)

    monkeypatch.setattr(Tables, "_change", change)
    with sink(database, **{**KEYED, "auto.evolve": "true"}) as made:
        made.put(row)
        assert made.rows("select a, b, c from people") == [("x", "y", "z")]
