"""Sensors, control operators, backfills and shared applications on a real Airflow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.stack import RunningStack

pytestmark = pytest.mark.airflow

BATCH = {"airflow.mode": "micro-batch"}
TOPIC = "room"
MIDDLE_OF_2024 = int(datetime(2024, 6, 1, tzinfo=timezone.utc).timestamp() * 1000)

_SENSORS = """
from airflow.sdk import DAG
from sluiceway.operators import PauseConnectorOperator, ResumeConnectorOperator
from sluiceway.sensors import ConnectorLagSensor, ConnectorOffsetsSensor, ConnectorStateSensor, TopicRecordsSensor

at_three = [{"partition": {"kafka_topic": "room", "kafka_partition": 0}, "offset": {"kafka_offset": 3}}]
with DAG("waits_in_the_triggerer", schedule=None, is_paused_upon_creation=False):
    lag = ConnectorLagSensor(task_id="lag", connector="room-out", at_most=0, deferrable=True)
    offsets = ConnectorOffsetsSensor(task_id="offsets", connector="room-out", offsets=at_three, deferrable=True)
    records = TopicRecordsSensor(task_id="records", topic="room", since="2024-01-01", count=3, deferrable=True)
    pause = PauseConnectorOperator(task_id="pause", connector="room-out")
    paused = ConnectorStateSensor(task_id="paused", connector="room-out", states=["PAUSED"], deferrable=True)
    resume = ResumeConnectorOperator(task_id="resume", connector="room-out")
    [lag, offsets, records] >> pause >> paused >> resume
"""


def _trigger(stack: RunningStack, dag_id: str) -> None:
    stack.airflow.post(f"/dags/{dag_id}/dagRuns", json={"logical_date": None}).raise_for_status()


def _begins(stack: RunningStack, backfill: Mapping[str, Any]) -> bool:
    """Create a backfill, unless Airflow answers that SQLite is locked."""
    answer = stack.airflow.post("/backfills", json=backfill)
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return False
    answer.raise_for_status()
    return True


def _runs(stack: RunningStack, dag_id: str) -> list[Mapping[str, Any]]:
    return list(stack.airflow.get(f"/dags/{dag_id}/dagRuns").json().get("dag_runs", []))


def _await_success(stack: RunningStack, dag_id: str, runs: int = 1, within: float = LIMIT) -> None:
    def done() -> bool:
        states = [str(run["state"]) for run in _runs(stack, dag_id)]
        assert "failed" not in states, dag_id
        return states == ["success"] * runs

    eventually(done, within=within, what=f"{runs} successful run(s) of {dag_id}")


def _produce(stack: RunningStack, *lines: str, timestamp: int = 0, topic: str = TOPIC) -> None:
    """Write records like FileStreamSource's into a topic; a timestamp of 0 is now."""
    producer = Producer({"bootstrap.servers": stack.addresses.bootstrap})
    for line in lines:
        value = json.dumps({"schema": {"type": "string", "optional": False}, "payload": line})
        producer.produce(topic, value, timestamp=timestamp)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module", autouse=True)
def records(stack: RunningStack) -> None:
    """The topic's first records."""
    _produce(stack, "one", "two", "three")


def _backfills(stack: RunningStack) -> list[str]:
    return [name for name in stack.connect.connectors() if ".interval." in name]


@pytest.mark.long
def test_sensors_defer_to_the_triggerer_and_operators_control_connectors(stack: RunningStack, folder: Path) -> None:
    copy = folder / "room.copy"
    stack.connect.create("room-out", {"connector.class": "FileStreamSink", "file": str(copy), "topics": TOPIC})
    (stack.home / "airflow" / "dags" / "waits_in.py").write_text(_SENSORS)
    eventually(lambda: stack.dag("waits_in_the_triggerer"), what="the sensors' DAG")
    _trigger(stack, "waits_in_the_triggerer")
    _await_success(stack, "waits_in_the_triggerer")
    assert copy.read_text() == "one\ntwo\nthree\n"
    stack.await_states("room-out", "RUNNING", "RUNNING")
    stack.connect.delete("room-out")


def test_a_backfill_copies_its_window_with_its_own_offsets(stack: RunningStack, folder: Path) -> None:
    copy = folder / "room.backfill"
    config = {
        **BATCH,
        "connector.class": "FileStreamSink",
        "file": str(copy),
        "topics": "years",
        "airflow.schedule": "@yearly",
        # What only a run knows must not be in the way of what is done without one: offsets and the backfill's connector.
        "transforms": "day",
        "transforms.day.type": "org.apache.kafka.connect.transforms.InsertHeader",
        "transforms.day.header": "day",
        "transforms.day.value.literal": "${airflow:run:ds}",
    }
    Kafka(stack.addresses.bootstrap).create("years", retention_ms="-1")  # the usual retention deletes a record so old
    _produce(stack, "old", timestamp=MIDDLE_OF_2024, topic="years")
    _produce(stack, "one", "two", topic="years")
    stack.connect.create("room-again", config)
    eventually(lambda: stack.dag("room-again"), what="the sink's DAG")
    _await_success(stack, "room-again")  # the run of the last whole year, which includes all records
    lines, offsets = copy.read_text(), stack.connect.offsets("room-again")
    assert lines == "old\none\ntwo\n"
    window = {"from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-01T00:00:00Z"}
    backfill = {"dag_id": "room-again", **window, "max_active_runs": 1, "reprocess_behavior": "completed"}
    eventually(lambda: _begins(stack, backfill), what="the backfill")

    def backfilled() -> list[str]:
        return [str(run["state"]) for run in _runs(stack, "room-again") if run["run_type"] == "backfill"]

    eventually(lambda: backfilled() == ["success"], what="the backfill's run")
    assert copy.read_text() == lines + "old\n", "one record of the topic is of that year"
    assert stack.connect.offsets("room-again") == offsets, "the live offsets are as they were"
    eventually(lambda: not _backfills(stack), what="the backfill's connector gone")
    stack.connect.delete("room-again")


@pytest.mark.long
def test_connectors_that_share_an_application_are_paused_one_by_one(stack: RunningStack, folder: Path) -> None:
    shared = {"connector.class": "FileStreamSource", "sluiceway.application": "small"}
    for each in ("a", "b"):
        (folder / f"shared-{each}.txt").write_text("x\n")
        stack.connect.create(f"shared-{each}", {**shared, "file": str(folder / f"shared-{each}.txt"), "topic": f"shared-{each}"})
    for each in ("a", "b"):
        stack.await_states(f"shared-{each}", "RUNNING", "RUNNING")
    driver = stack.driver("small")
    assert driver is not None
    assert stack.worker_id("shared-a") == stack.worker_id("shared-b")
    stack.set_paused("shared-a", True)
    stack.await_states("shared-a", "PAUSED", "PAUSED")
    stack.await_states("shared-b", "RUNNING", "RUNNING")
    stack.set_paused("shared-a", False)
    stack.await_states("shared-a", "RUNNING", "RUNNING")
    assert driver.is_running(), "the same driver all the time"
    for each in ("a", "b"):
        stack.connect.delete(f"shared-{each}")
    eventually(lambda: not driver.is_running(), what="the end of an application without connectors")
