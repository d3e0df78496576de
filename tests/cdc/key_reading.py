"""Reads random tables by a connector's snapshots, with crashes and changes beside them, and compares records with rows."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdc.captured import Captured
from cdc.key_tables import KeyTable
from cdc.key_values import KeyValues
from sluiceway.api import SourceRecord
from sluiceway.data import Struct
from support.capture import TaskRun
from support.eventually import LIMIT
from support.kafka import Kafka

FILE, TABLE, TABLE_DELETE, TOPIC = "file", "signal table", "signal table, deleted marks", "topic"
CONDITION = "n % 3 <> 1"

Numbers = dict[str, set[int]]
"""The numbers of rows, by table."""
Part = tuple[Sequence[KeyTable], str, str]
"""Tables, with the condition and the surrogate key of their request."""


def present(source: Captured, tables: Sequence[KeyTable], condition: str = "") -> Numbers:
    """Return the rows that the tables have."""
    where = f" where {condition}" if condition else ""
    found: Numbers = {table.name: set() for table in tables}
    for start in range(0, len(tables), 50):
        parts = [f"select '{table.name}', n from {table.name}{where}" for table in tables[start : start + 50]]  # noqa: S608
        for name, number in source.database.execute(" union all ".join(parts)):
            found[str(name)].add(number)
    return found


@dataclass
class Changes:
    """Updates of the version of rows of a table, or of one, while snapshots read it.

    Only the log may have a row that is updated. So half of the rows never are: it cannot hide that a snapshot loses them.
    """

    source: Captured
    rng: random.Random
    left: int
    versions: dict[tuple[str, int], int] = field(default_factory=dict)
    made: int = 0

    def make(self, rows: Mapping[str, set[int]]) -> None:
        """Update a table, now and then, until so many were updated."""
        if self.left and rows and self.rng.random() < 0.5:
            self.left -= 1
            self.made += 1
            name = next(iter(rows))
            numbers = sorted(number for number in rows[name] if number % 2)
            chosen = [self.rng.choice(numbers)] if numbers and self.rng.random() < 0.5 else numbers
            condition = f"n = {chosen[0]}" if len(chosen) == 1 else "n % 2 = 1"
            self.source.execute(f"update {name} set v = {self.made} where {condition}")  # noqa: S608 (a test's own database)
            self.versions.update(dict.fromkeys(((name, number) for number in chosen), self.made))

    def of(self, table: str) -> dict[int, int]:
        """Return the versions of a table's updated rows."""
        return {number: version for (name, number), version in self.versions.items() if name == table}


