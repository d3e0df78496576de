"""Debezium's connectors, the published Java plugins, on real databases: snapshot, stream, restarts, kills, transforms."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from sluiceway.herder.plugin_path import use_plugin_path
from support.database import HOST, DatabaseForTest
from support.engine import Offsets, RunningTask
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker, opened_stores
from support.java_plugins import (
    DEBEZIUM_MARIADB,
    DEBEZIUM_POSTGRES,
    debezium_postgres,
    fetch_runtime,
    first_task_config,
    forget_plugins,
    java_processes,
    plugin_folder,
)
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.transactions import seen

pytestmark = [pytest.mark.kafka, pytest.mark.long]

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_SAME = "support.java_plugins.Same"


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "debezium-postgres", DEBEZIUM_POSTGRES)
    plugin_folder(folder, "debezium-mariadb", DEBEZIUM_MARIADB)
    use_plugin_path({"plugin.path": str(folder), "plugin.java": "prefer"})
    yield folder
    forget_plugins()


@pytest.fixture
def slot(postgresql: DatabaseForTest, name: str) -> Iterator[str]:
    slot = name.replace("-", "_")
    yield slot
    postgresql.execute(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s and not active", slot
    )


@pytest.fixture
def config(plugin_path: Path, postgresql: DatabaseForTest, name: str, slot: str) -> dict[str, str]:
    postgresql.execute("create table people (id int primary key, name text)")
    postgresql.execute("insert into people select n, 'name ' || n from generate_series(1, 500) n")
    config = {"name": name, **debezium_postgres(postgresql, name, slot, table_include_list="public.people")}
    return first_task_config(config)


def changes(kafka: Kafka, topic: str) -> list[tuple[str, int]]:
    """Return the operation and the row's id of each record; "t" for a tombstone."""
    found = []
    for message in seen(kafka.bootstrap, topic):
        value = message.value()
        row = json.loads(message.key() or b"")
        found.append((json.loads(value)["op"] if value else "t", row["id"]))
    return found


def test_snapshot_and_stream_arrive_the_slot_advances_and_a_restart_continues(
    config: dict[str, str], kafka: Kafka, name: str, slot: str, postgresql: DatabaseForTest
) -> None:
    topic = kafka.create(f"{name}.public.people")
    offsets, worker = Offsets(), kafka.worker(offset_flush_interval_ms="300")

    def flushed() -> object:
        return postgresql.execute("select confirmed_flush_lsn from pg_replication_slots where slot_name = %s", slot)[0][0]

    with RunningTask(config, worker, offsets=offsets) as task:
        eventually(lambda: changes(kafka, topic) == [("r", n) for n in range(1, 501)])
        before = flushed()
        postgresql.execute("update people set name = 'new' where id <= 2")
        postgresql.execute("delete from people where id = 500")
        eventually(lambda: changes(kafka, topic)[500:] == [("u", 1), ("u", 2), ("d", 500), ("t", 500)])

        def advances() -> bool:
            postgresql.execute("update people set name = name || '.' where id = 1")
            return flushed() != before

        eventually(advances, what="confirmed_flush_lsn to advance")
        result = task.stop()
    assert not result.failed, result.trace
    postgresql.execute("insert into people values (1000, 'later')")
    with RunningTask(config, worker, offsets=offsets) as task:
        eventually(lambda: ("c", 1000) in changes(kafka, topic))
        assert not task.stop().failed
    operations = [operation for operation, _ in changes(kafka, topic)]
    assert operations.count("r") == 500, "the snapshot is not read again"
    assert java_processes() == []


def _run_until_killed(config: dict[str, str], worker: dict[str, str], plugin_path: str) -> None:
    use_plugin_path({"plugin.path": plugin_path, "plugin.java": "prefer"})
    with opened_stores(worker) as stores, RunningTask(config, worker, store=stores({})) as task:
        task.join(within=600)


