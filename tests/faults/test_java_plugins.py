"""Debezium's Java connectors on real drivers while each of their processes is killed.

The PostgreSQL source runs exactly once: two sessions change a table in overlapping transactions, and its topic must have each
change once, in the order of the commits. The JDBC sink runs at least once: its table must equal what its topic adds up to.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.api import SinkRecord
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.stack.process import BackgroundProcess
from support.database import DatabaseForTest
from support.eventually import LIMIT, eventually
from support.faults.broker import FaultyBroker
from support.faults.guarantee import Guarantee
from support.faults.java_kills import Part, kill_parts, kills
from support.faults.rows import NewRow
from support.faults.worker_group import Progress, WorkerGroup, read, worker_group
from support.java_plugins import (
    DEBEZIUM_POSTGRES,
    debezium_jdbc_folder,
    debezium_postgres,
    fetch_runtime,
    forget_plugins,
    plugin_folder,
)
from support.jdbc_sink import JSON, STATIC_MEMBER, fill, person, tombstone

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(7200)]

PAUSE_SECONDS = 0.1
INSERTED = 8  # rows of a transaction
KEYS, PARTITIONS = 300, 2

Change = tuple[str, int]
"""The operation, and the number of the change."""


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Worker keys of a plugin.path with Debezium's connectors, which are preferred to Python ones."""
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "debezium-postgres", DEBEZIUM_POSTGRES)
    debezium_jdbc_folder(folder)
    keys = {"plugin.path": str(folder), "plugin.java": "prefer"}  # the JDBC sink has a Python implementation
    use_plugin_path(keys)
    yield keys
    forget_plugins()


@pytest.fixture
def group(broker: FaultyBroker, tmp_path: Path, plugins: dict[str, str]) -> Iterator[WorkerGroup]:
    with worker_group(broker.address, tmp_path, {**Guarantee.EXACTLY_ONCE.worker, **plugins}) as made:
        yield made


