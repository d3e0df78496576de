"""Exact runs on a real Airflow: hours that are caught up move their own records each, and a cleared one replaces its files."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc.captured import captured_postgres
from support.eventually import LIMIT, eventually
from support.postgres import PostgresServer
from support.stack import RunningStack

pytestmark = pytest.mark.airflow

_HOUR = 3_600_000
_TOPIC = "hours"
_SCHEMA = {"type": "struct", "optional": False, "fields": [{"field": "hour", "type": "int64", "optional": False}]}


def _fill(stack: RunningStack, first: int, hours: int) -> None:
    """Write ten records to each hour, the last of them in the wrong order, and one that is late."""
    admin = AdminClient({"bootstrap.servers": stack.addresses.bootstrap})
    admin.create_topics([NewTopic(_TOPIC, 1, 1, config={"retention.ms": "-1"})])[_TOPIC].result(LIMIT)
    producer = Producer({"bootstrap.servers": stack.addresses.bootstrap})
    times = [first + number * _HOUR + minute * 360_000 for number in range(hours) for minute in range(10)]
    times[8], times[9] = times[9], times[8]
    times[15] = first + 1  # comes when its hour has been over for long
    for moment in times:
        value = {"schema": _SCHEMA, "payload": {"hour": (moment - first) // _HOUR}}
        producer.produce(_TOPIC, json.dumps(value), timestamp=moment)
    assert producer.flush(30) == 0


def _written(folder: Path) -> dict[str, Counter[int]]:
    """Return the hours of the records in the files, by the interval in the files' names."""
    found: dict[str, Counter[int]] = {}
    for file in folder.glob("topics/**/*.parquet"):
        mark = next(part for part in file.name.split(".") if "Z-" in part).partition("-")[0]
        found.setdefault(mark, Counter()).update(map(int, pq.read_table(file)["hour"].to_numpy()))
    return found


def _intervals(stack: RunningStack, name: str) -> Mapping[int, Mapping[str, Any]]:
    return {each["start"]: each for each in stack.connect.intervals(name)}


def _xcom(stack: RunningStack, dag: str, run: str) -> Mapping[str, Any]:
    """Return what a run has returned; nothing before it has."""
    found = stack.airflow.get(f"/dags/{dag}/dagRuns/{run}/taskInstances/run/xcomEntries/return_value").json().get("value", {})
    value: Mapping[str, Any] = json.loads(found) if isinstance(found, str) else found
    return value


def test_hours_that_are_caught_up_move_their_own_records(stack: RunningStack, folder: Path) -> None:
    name, reruns, hours = "hourly", "hourly-reruns", 3
    first = int(time.time() * 1000) // _HOUR * _HOUR - hours * _HOUR
    _fill(stack, first, hours)
    for each, late in ((name, "next"), (reruns, "rerun")):
        stack.connect.create(
            each,
            {
                "connector.class": "ParquetSink",
                "topics": _TOPIC,
                "path": str(folder / each),
                "airflow.mode": "micro-batch",
                "airflow.schedule": "@hourly",
                "airflow.catchup": "true",
                "airflow.start.date": _text(first),
                "airflow.interval.lateness": "1s",
                "airflow.interval.late": late,
            },
        )
    starts = [first + number * _HOUR for number in range(hours)]

    def moved(*attempts: int, by: str = name) -> bool:
        found = _intervals(stack, by)
        return [(found[start]["state"], found[start]["attempt"]) for start in starts if start in found] == [
            ("done", attempt) for attempt in attempts
        ]

    eventually(lambda: moved(1, 1, 1), within=2 * LIMIT, what="three hours that are moved")
    records = [(found["records"], found["late"]) for found in map(_intervals(stack, name).get, starts) if found]
    assert records == [(10, 0), (10, 1), (10, 0)]
    expected = {_mark(starts[0]): {0: 10}, _mark(starts[1]): {1: 9, 0: 1}, _mark(starts[2]): {2: 10}}
    assert {mark: dict(found) for mark, found in _written(folder / name).items() if mark in expected} == expected
    [run] = _intervals(stack, name)[starts[1]]["runs"]
    body = {"dry_run": False, "dag_run_id": run, "task_ids": ["run"], "only_failed": False}
    stack.airflow.post(f"/dags/{name}/clearTaskInstances", json=body).raise_for_status()
    eventually(lambda: moved(1, 2, 1), within=2 * LIMIT, what="an hour that is moved again")
    assert {mark: dict(found) for mark, found in _written(folder / name).items() if mark in expected} == expected
    eventually(lambda: _xcom(stack, name, run).get("interval", {}).get("attempt") == 2, what="the XCom of the second attempt")
    moved_again = _xcom(stack, name, run)
    assert (moved_again["records"], moved_again["interval"]["late"]) == (10, 1)
    assert [each for each in stack.connect.connectors() if each.startswith(f"{name}.interval.")] == []
    # The second hour has found the late record, and the run of the first one was cleared for it.
    eventually(lambda: moved(2, 1, 1, by=reruns), within=2 * LIMIT, what="the first hour, moved again")
    own = {_mark(start): {number: 11 if number == 0 else 9 if number == 1 else 10} for number, start in enumerate(starts)}
    assert {mark: dict(found) for mark, found in _written(folder / reruns).items() if mark in own} == own
    found = _intervals(stack, reruns)
    assert [(found[start]["records"], found[start]["late"], found[start]["rerun"]) for start in starts] == [
        (11, 0, False),
        (9, 1, False),
        (10, 0, False),
    ]
    stack.connect.delete(name)
    stack.connect.delete(reruns)


