"""Runs a source task of change data capture without a worker, and folds its records into tables."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from sluiceway.api import SourceRecord, SourceTask
from sluiceway.data import Struct
from sluiceway.testing import MemoryOffsets, MemorySourceContext
from support.database import DatabaseForTest
from support.eventually import LIMIT

Table = dict[tuple[Any, ...], tuple[Any, ...]]


@dataclass
class Folded:
    """The tables that the records of topics lead to, by topic, and how many records of each operation there were."""

    tables: dict[str, Table] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)

    def add(self, records: Iterable[SourceRecord]) -> None:
        for record in records:
            value = record.value
            if not isinstance(value, Struct) or not isinstance(record.key, Struct) or not _is_change(value):
                continue  # a tombstone, a schema change, or a record of a table without key
            operation = value["op"]
            self.operations[operation] = self.operations.get(operation, 0) + 1
            table = self.tables.setdefault(record.topic, {})
            key = tuple(record.key.values_)
            if operation == "d":
                table.pop(key, None)
            else:
                table[key] = tuple(value["after"].values_)


class TaskRun:
    """One run of a task from a stored offset on, used with ``with``.

    ``offset`` is that of the last record taken, or the one that the task returned behind it.
    """

    def __init__(self, task_class: type[SourceTask], config: Mapping[str, str], offset: Mapping[str, Any] | None = None) -> None:
        self.partition = {"server": config["topic.prefix"]}
        self.offset = offset
        self._config = dict(config)
        self._context = MemorySourceContext(config, MemoryOffsets([(self.partition, offset)] if offset else ()))
        self._task = task_class()

    def __enter__(self) -> TaskRun:
        self._task.initialize(self._context)
        self._task.start(self._config)
        return self

    def __exit__(self, *_: object) -> None:
        self._task.stop()

    @property
    def waits_for(self) -> list[str | None]:
        """The reasons of the task's waits, and None for each end of a wait."""
        return self._context.waits_for

    @property
    def metrics(self) -> Mapping[str, float]:
        return self._task.metrics()

    def poll(self) -> list[SourceRecord]:
        records = list(self._task.poll() or ())
        if records:
            self.offset = records[-1].source_offset
        else:
            self.offset = next((offset for _, offset in self._task.idle_offsets()), self.offset)
        return records

    def wait(self, seconds: float) -> None:
        """Wait as the runtime does after a poll without records."""
        self._context.wait(seconds)

    def take(self, count: int) -> list[SourceRecord]:
        """Return so many records, as a task that crashes behind them."""
        found: list[SourceRecord] = []
        deadline = time.monotonic() + LIMIT
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} records"
            found += self.poll()
        found = found[:count]
        self.offset = found[-1].source_offset
        return found

    def fold_until(self, folded: Folded, done: Callable[[], bool], within: float = LIMIT) -> None:
        """Fold records until a condition holds."""
        deadline = time.monotonic() + within
        while True:
            records = self.poll()
            folded.add(records)
            if not records and done():
                return
            assert time.monotonic() < deadline, f"the fold differs; operations: {folded.operations}"


class Load:
    """Random inserts, updates, and deletes of a table ``(id, v)``, in transactions of a thread, used with ``with``."""

    def __init__(self, database: DatabaseForTest, table: str, keys: int, transactions: int, seed: int = 1) -> None:
        self._database, self._table = database, table
        self._keys, self._transactions = keys, transactions
        self._random = random.Random(seed)  # noqa: S311 (a load, not a secret)
        self._thread = threading.Thread(target=self.run, name="load")

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def run(self) -> None:
        with closing(self._database.connect(autocommit=False)) as connection, closing(connection.cursor()) as cursor:
            for number in range(self._transactions):
                for _ in range(self._random.randint(1, 4)):
                    key = self._random.randint(1, self._keys)
                    cursor.execute(f"delete from {self._table} where id = {key}")  # noqa: S608
                    if self._random.random() < 0.8:
                        cursor.execute(f"insert into {self._table} (id, v) values ({key}, {number})")  # noqa: S608
                connection.commit()


def _is_change(value: Struct) -> bool:
    return (value.schema.name or "").endswith(".Envelope")