@pytest.mark.parametrize("victim", ["task", "java"])
def test_killed_exactly_once_tasks_write_each_change_once(
    config: dict[str, str],
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    name: str,
    plugin_path: Path,
    postgresql: DatabaseForTest,
    victim: str,
) -> None:
    worker, topic = exactly_once_worker(kafka_bootstrap, unique), f"{name}.public.people"
    config |= {"snapshot.mode": "no_data", "max.batch.size": "20"}
    spawn = multiprocessing.get_context("spawn")

    def written() -> list[int]:
        return [json.loads(message.key() or b"")["id"] for message in seen(kafka_bootstrap, topic) if message.value()]

    rows = 10_000
    for _ in range(3):
        process = spawn.Process(target=_run_until_killed, args=(config, worker, str(plugin_path)))
        process.start()
        eventually(lambda: postgresql.execute("select 1 from pg_replication_slots where active") != [])
        for _ in range(300):
            rows += 1
            postgresql.execute("insert into people values (%s, 'x')", rows)
        if victim == "java":
            [pid] = java_processes()
            os.kill(pid, signal.SIGKILL)
        else:
            process.kill()
        process.join(LIMIT)
        eventually(lambda: java_processes() == [])
        eventually(lambda: postgresql.execute("select 1 from pg_replication_slots where active") == [])
    with opened_stores(worker) as stores, RunningTask(config, worker, store=stores({})) as task:
        eventually(lambda: rows in written())
        assert not task.stop().failed
    assert written() == list(range(10_001, rows + 1))


