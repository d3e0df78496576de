"""The JDBC sink with a real broker and real databases: converters, dead letter queue, deadlocks, lost connections."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from integration.test_jdbc_sink import ALL_TYPES, as_read
from sluiceway.api import TopicPartition
from sluiceway.data import INT64_SCHEMA, Schema
from sluiceway.errors import ConnectError
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.eventually import LIMIT, eventually
from support.faults.proxy import TcpProxy
from support.jdbc_sink import JSON, UPSERT, fill, person, record, sink, tombstone
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]
PEOPLE = "select id, name from people order by id"


def config(database: DatabaseForTest, topic: str, **more: str) -> dict[str, str]:
    keys = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "name": f"sink-{topic}",
        "connector.class": "JdbcSink",
        "topics": topic,
        "table.name.format": "people",
        **JSON,
        **database.config,
        **UPSERT,
        **keys,
    }


def task(database: DatabaseForTest, kafka: Kafka, topic: str, **more: str) -> RunningTask:
    return RunningTask(config(database, topic, **more), {"bootstrap.servers": kafka.bootstrap}, bounded=True)


def test_a_table_receives_the_records_of_its_topic(database: DatabaseForTest, kafka: Kafka, topic: str) -> None:
    fill(kafka.bootstrap, [person(0, number % 700, f"n{number}", topic=topic) for number in range(2000)])
    fill(kafka.bootstrap, [tombstone(0, number, topic=topic) for number in range(600)])
    with task(database, kafka, topic) as running:
        assert not running.join().failed, running.result
    assert database.execute(PEOPLE) == [
        (number, f"n{number + 1400 if number < 600 else number + 700}") for number in range(600, 700)
    ]
    [(offset,)] = database.execute("select next_offset from sluiceway_offsets")
    assert offset == 2600
    assert kafka.committed(f"connect-sink-{topic}") == {(topic, 0): 2600}


def test_every_type_comes_from_the_topic_unchanged(database: DatabaseForTest, kafka: Kafka, topic: str) -> None:
    schema = Schema.struct({"id": INT64_SCHEMA, **{name: kind for name, (kind, _) in ALL_TYPES.items()}})
    values = {name: value for name, (_, value) in ALL_TYPES.items()}
    fill(kafka.bootstrap, [record(0, value={"id": 1, **values}, schema=schema, topic=topic)])
    with task(database, kafka, topic, pk_mode="record_value", pk_fields="id", delete_enabled="false") as running:
        assert not running.join().failed, running.result
    [row] = database.execute("select * from people")
    assert dict(zip(["id", *ALL_TYPES], row, strict=True)) == {"id": 1, **as_read(database.dialect, values)}


def test_bad_records_go_to_the_dead_letter_topic_and_the_rest_to_the_table(
    database: DatabaseForTest, kafka: Kafka, topic: str
) -> None:
    database.execute("create table people (id bigint primary key, name varchar(5) not null check (length(name) < 6))")
    records = [person(0, number, f"n{number}", topic=topic) for number in range(200)]
    records[50] = person(0, 50, "much too long", topic=topic)
    records[120] = person(0, 120, None, topic=topic)
    fill(kafka.bootstrap, records)
    queue = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{topic}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with task(database, kafka, topic, **queue) as running:
        assert not running.join().failed, running.result
    assert [number for number, _ in database.execute(PEOPLE)] == [number for number in range(200) if number not in (50, 120)]
    dead = [int(dict(message.headers())["__connect.errors.offset"]) for message in kafka.read(f"{topic}-dead", 2)]
    assert dead == [50, 120]


@pytest.fixture
def table(request: pytest.FixtureRequest) -> DatabaseForTest:
    """A database that allows several sessions, with a table of two people."""
    database: DatabaseForTest = request.getfixturevalue(request.param)
    database.execute("create table people (id bigint primary key, name varchar(20))")
    database.execute("insert into people values (1, 'a'), (2, 'b')")
    return database


servers = pytest.mark.parametrize("table", ["postgresql", "mariadb"], indirect=True)


@servers
def test_a_batch_that_deadlocks_is_written_by_the_runtimes_next_attempt(
    table: DatabaseForTest, kafka: Kafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(kafka.bootstrap, [person(0, 1, "sink", topic=topic), person(0, 2, "sink", topic=topic)])
    with closing(table.connect(autocommit=False)) as other, closing(other.cursor()) as cursor:
        if table.dialect == "postgresql":
            cursor.execute("set deadlock_timeout = '60s'")  # so that the sink is the one to notice, and to be rolled back
        else:
            cursor.execute("create table weight (id int)")
            cursor.execute("insert into weight " + " union all ".join(["select 1"] * 500))  # the lighter one is rolled back
        cursor.execute("update people set name = 'other' where id = 2")
        with task(table, kafka, topic, retry_backoff_ms="100") as running:
            eventually(lambda: waits_for_a_lock(table), what="the sink waiting for row 2")
            cursor.execute("update people set name = 'other' where id = 1")
            other.commit()
            assert not running.join().failed, running.result
    assert table.execute(PEOPLE) == [(1, "sink"), (2, "sink")]
    assert "deadlock" in caplog.text.lower()


def waits_for_a_lock(database: DatabaseForTest) -> bool:
    if database.dialect == "postgresql":
        return bool(database.execute("select 1 from pg_stat_activity where wait_event_type = 'Lock'"))
    return bool(database.execute("select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"))


@servers
def test_a_lost_connection_is_replaced(table: DatabaseForTest) -> None:
    port = int(table.port)
    with TcpProxy(port) as proxy:
        proxied = {"connection_url": table.jdbc_url.replace(f":{port}/", f":{proxy.port}/")}
        with sink(table, {**UPSERT, **proxied}) as made:
            made.put(person(0, 1, "before"))
            proxy.drop()
            for _ in range(3):
                with pytest.raises(ConnectError, match=r"Couldn't write a batch in 127\.0\.0\.1") as raised:
                    made.put(person(1, 1, "after"))
                assert type(raised.value).__name__ == "WriteError"
            assert made.context.timeouts[-1] == 3000
            assert made.task.pre_commit({TopicPartition("people", 0): 1}) == {TopicPartition("people", 0): 1}
            proxy.restore()
            made.put(person(1, 1, "after"))
        assert table.execute(PEOPLE)[0] == (1, "after")


def test_attempts_end_after_max_retries(postgresql: DatabaseForTest) -> None:
    postgresql.execute("create table people (id bigint primary key, name varchar(20))")
    with sink(postgresql, UPSERT, max_retries="2") as made, closing(postgresql.connect(autocommit=False)) as other:
        made.put(person(0, 1, "a"))
        other.execute("lock table people")
        postgresql.execute(f"alter database {postgresql.name} set lock_timeout = '50ms'")
        made.task._session.close()  # type: ignore[union-attr]
        for _ in range(2):
            with pytest.raises(ConnectError, match="lock timeout"):
                made.put(person(1, 1, "b"))
        with pytest.raises(ConnectError, match=r"after 3 attempts; max\.retries=2"):
            made.put(person(1, 1, "b"))


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "sqlite"])
def test_tasks_that_create_the_same_table_at_once_share_it(request: pytest.FixtureRequest, kind: str) -> None:
    database: DatabaseForTest = request.getfixturevalue(kind)
    started = threading.Barrier(3)

    def run(number: int) -> None:
        started.wait()
        with sink(database, {**UPSERT, "name": f"sink-{number}"}) as made:
            made.put(person(0, number, "x"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert database.execute(PEOPLE) == [(number, "x") for number in range(3)]
