# ruff: noqa: S608 (of a database of our own)
"""The example DAGs between a database and Kafka, on a real Airflow."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from sluiceway.api import SinkRecord
from support.eventually import eventually
from support.jdbc_sink import fill, person, tombstone
from support.stack import START, RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

_DAG = """
import os
os.environ.update({environment!r})
from sluiceway.dags.{module} import dag  # an Airflow DAG
"""


def place(stack: RunningStack, module: str, environment: Mapping[str, str]) -> Path:
    """Copy an example into the DAGs folder and wait until Airflow has parsed it."""
    file = stack.home / "airflow" / "dags" / f"{module}.py"
    file.write_text(_DAG.format(environment=dict(environment), module=module))
    eventually(lambda: stack.is_paused(module), what=f"the DAG {module}, paused as it says")
    return file


def run(stack: RunningStack, dag_id: str) -> None:
    """Run a DAG and wait until it succeeds."""
    answer = stack.airflow.post(f"/dags/{dag_id}/dagRuns", json={"logical_date": None})
    answer.raise_for_status()
    path = f"/dags/{dag_id}/dagRuns/{answer.json()['dag_run_id']}"
    state = eventually(
        lambda: next((each for each in [stack.airflow.get(path).json()["state"]] if each in ("success", "failed")), None),
        within=START,
        what=f"the end of a run of {dag_id}",
    )
    assert state == "success"


def sql(file: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


def values(stack: RunningStack, topic: str) -> list[Any]:
    """Return the payloads of a topic's values, without schemas."""
    consumer = Consumer(
        {"bootstrap.servers": stack.addresses.bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
    )
    try:
        partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
        _, end = consumer.get_watermark_offsets(partition, timeout=10)
        consumer.assign([partition])
        messages: list[Any] = []
        eventually(lambda: messages.extend(consumer.consume(end, 0.2)) or len(messages) >= end, what=f"{end} of {topic}")
        return [json.loads(message.value()) for message in messages]
    finally:
        consumer.close()


def test_the_nightly_run_copies_new_rows_of_all_tables_to_their_topics(stack: RunningStack, folder: Path) -> None:
    file, name = folder / "shop.db", "example_database_to_topics"
    for table in ("people", "things"):
        sql(file, f"create table {table} (id integer primary key, name text)")
        sql(file, f"insert into {table} (name) values ('a'), ('b')")
    dag = place(stack, name, {"SLUICEWAY_EXAMPLE_DATABASE": f"jdbc:sqlite:{file}", "SLUICEWAY_EXAMPLE_PREFIX": "shop-"})
    stack.set_paused(name, False)
    for expected in ("a", "b"), ("a", "b", "c"):
        run(stack, name)
        for table in ("people", "things"):
            assert [value["payload"]["name"] for value in values(stack, f"shop-{table}")] == list(expected)
            sql(file, f"insert into {table} (name) values ('c')")
        assert stack.driver("example-database-source") is None
    stack.set_paused(name, True)
    dag.unlink()
    stack.connect.delete("example-database-source")


def test_a_table_follows_the_changes_of_a_topic(stack: RunningStack, folder: Path) -> None:
    file, name, topic = folder / "target.db", "example_topics_to_database", "example-people"

    def write(*records: SinkRecord) -> None:
        fill(stack.addresses.bootstrap, records)

    def rows() -> list[Any]:
        try:
            return sql(file, f'select id, name from "{topic}" order by id')
        except sqlite3.OperationalError:  # the table does not exist yet
            return []

    write(*(person(0, number, f"n{number}", topic=topic) for number in range(3)))
    dag = place(stack, name, {"SLUICEWAY_EXAMPLE_TARGET": f"jdbc:sqlite:{file}", "SLUICEWAY_EXAMPLE_TOPICS": topic})
    stack.set_paused(name, False)
    eventually(lambda: rows() == [(0, "n0"), (1, "n1"), (2, "n2")], what="the table")
    write(tombstone(0, 0, topic=topic), person(0, 1, "other", topic=topic), person(0, 9, "new", topic=topic))
    eventually(lambda: rows() == [(1, "other"), (2, "n2"), (9, "new")], what="the table in step")
    stack.set_paused(name, True)
    dag.unlink()
    stack.connect.delete("example-database-sink")
    eventually(lambda: stack.driver("example-database-sink") is None, what="the end of the driver")