@contextmanager
def thread_of(loop: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a function in a thread until the block ends, which sets the event."""
    ended = threading.Event()
    thread = threading.Thread(target=loop, args=(ended,), name=loop.__name__)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LIMIT)


class Changes:
    """Changes a table in overlapping transactions of two sessions; ``committed`` has the changes in the order of the commits."""

    def __init__(self, database: DatabaseForTest) -> None:
        self.committed: list[Change] = []
        self._database = database
        self._numbers = itertools.count(1)
        database.execute("create table things (id int primary key, change int not null)")
        database.execute("alter table things replica identity full")  # deletions then have the number of the last change

    def write(self, ended: threading.Event) -> None:
        with closing(self._database.connect(autocommit=False)) as one, closing(self._database.connect(autocommit=False)) as other:
            while not ended.wait(PAUSE_SECONDS):
                first = self._transaction(one)
                second = self._transaction(other)
                other.commit()
                self.committed += second
                ended.wait(PAUSE_SECONDS)
                one.commit()
                self.committed += first

    def _transaction(self, session: Any) -> list[Change]:
        """Insert rows, change each second one, and delete each fourth, without a commit."""
        with closing(session.cursor()) as cursor:
            ids = [next(self._numbers) for _ in range(INSERTED)]
            cursor.executemany("insert into things values (%s, %s)", [(each, each) for each in ids])
            changed = [(next(self._numbers), each) for each in ids[::2]]
            cursor.executemany("update things set change = %s where id = %s", changed)
            cursor.executemany("delete from things where id = %s", [(each,) for _, each in changed[::2]])
        return [*(("c", each) for each in ids), *(("u", each) for each, _ in changed), *(("d", each) for each, _ in changed[::2])]


def change_of(_key: bytes | None, value: bytes | None) -> int:
    event = json.loads(value or b"")
    return int((event["after"] or event["before"])["change"])


def test_each_change_is_in_the_topic_of_a_killed_debezium_source_once(
    group: WorkerGroup, postgresql: DatabaseForTest, row: NewRow
) -> None:
    made = row(f"Debezium PostgreSQL source, {kills()} kills of each of {len(Part)} parts", Guarantee.EXACTLY_ONCE.value)
    changes = Changes(postgresql)
    slot, topic = group.name.replace("-", "_"), f"{group.name}.public.things"
    admin = AdminClient({"bootstrap.servers": group.address})  # kept in a variable: its futures end with it
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT)
    config = debezium_postgres(postgresql, group.name, slot, snapshot_mode="no_data", tombstones_on_delete="false")
    more = {"table.include.list": "public.things", "exactly.once.support": "required", "offset.flush.interval.ms": "500"}
    group.herder.create(group.name, {**config, **more})
    group.driver()
    group.running()
    eventually(lambda: postgresql.execute("select 1 from pg_replication_slots where active"), what="the slot")
    progress = Progress(group.address, topic, change_of)
    with thread_of(changes.write):
        kill_parts(group, group.name, lambda count, driver: progress.more(count, driver=driver), made)
    expected = changes.committed
    last = max(number for _, number in expected)
    eventually(lambda: progress.highest >= last, what="the last change")
    progress.close()

    def found_so_far() -> list[Change]:
        messages = list(read(group.address, topic))
        return [(json.loads(each.value or b"")["op"], change_of(each.key, each.value)) for each in messages]

    eventually(lambda: len(found_so_far()) >= len(expected), what="all changes")
    group.drain(group.drivers[-1])
    found = found_so_far()
    made.seen, made.lost, made.duplicated = f"{len(found)} changes", len(set(expected) - set(found)), len(found) - len(set(found))
    print(f"{made.fault}: {made.seen} of {len(expected)}, {made.lost} lost, {made.duplicated} duplicated", flush=True)
    assert found == expected
    postgresql.execute("select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active")


class Upserts:
    """Writes upserts and deletions of a few keys to a topic; ``rows`` has what they add up to."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.rows: dict[int, str] = {}
        self.sent = 0
        self._bootstrap = bootstrap
        self._topic = topic
        self._chance = random.Random(1)  # noqa: S311 (test data)

    def write(self, ended: threading.Event) -> None:
        while not ended.wait(PAUSE_SECONDS):
            fill(self._bootstrap, [self._record() for _ in range(20)])

    def _record(self) -> SinkRecord:
        self.sent += 1
        key = self._chance.randrange(KEYS)
        to = {"topic": self._topic, "partition": key % PARTITIONS}
        if self._chance.random() < 0.2:
            self.rows.pop(key, None)
            return tombstone(0, key, **to)
        self.rows[key] = f"{self.sent:09}"
        return person(0, key, self.rows[key], **to)


def test_the_table_of_a_killed_debezium_jdbc_sink_equals_its_topic(
    group: WorkerGroup, postgresql: DatabaseForTest, row: NewRow
) -> None:
    made = row(f"Debezium JDBC sink, {kills()} kills of each of {len(Part)} parts", "the table equals the topic")
    topic = f"{group.name}-people"
    admin = AdminClient({"bootstrap.servers": group.address})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(LIMIT)
    postgresql.execute("create table people (id bigint primary key, name text)")
    group.herder.create(
        group.name,
        {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "topics": topic,
            "connection.url": postgresql.jdbc_url,
            "connection.username": postgresql.user,
            "connection.password": postgresql.password,
            "collection.name.format": "people",
            "insert.mode": "upsert",
            "delete.enabled": "true",
            "primary.key.mode": "record_key",
            **JSON,
            **{f"{part}.converter.schemas.enable": "true" for part in ("key", "value")},
            **STATIC_MEMBER,
        },
    )

    def highest() -> int:
        return int(postgresql.execute("select coalesce(max(name), '0') from people")[0][0])

    def more(count: int, driver: BackgroundProcess) -> None:
        before = highest()

        def arrived() -> bool:
            assert driver.is_running(), f"{driver.name} has ended\n{driver.log_tail(30)}"
            return highest() >= before + count

        eventually(arrived, what=f"{count} more records of {driver.log}")

    upserts = Upserts(group.address, topic)
    with ExitStack() as stack:
        stack.enter_context(thread_of(upserts.write))
        group.driver()
        group.running()
        kill_parts(group, group.name, more, made)
    eventually(lambda: dict(postgresql.execute("select id, name from people")) == upserts.rows, what="the last rows")
    made.seen = f"{upserts.sent} records, {len(upserts.rows)} rows, 0 differ"
    print(f"{made.fault}: {made.seen}", flush=True)
