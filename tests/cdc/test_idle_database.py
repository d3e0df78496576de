"""A captured database without changes, beside a busy one: the server can drop its log, and no change is lost. SECONDS=120"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import pytest

from cdc.configs import JSON, postgres_config
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.postgres import PostgresServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(3600)]

SECONDS = float(os.environ.get("SECONDS", "120"))
LIMIT = 64 << 20
_PER_SECOND = 2 << 20
_KEPT = "select pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint from pg_replication_slots"
_WRITTEN = "select (pg_current_wal_lsn() - '0/0')::bigint"


def test_the_log_of_an_idle_database_is_dropped(kafka: Kafka, unique: Callable[[str], str]) -> None:
    name, offsets = unique("idle"), Offsets()
    with PostgresServer() as server:
        for database in ("idle", "busy"):
            server.execute(f"create database {database}")
        idle, busy = server.database("idle"), server.database("busy")
        idle.execute("create table t (id int primary key)")
        busy.execute("create table noise (id bigserial, text text)")
        config = postgres_config(idle, name, table_include_list="public.t")
        worker = {"bootstrap.servers": kafka.bootstrap, **JSON, "offset.flush.interval.ms": "1000"}
        topic = kafka.create(f"{name}.public.t")
        with RunningTask(config, worker, offsets=offsets) as task:
            eventually(lambda: server.execute("select 1 from pg_replication_slots where active"), what="the slot")
            idle.execute("insert into t values (1)")
            eventually(lambda: kafka.count(topic) == 1, what="the first record")
            largest, written = _make_noise(server)
            print(f"{written >> 20} MiB of log written, the slot kept at most {largest >> 20} MiB", flush=True)
            idle.execute("insert into t values (2)")
            eventually(lambda: kafka.count(topic) == 2, what="the second record")
            assert not task.stop().failed
        assert _confirmed(server) <= _stored(offsets), "Debezium could not go on behind a slot that is ahead of its offset"
        _make_noise(server, 1.0)
        idle.execute("insert into t values (3)")
        with RunningTask(config, worker, offsets=offsets):
            eventually(lambda: kafka.count(topic) == 3, what="the third record")
        assert [json.loads(message.value())["after"]["id"] for message in kafka.read(topic, 3)] == [1, 2, 3]
    assert written > 2 * LIMIT
    assert largest < LIMIT


def _make_noise(server: PostgresServer, seconds: float = SECONDS) -> tuple[int, int]:
    """Write log for some time; return the most that the slot kept, and how much was written."""
    start = server.execute(_WRITTEN)[0][0]
    largest, begun = 0, time.monotonic()
    with server.database("busy").connect() as connection:
        while (spent := time.monotonic() - begun) < seconds:
            connection.execute("insert into noise (text) select repeat(md5(g::text), 30) from generate_series(1, 250) g")
            now = server.execute(_WRITTEN)[0][0]
            largest = max(largest, server.execute(_KEPT)[0][0])
            time.sleep(max(0.0, (now - start) / _PER_SECOND - spent))
    return int(largest), int(server.execute(_WRITTEN)[0][0] - start)


def _confirmed(server: PostgresServer) -> int:
    return int(server.execute("select (confirmed_flush_lsn - '0/0')::bigint from pg_replication_slots")[0][0])


def _stored(offsets: Offsets) -> int:
    [offset] = [offset for offset in offsets.stored.values() if offset is not None]
    return int(offset.get("lsn_commit") or offset["lsn"])
