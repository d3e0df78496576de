"""A load of overlapping transactions and DDL on a database that may be restarted, and the check of the topics against it."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.database import DatabaseForTest
from support.eventually import LIMIT

KEYS, ROWS = 300, 20  # keys in all, and rows before the load
_DDL_EVERY = 40  # transactions
_WAIT_SECONDS = 0.2  # for a database that is being restarted


class Load:
    """Writes until ``stop``. Every transaction inserts its number into ``marks``, and changes rows of ``things``.

    ``changes`` has the numbers of the changes of each transaction; those of the numbers in the table ``marks`` were committed.
    """

    def __init__(self, database: DatabaseForTest, chance: random.Random, pause: float = 0.01) -> None:
        self.changes: dict[int, list[int]] = {}
        self.statements = 0
        self._database = database
        self._chance = chance
        self._pause = pause
        self._transactions = itertools.count(1)
        self._numbers = itertools.count(1)
        self._column: str | None = None
        self._columns = itertools.count(1)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, name="load", daemon=True)
        self.error: BaseException | None = None

    def create(self) -> None:
        """Create the tables, with some rows."""
        self._database.execute("create table marks (n int primary key)")
        self._database.execute("create table things (id int primary key, number int not null, note varchar(40))")
        for key in range(ROWS):
            self._database.execute("insert into things values (%s, 0, 'before')", key)

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop writing. Raises what ended the thread."""
        self._ended.set()
        self._thread.join(LIMIT)
        if self.error is not None:
            raise self.error

    def _write(self) -> None:
        import psycopg
        import pymysql

        try:
            while not self._ended.is_set():
                try:
                    with ExitStack() as stack:
                        sessions = [stack.enter_context(closing(self._database.connect(autocommit=False))) for _ in range(2)]
                        self._write_with(*sessions)
                except (psycopg.Error, pymysql.err.Error, OSError):  # the database is being restarted
                    self._ended.wait(_WAIT_SECONDS)
        except BaseException as error:  # noqa: BLE001 (stop() raises it)
            self.error = error

    def _write_with(self, one: Any, other: Any) -> None:
        for count in itertools.count(1):
            if self._ended.wait(self._pause):
                return
            self._transaction(one, 0)
            self._transaction(other, 1)
            other.commit()
            one.commit()
            if count % (_DDL_EVERY // 2) == 0:
                self._change_structure()

    def _transaction(self, session: Any, parity: int) -> None:
        """Write a transaction without its commit; ``parity`` keeps two open ones from locking the same rows."""
        number = next(self._transactions)
        changes = self.changes[number] = []
        with closing(session.cursor()) as cursor:
            cursor.execute("insert into marks values (%s)", (number,))
            for _ in range(self._chance.randint(1, 6)):
                key = self._chance.randrange(KEYS // 2) * 2 + parity
                cursor.execute("select 1 from things where id = %s", (key,))
                exists = cursor.fetchone() is not None
                change = next(self._numbers)
                if not exists:
                    cursor.execute("insert into things (id, number, note) values (%s, %s, %s)", (key, change, f"new {change}"))
                elif self._chance.random() < 0.3:
                    cursor.execute("delete from things where id = %s", (key,))
                    continue
                else:
                    more = f", {self._column} = {change}" if self._column else ""
                    update = f"update things set number = %s, note = %s{more} where id = %s"  # noqa: S608
                    cursor.execute(update, (change, f"set {change}", key))
                changes.append(change)

    def _change_structure(self) -> None:
        """Add or drop a column of the captured table, or create and drop another table."""
        self.statements += 1
        if self.statements % 3 == 0:
            name = f"other_{self.statements}"
            self._database.execute(f"create table {name} (id int primary key)")
            self._database.execute(f"insert into {name} values (1)")  # noqa: S608
            self._database.execute(f"drop table {name}")
        elif self._column is None:
            column = f"extra_{next(self._columns)}"
            self._database.execute(f"alter table things add column {column} int")
            self._column = column
        else:
            column, self._column = self._column, None
            self._database.execute(f"alter table things drop column {column}")


@dataclass(slots=True)
class Found:
    """The contents of the topics, added up."""

    marks: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    disorder: list[str] = field(default_factory=list)
    """Changes that cannot follow the one before them of the same key."""

    @property
    def duplicated(self) -> int:
        return len(self.marks) - len(set(self.marks)) + len(self.numbers) - len(set(self.numbers))


def fold(marks: Iterable[bytes | None], things: Iterable[tuple[bytes | None, bytes | None]]) -> Found:
    """Return what the values of ``marks`` and the records of ``things``, without schemas, add up to."""
    found = Found()
    found.marks = [int(json.loads(value)["after"]["n"]) for value in marks if value is not None]
    for key, value in things:
        if value is not None:
            _apply(found, int(json.loads(key or b"")["id"]), json.loads(value))
    return found


def _apply(found: Found, key: int, event: dict[str, Any]) -> None:
    before, after, op = found.rows.get(key), event["after"], event["op"]
    if op == "d":
        if found.rows.pop(key, None) is None:
            found.disorder.append(f"d of {key}, which is not there")
        return
    if op != "r":
        found.numbers.append(int(after["number"]))
    if (op in "rc") != (before is None):
        found.disorder.append(f"{op} of {key}, which is{' not' if before is None else ''} there")
    if before is not None and before["number"] >= after["number"]:
        found.disorder.append(f"{op} of {key}: {after['number']} after {before['number']}")
    found.rows[key] = after


def differences(found: Found, load: Load, database: DatabaseForTest) -> list[str]:
    """Return how the topics differ from the tables, apart from duplicates."""
    committed = {int(n) for (n,) in database.execute("select n from marks")}
    expected = {number for n in committed for number in load.changes[n]}
    lost_marks, lost = committed - set(found.marks), expected - set(found.numbers)
    more = set(found.numbers) - expected
    result = [
        f"{len(each)} {what}: {sorted(each)[:5]}"
        for each, what in ((lost_marks, "lost transactions"), (lost, "lost changes"))
        if each
    ]
    if more:
        result.append(f"{len(more)} changes that were never committed: {sorted(more)[:5]}")
    rows = {int(key): (int(number), note) for key, number, note in database.execute("select id, number, note from things")}
    folded = {key: (row["number"], row["note"]) for key, row in found.rows.items()}
    wrong = [key for key in rows.keys() | folded.keys() if rows.get(key) != folded.get(key)]
    return result + [f"row {key}: {folded.get(key)}, in the table {rows.get(key)}" for key in wrong[:5]]
