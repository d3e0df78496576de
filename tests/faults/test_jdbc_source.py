# ruff: noqa: S608 (of a database of our own)
"""The JDBC source on real drivers, exactly once, while its processes are killed and two sessions write to its table.

The sessions commit in an order that is not the one of the rows' numbers: each number is taken while the other session's
transaction is still open.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from support.database import DatabaseForTest
from support.eventually import LIMIT, eventually
from support.faults.guarantee import Guarantee
from support.faults.kills import at_a_random_point, kill
from support.faults.processes import Role
from support.faults.rows import NewRow
from support.faults.worker_group import Progress, WorkerGroup, read

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

KILLS = 20
TRANSACTION = 25  # rows
PAUSE_SECONDS = 0.05
COLUMN = {"postgresql": "id bigint generated always as identity primary key", "mysql": "id bigint auto_increment primary key"}


@pytest.fixture
def guarantee() -> Guarantee:
    return Guarantee.EXACTLY_ONCE


@contextmanager
def two_writers(database: DatabaseForTest) -> Iterator[None]:
    """Write to the table from a thread while the context lasts."""
    stopping = threading.Event()
    insert = "insert into numbers (name) values " + ", ".join(["('x')"] * TRANSACTION)

    def write() -> None:
        with closing(database.connect(autocommit=False)) as one, closing(database.connect(autocommit=False)) as other:
            while not stopping.wait(PAUSE_SECONDS):
                for session in (one, other):
                    with closing(session.cursor()) as cursor:
                        cursor.execute(insert)
                other.commit()
                stopping.wait(PAUSE_SECONDS)
                one.commit()

    thread = threading.Thread(target=write, name="writers")
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(LIMIT)


def number_of(_key: bytes | None, value: bytes | None) -> int:
    return int(json.loads(value or b"")["id"])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_killed_twenty_times_each_row_is_in_the_topic_once(
    request: pytest.FixtureRequest, group: WorkerGroup, kind: str, row: NewRow, chance: random.Random
) -> None:
    made = row(f"1-3, 5: JDBC source of {kind}, {KILLS} kills of random processes at random points", Guarantee.EXACTLY_ONCE.value)
    database: DatabaseForTest = request.getfixturevalue(kind)
    database.execute(f"create table numbers ({COLUMN[database.dialect]}, name varchar(10))")
    topic = f"{group.name}-numbers"
    admin = AdminClient({"bootstrap.servers": group.address})  # kept in a variable: its futures end with it
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT)
    group.herder.create(
        group.name,
        {
            "connector.class": "JdbcSource",
            **database.config,
            "mode": "incrementing",
            "table.whitelist": "numbers",
            "topic.prefix": f"{group.name}-",
            "poll.interval.ms": "50",
            "exactly.once.support": "required",
            "sluiceway.horizon": "required",
        },
    )
    with two_writers(database):
        group.driver()
        group.running()
        progress = Progress(group.address, topic, number_of)
        for _ in range(KILLS):
            at_a_random_point(progress, chance)
            kill(group, chance.choice(list(Role)), progress, made)
        progress.close()
    expected = [number for (number,) in database.execute("select id from numbers order by id")]
    progress = Progress(group.address, topic, number_of)
    eventually(lambda: progress.highest == expected[-1], what="the last row")
    progress.close()
    group.drivers[-1].stop(30)
    found = [number_of(message.key, message.value) for message in read(group.address, topic)]
    made.seen, made.lost, made.duplicated = f"{len(found)} records", len(set(expected) - set(found)), len(found) - len(set(found))
    assert found == expected