class Reading:
    """What a task has read of tables, over its restarts.

    ``tables`` are those of which rows are missing, or surplus, or old.
    """

    def __init__(self, source: Captured, config: Mapping[str, str], tables: Sequence[KeyTable]) -> None:
        self.tables = {table.name: table for table in tables}
        self.read: dict[str, Counter[int]] = {}
        """How often a snapshot has returned each row."""
        self.kills = 0
        """The kills at which some rows of a table were read, and others were not."""
        self._versions: dict[str, dict[int, int]] = {}
        self._values: dict[tuple[str, int], str] = {}
        self._keys = KeyValues(source, tables)
        self._source = source
        # As a decimal, NaN would be null, which a key must not be.
        self._config = {**source.config, **config, "sluiceway.cdc.compat": "correct", "decimal.handling.mode": "string"}
        self._offset: Any = None

    def run(self, wanted: Numbers, *, once: bool, send: Callable[[], None] | None = None, changes: Changes | None = None) -> None:
        """Run the task until it has read the rows, each once, or at least once."""
        pending = dict(wanted)
        with TaskRun(self._source.task, self._config, self._offset) as run:
            if send is not None:
                self._add(run.poll())
                send()
            deadline = time.monotonic() + LIMIT
            records: list[SourceRecord] = []
            while pending or records:  # the last record of a snapshot does not say that it is complete
                records = run.poll()
                if self._add(records):
                    deadline = time.monotonic() + LIMIT
                if changes is not None:
                    changes.make(pending)
                if not records or len(records) > 1:
                    self._complete(pending, changes)
                if not pending:
                    pending = {name: rows for name, rows in wanted.items() if self._wrong(name, rows, changes)}
                assert time.monotonic() < deadline, self._differences(pending, changes)
        self._offset = run.offset
        for name, read in self.read.items():
            assert set(read) <= wanted.get(name, set()), f"{name}: more rows than were requested"
            assert not once or set(read.values()) == {1}, f"{name}: rows were read twice: {read}"

    def _complete(self, pending: Numbers, changes: Changes | None) -> None:
        """Remove the tables that are complete, which are the first ones as a rule."""
        for name in list(pending):
            if self._wrong(name, pending[name], changes):
                return
            del pending[name]

    def _wrong(self, name: str, wanted: set[int], changes: Changes | None) -> bool:
        updated = {} if changes is None else changes.of(name)
        versions = self._versions.get(name, {})
        old = [row for row in wanted & updated.keys() if versions.get(row) != updated[row]]
        return bool(old or self._unread(name, wanted, updated))

    def _unread(self, name: str, wanted: set[int], updated: Mapping[int, int]) -> set[int]:
        """Return the rows that no snapshot has read, although they were not updated."""
        return wanted - self.read.get(name, Counter()).keys() - updated.keys()

    def _differences(self, pending: Numbers, changes: Changes | None = None) -> str:
        found = []
        for name, rows in pending.items():
            read = self.read.get(name, Counter())
            missing = self._unread(name, rows, {} if changes is None else changes.of(name))
            twice = [number for number, count in read.items() if count > 1]
            if missing or twice:
                found.append(f"{self.tables[name]}: missing {sorted(missing)}, twice {twice}")
            else:
                found.append(f"{self.tables[name]}: versions {self._versions.get(name)}")
        return "\n".join(found[:3])

    def kill(self, rng: random.Random, wanted: Numbers, send: Callable[[], None] | None = None) -> bool:
        """Run the task until it has read some rows that are left, and forget what it knows but the offset of the last one.

        Return False if all rows are read.
        """
        left = sum(len(rows - self.read.get(name, Counter()).keys()) for name, rows in wanted.items())
        if not left:
            return False
        most = rng.randint(1, min(left, 3 * max(map(len, wanted.values()))))
        deadline = time.monotonic() + LIMIT
        with TaskRun(self._source.task, self._config, self._offset) as run:
            if send is not None:
                self._add(run.poll())
                send()
            table = ""
            while most > 0:
                assert time.monotonic() < deadline, self._differences(wanted)
                for record in run.poll():
                    run.offset = record.source_offset
                    found = self._add([record])
                    table, most = found or table, most - bool(found)
                    if not most:
                        break
        self._offset = run.offset
        self.kills += bool(wanted.get(table, set()) - self.read[table].keys())
        return True

    def _add(self, records: Iterable[SourceRecord]) -> str:
        """Add records. Return the table of the last row of a snapshot among them."""
        last = ""
        for record in records:
            value = record.value
            if not isinstance(value, Struct) or not (value.schema.name or "").endswith(".Envelope"):
                continue
            table, after = record.topic.rpartition(".")[2], value["after"]
            if table not in self.tables or after is None:
                continue
            number, version = after["n"], after["v"]
            self._versions.setdefault(table, {})[number] = version
            self._keys.check(table, number, record)
            if value["op"] == "r":
                last = table
                self.read.setdefault(table, Counter())[number] += 1
                values = repr(after.values_[:-1])
                assert self._values.setdefault((table, number), values) == values
        return last

    def fresh(self) -> None:
        """Forget all rows, and a snapshot that has only to find out that no rows are left."""
        self.read.clear()
        self._versions.clear()
        self._offset = {name: value for name, value in self._offset.items() if "incremental" not in name}


def signal_table(name: str) -> str:
    """Return the signal table of a test of tables of which the first has a name."""
    return f"signals_{name}"