def news(kafka: Kafka, topic: str) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Return the key, the value, and the headers of each record."""

    def decoded(data: bytes | None) -> Any:
        return data if data is None else json.loads(data)

    messages: Sequence[Message] = seen(kafka.bootstrap, topic)
    return [(decoded(each.key()), decoded(each.value()), _headers(each)) for each in messages]


def _headers(message: Message) -> dict[str, bytes]:
    headers = message.headers() or []
    return {name: value for name, value in headers if isinstance(value, bytes)} if isinstance(headers, list) else {}


# With a transform in Python behind it, Debezium's gets and returns records as values.
@pytest.mark.parametrize("then", [{}, {"transforms": "unwrap,same", "transforms.same.type": _SAME}], ids=["java", "mixed"])
def test_extract_new_record_state_writes_rows_and_rewrites_deletions(
    config: dict[str, str], kafka: Kafka, name: str, postgresql: DatabaseForTest, then: Mapping[str, str]
) -> None:
    topic = kafka.create(f"{name}.public.people")
    unwrap = {
        "type": "io.debezium.transforms.ExtractNewRecordState",
        "delete.tombstone.handling.mode": "rewrite",
        "add.fields": "op",
        "add.headers": "db",
    }
    config |= {"snapshot.mode": "no_data", "transforms": "unwrap"}
    config |= {f"transforms.unwrap.{key}": value for key, value in unwrap.items()} | dict(then)
    with RunningTask(config, kafka.worker()) as task:
        eventually(lambda: postgresql.execute("select 1 from pg_replication_slots where active"))
        postgresql.execute("insert into people values (1000, 'new')")
        postgresql.execute("update people set name = 'newer' where id = 1000")
        postgresql.execute("delete from people where id = 1000")
        eventually(lambda: len(seen(kafka.bootstrap, topic)) == 3)
        assert not task.stop().failed
    found = news(kafka, topic)
    assert [key for key, _, _ in found] == [{"id": 1000}] * 3
    assert [value for _, value, _ in found] == [
        {"id": 1000, "name": "new", "__deleted": "false", "__op": "c"},
        {"id": 1000, "name": "newer", "__deleted": "false", "__op": "u"},
        {"id": 1000, "name": None, "__deleted": "true", "__op": "d"},
    ]
    assert {headers["__db"] for _, _, headers in found} == {postgresql.name.encode()}


def test_the_event_router_sends_the_rows_of_an_outbox_to_the_topics_of_their_aggregates(
    config: dict[str, str], kafka: Kafka, name: str, postgresql: DatabaseForTest
) -> None:
    postgresql.execute(
        "create table outbox (id uuid primary key, aggregatetype text, aggregateid text, type text, payload jsonb, tenant text)"
    )
    orders, invoices = kafka.create(f"{name}.order"), kafka.create(f"{name}.invoice")
    router = {
        "type": "io.debezium.transforms.outbox.EventRouter",
        "route.topic.replacement": f"{name}.${{routedByValue}}",
        "table.fields.additional.placement": "type:header:eventType,tenant:envelope",
        "table.expand.json.payload": "true",
    }
    config |= {"snapshot.mode": "no_data", "table.include.list": "public.outbox", "transforms": "outbox"}
    config |= {f"transforms.outbox.{key}": value for key, value in router.items()}
    config["key.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    number = "00000000-0000-0000-0000-00000000000"
    with RunningTask(config, kafka.worker()) as task:
        eventually(lambda: postgresql.execute("select 1 from pg_replication_slots where active"))
        insert = "insert into outbox values (%s, %s, %s, %s, %s, 'a')"
        postgresql.execute(insert, f"{number}1", "order", "17", "OrderCreated", '{"lines": [1, 2]}')
        postgresql.execute(insert, f"{number}2", "invoice", "18", "InvoiceCreated", '{"sum": 3}')
        postgresql.execute("delete from outbox")  # as services do at once: the router drops deletions
        postgresql.execute(insert, f"{number}3", "order", "17", "OrderCanceled", "{}")
        eventually(lambda: len(seen(kafka.bootstrap, orders)) == 2)
        eventually(lambda: len(seen(kafka.bootstrap, invoices)) == 1)
        assert not task.stop().failed
    made, canceled = seen(kafka.bootstrap, orders)
    assert (made.key(), json.loads(made.value() or b"")) == (b"17", {"payload": {"lines": [1, 2]}, "tenant": "a"})
    headers = dict(made.headers() or [])  # and the context of Debezium's task
    assert (headers["id"], headers["eventType"]) == (f"{number}1".encode(), b"OrderCreated")
    assert dict(canceled.headers() or [])["eventType"] == b"OrderCanceled"


@pytest.fixture(scope="module")
def mariadb_log() -> Iterator[MariaDbServer]:
    """A MariaDB server with a binary log."""
    with MariaDbServer(binlog=True) as server:
        yield server


def test_mariadb_snapshot_stream_and_a_changed_table_after_a_restart(
    plugin_path: Path, kafka: Kafka, name: str, mariadb_log: MariaDbServer
) -> None:
    mariadb_log.execute("create database shop")
    database, topic = mariadb_log.database("shop"), kafka.create(f"{name}.shop.people")
    database.execute("create table people (id int primary key, name varchar(20))")
    database.execute("insert into people values (1, 'one'), (2, 'two')")
    config = {
        "name": name,
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": database.user,
        "database.password": database.password,
        "database.server.id": "7001",
        "database.include.list": "shop",
        "topic.prefix": name,
        "schema.history.internal.kafka.bootstrap.servers": kafka.bootstrap,
        "schema.history.internal.kafka.topic": f"{name}.history",
        "poll.interval.ms": "50",
        **{f"{part}.converter": _JSON for part in ("key", "value")},
        **{f"{part}.converter.schemas.enable": "false" for part in ("key", "value")},
    }
    config, offsets, worker = first_task_config(config), Offsets(), kafka.worker(offset_flush_interval_ms="300")
    with RunningTask(config, worker, offsets=offsets) as task:
        eventually(lambda: changes(kafka, topic) == [("r", 1), ("r", 2)])
        database.execute("update people set name = 'first' where id = 1")
        database.execute("delete from people where id = 2")
        eventually(lambda: changes(kafka, topic)[2:] == [("u", 1), ("d", 2), ("t", 2)])
        result = task.stop()
    assert not result.failed, result.trace
    database.execute("alter table people add column age int")
    database.execute("insert into people values (3, 'three', 33)")
    with RunningTask(config, worker, offsets=offsets) as task:
        eventually(lambda: len(changes(kafka, topic)) == 6)
        assert not task.stop().failed
    assert news(kafka, topic)[-1][1]["after"] == {"id": 3, "name": "three", "age": 33}
    assert java_processes() == []