@pytest.mark.long
def test_changes_of_a_database_are_moved_in_the_interval_of_their_commit(
    stack: RunningStack, postgresql_server: PostgresServer
) -> None:
    name = "log-by-seconds"
    with captured_postgres(postgresql_server, name) as source:
        source.execute(
            "create table t (id int primary key, v int)",
            "create publication dbz_publication for all tables",
            f"select pg_create_logical_replication_slot('{source.config['slot.name']}', 'pgoutput')",
        )
        moments = [int(time.time() * 1000)]
        for number in range(3):
            source.execute(*(f"insert into t values ({3 * number + each}, 0)" for each in range(3)))  # noqa: S608 (numbers)
            time.sleep(1)  # the commits are in one interval, and the next ones in another
            moments.append(int(time.time() * 1000))
        config = {
            **source.config,
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "topic.prefix": name,
            "snapshot.mode": "no_data",
            "airflow.mode": "micro-batch",
            "airflow.interval": "exact",
            "airflow.interval.lateness": "0s",
        }
        stack.connect.create(name, config)
        for number, (start, end) in enumerate(pairwise(moments)):
            _trigger(stack, name, start, end)
            if end == moments[1]:
                _trigger(stack, name, start, end)  # as somebody does who does not know that it was moved
            found = _intervals(stack, name)[start]
            assert (found["state"], found["records"], found["attempt"]) == ("done", 3, 1), (number, found)
        assert len(_intervals(stack, name)) == 3
        stack.connect.delete(name)


def _trigger(stack: RunningStack, dag: str, start: int, end: int) -> None:
    """Run a DAG for an interval, to its end."""
    now = _exactly(time.time() * 1000)
    times = {"data_interval_start": _exactly(start), "data_interval_end": _exactly(end), "logical_date": now}
    eventually(lambda: stack.airflow.get(f"/dags/{dag}").status_code == 200, within=2 * LIMIT, what="the DAG")
    answer = stack.airflow.post(f"/dags/{dag}/dagRuns", json=times)
    assert answer.status_code == 200, answer.text
    run = answer.json()["dag_run_id"]

    def ended() -> bool:
        state = stack.airflow.get(f"/dags/{dag}/dagRuns/{run}").json()["state"]
        assert state != "failed"
        return bool(state == "success")

    eventually(ended, within=2 * LIMIT, what="the end of the run")


def _exactly(moment: float) -> str:
    return datetime.fromtimestamp(moment / 1000, timezone.utc).isoformat()


def _text(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment / 1000))


def _mark(moment: int) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(moment / 1000))