class Signals:
    """Sends the signals of a test by one of the channels."""

    def __init__(self, source: Captured, channel: str, folder: Path, name: str, kafka: Kafka | None) -> None:
        self._source, self._channel, self._kafka = source, channel, kafka
        self._file = folder / f"signals-{name}"
        self._table, self._topic = signal_table(name), f"{source.config.get('slot.name', source.schema)}-{name}"
        self.config = {"signal.poll.interval.ms": "0"}
        if channel == FILE:
            self.config |= {"signal.enabled.channels": "file", "signal.file": str(self._file), "read.only": "true"}
        elif channel == TOPIC:
            assert kafka is not None
            kafka.create(self._topic)
            self.config |= {
                "signal.enabled.channels": "kafka",
                "signal.kafka.topic": self._topic,
                "signal.kafka.bootstrap.servers": kafka.bootstrap,
                "signal.kafka.groupId": self._topic,
                "read.only": "true",
            }
        else:
            source.execute(f"create table {self._table} (id varchar(64) primary key, type varchar(32), data text)")
            strategy = "insert_delete" if channel == TABLE_DELETE else "insert_insert"
            self.config |= {
                "signal.enabled.channels": "source",
                "signal.data.collection": f"{source.schema}.{self._table}",
                "incremental.snapshot.watermarking.strategy": strategy,
            }

    def send(self, requests: Sequence[Mapping[str, Any]]) -> None:
        """Send requests of incremental snapshots."""
        signals = [{"id": f"s{number}", "type": "execute-snapshot", "data": data} for number, data in enumerate(requests)]
        if self._channel == FILE:
            self._file.write_text("\n".join(map(json.dumps, signals)))
        elif self._channel == TOPIC:
            assert self._kafka is not None
            self._kafka.produce(self._topic, *map(json.dumps, signals), key=self._source.config["topic.prefix"])
        else:
            with closing(self._source.database.connect()) as connection, closing(connection.cursor()) as cursor:
                rows = [(each["id"], each["type"], json.dumps(each["data"])) for each in signals]
                cursor.executemany(f"insert into {self._table} values (%s, %s, %s)", rows)  # noqa: S608


def read_all(
    source: Captured,
    tables: Sequence[KeyTable],
    rng: random.Random,
    folder: Path,
    *,
    kills: int = 0,
    channel: str = FILE,
    kafka: Kafka | None = None,
    parts: Sequence[Part] = (),
) -> int:
    """Read tables by an initial snapshot in ranges, then by incremental ones, each with so many kills.

    Some tables are read by their key and perhaps a condition, some by their first column, some by their numbers, which are
    not unique to the server. Without kills, rows change meanwhile. Each row is read once, or at least once after a kill. Return
    the number of kills in the middle of a table.
    """
    name = tables[0].name
    rows = dict(sorted(present(source, tables).items()))
    signals = Signals(source, channel, folder, name, kafka)
    config = {
        **signals.config,
        "snapshot.max.threads": str(rng.randint(1, 3)),
        "sluiceway.cdc.snapshot.range.rows": str(rng.randint(1, 6)),
        "incremental.snapshot.chunk.size": str(rng.randint(1, 6)),
        "max.batch.size": str(rng.choice([3, 2048])),
        "schema.history.internal.kafka.topic": f"{source.schema}-{name}",
    }
    reading = Reading(source, config, tables)
    for _ in range(kills):
        reading.kill(rng, rows)
    reading.run(rows, once=not kills)
    reading.fresh()
    parts = parts or _parts(tables, rng.choice(["", CONDITION]))
    requests = [_request(source, chosen, where, surrogate) for chosen, where, surrogate in parts if chosen]
    wanted = {name: found for chosen, where, _ in parts for name, found in sorted(present(source, chosen, where).items())}
    send: Callable[[], None] | None = lambda: signals.send(requests)  # noqa: E731
    for _ in range(kills):
        if reading.kill(rng, wanted, send):
            send = None
    changes = None if kills else Changes(source, rng, len(tables) // 2)
    reading.run(wanted, once=not kills, send=send, changes=changes)
    return reading.kills


def _parts(tables: Sequence[KeyTable], condition: str) -> list[Part]:
    keyed, others = ([table for table in tables if table.primary is primary] for primary in (True, False))
    return [(keyed[::2], condition, ""), (keyed[1::4] + others[::2], "", "c0"), (keyed[3::4] + others[1::2], "", "n")]


def _request(source: Captured, tables: Sequence[KeyTable], condition: str, surrogate: str) -> dict[str, Any]:
    names = [f"{source.schema}.{table.name}" for table in tables]
    found: dict[str, Any] = {"data-collections": names}
    if condition:
        found["additional-conditions"] = [{"data-collection": name, "filter": condition} for name in names]
    if surrogate:
        found["surrogate-key"] = surrogate
    return found
