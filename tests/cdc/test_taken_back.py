# ruff: noqa: S608 (of databases of our own)
"""Random transactions of real servers that take rows back: with ``sluiceway.cdc.compat=correct`` the records equal the tables.

``SEED=7 TRANSACTIONS=1000`` chooses others, and how many.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from cdc.captured import Captured
from sluiceway.connectors.cdc.mysql import whole_transactions
from support.capture import Folded, TaskRun

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

_SEED = int(os.environ.get("SEED", "1"))
_TRANSACTIONS = int(os.environ.get("TRANSACTIONS", "200"))
_TABLES = {"t": "InnoDB", "u": "InnoDB", "m": "MyISAM"}
_NAMES = ("a", "A", "`b c`", "`d``e`", "é")
_RESTARTS = 4


class _Program:
    """Random transactions. Each statement may fail, as on keys that are there or savepoints that are not."""

    def __init__(self, seed: int, engine: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 (a load, not a secret)
        self._tables = {**_TABLES, "m": engine}
        self._temporary = 0

    def tables(self) -> list[str]:
        made = [f"create table {name} (id int primary key, v int) engine={engine}" for name, engine in self._tables.items()]
        trigger = "create trigger logs after update on u for each row insert into m values (1000 + new.v, new.id)"
        return [*made, trigger]

    def transactions(self, count: int) -> Iterator[list[str]]:
        for number in range(count):
            statements = [self._statement() for _ in range(self._random.randint(1, 12))]
            if self._random.random() < 0.15:
                yield from self._distributed(number, statements)
            else:
                yield ["begin", *statements, self._random.choice(["commit", "commit", "rollback"])]

    def _distributed(self, number: int, statements: list[str]) -> Iterator[list[str]]:
        name = f"'x{number}'"
        end = self._random.choice([f"xa commit {name}", f"xa rollback {name}"])
        one_phase = self._random.random() < 0.3
        ends = [f"xa commit {name} one phase"] if one_phase else [f"xa prepare {name}", end]
        yield [f"xa start {name}", *statements, f"xa end {name}", *ends]

    def _statement(self) -> str:
        pick = self._random
        kind = pick.random()
        if kind < 0.2:
            return f"savepoint {pick.choice(_NAMES)}"
        if kind < 0.35:
            return f"rollback to {pick.choice(['', 'savepoint '])}{pick.choice(_NAMES)}"
        if kind < 0.4:
            return f"release savepoint {pick.choice(_NAMES)}"
        if kind < 0.5:
            return self._on_temporary()
        return self._change(pick.choice(list(self._tables)), pick.randint(1, 20))

    def _on_temporary(self) -> str:
        self._temporary += 1
        return self._random.choice(
            [
                f"create temporary table x{self._temporary} (a int) engine={self._random.choice(['InnoDB', 'MyISAM'])}",
                f"create temporary table x{self._temporary} select * from t",
                f"insert into x{self._random.randint(1, self._temporary)} values (1)",
                f"drop temporary table if exists x{self._random.randint(1, self._temporary)}",
            ]
        )

    def _change(self, table: str, key: int) -> str:
        value = self._random.randint(0, 1_000_000)
        return self._random.choice(
            [
                f"insert into {table} values ({key}, {value})",
                f"insert into {table} values ({key}, {value}), ({key + 20}, {value}), ({key}, 0)",  # fails at its third row
                f"replace into {table} values ({key}, {value}), ({key + 1}, {value})",
                f"update {table} set v = {value} where id = {key}",
                f"delete from {table} where id between {key} and {key + 3}",
                f"update t, m set t.v = {value}, m.v = {value} where t.id = {key} and m.id = {key}",
                f"insert into t select id + 100, v from m where id = {key} on duplicate key update v = values(v) + 1",
                f"insert into m select id + 100, v from t where id = {key} on duplicate key update v = values(v) + 1",
            ]
        )


def _run(source: Captured, statements: list[str], settings: list[str]) -> None:
    """Execute the statements of a transaction in a session of their own, and end what is left of it."""
    with closing(source.database.connect()) as connection, closing(connection.cursor()) as cursor:
        for statement in (*settings, *statements):
            with contextlib.suppress(Exception):
                cursor.execute(statement)


def _equal(source: Captured, folded: Folded) -> bool:
    return source.equals(folded, *_TABLES)


@pytest.mark.parametrize("engine", ["MyISAM", "Aria"])
@pytest.mark.parametrize("limit", [whole_transactions.MEMORY_BYTES, 200], ids=["memory", "file"])
def test_records_equal_the_tables(binlog_source: Captured, engine: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = binlog_source
    if engine == "Aria" and "mysql" in source.task.__name__.lower():
        pytest.skip("MySQL has no Aria")
    monkeypatch.setattr(whole_transactions, "MEMORY_BYTES", limit)
    program = _Program(_SEED, engine)
    source.execute(*program.tables())
    settings = ["set session sql_mode = ''"]
    config = {
        **source.config,
        "sluiceway.cdc.compat": "correct",
        "include.schema.changes": "false",
        "tombstones.on.delete": "false",
        "provide.transaction.metadata": "true",
    }
    folded, offset = Folded(), None
    transactions = list(program.transactions(_TRANSACTIONS))
    share = -(-len(transactions) // _RESTARTS)
    for start in range(0, len(transactions), share):
        with TaskRun(source.task, config, offset) as run:
            run.fold_until(folded, lambda: _equal(source, folded))
            for statements in transactions[start : start + share]:
                _run(source, statements, settings)
            folded.add(run.take(5))  # and a crash, with the rest unread
            offset = run.offset
    with TaskRun(source.task, config, offset) as run:
        run.fold_until(folded, lambda: _equal(source, folded))


def test_debeziums_form_sends_what_is_taken_back(mariadb_source: Captured, caplog: pytest.LogCaptureFixture) -> None:
    source = mariadb_source
    source.execute("create table t (id int primary key, v int)", "insert into t values (0, 0)")
    with TaskRun(source.task, {**source.config, "include.schema.changes": "false"}) as run:
        run.take(1)
        _run(source, ["begin", "create temporary table x (a int)", "insert into t values (1, 1)", "rollback"], [])
        _run(source, ["insert into t values (2, 2)"], [])
        found: list[Any] = [record.value["after"]["id"] for record in run.take(2)]
    assert found == [1, 2]
    assert "takes changes back" in caplog.text
