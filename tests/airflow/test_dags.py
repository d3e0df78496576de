"""Generated and hand-written DAGs on a real Airflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.rest.client import RestError
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from support.eventually import eventually
from support.stack import START, RunningStack

pytestmark = pytest.mark.airflow

# An Airflow DAG with the sensor, and the example beside it, as a user would put them into the DAGs folder.
_SENSOR_DAG = """
from airflow.sdk import DAG
from sluiceway.sensors import ConnectorStateSensor

with DAG("waits_for_a_connector", schedule=None, is_paused_upon_creation=False):
    ConnectorStateSensor(task_id="wait", connector="example-file-sink", poke_interval=2, fail_on=("FAILED",))
"""
# An Airflow DAG that follows a connector, as a user would write it.
_FOLLOWER = """
from airflow.sdk import DAG, task
from sluiceway.provider.lineage.assets import connector_asset

with DAG("follows_batch_in", schedule=[connector_asset("batch-in")], is_paused_upon_creation=False):

    @task
    def read(triggering_asset_events=None):
        [event] = next(iter(triggering_asset_events.values()))
        return event.extra

    read()
"""
_EXAMPLE = """
import os
os.environ.update({environment!r})
from sluiceway.dags.example_file_to_file import dag  # an Airflow DAG
"""


def _import_errors(stack: RunningStack) -> dict[str, str]:
    errors = stack.airflow.get("/importErrors").json()["import_errors"]
    return {error["filename"]: error["stack_trace"] for error in errors}


def _runs(stack: RunningStack, dag_id: str) -> list[dict[str, Any]]:
    return stack.airflow.get(f"/dags/{dag_id}/dagRuns").json().get("dag_runs", [])


def test_a_config_that_cannot_become_a_dag_does_not_affect_other_dags(stack: RunningStack, folder: Path) -> None:
    config = {"connector.class": "FileStreamSource", "file": str(folder / "none"), "topic": "none", "airflow.mode": "micro-batch"}
    store = KafkaConfigBackingStore(WorkerConfig.of(read_properties(Path(stack.addresses.worker_file))))
    store.start()
    store.put_connector("wrong", {**config, "airflow.schedule": "every now and then"})  # the REST API refuses it
    store.stop()
    stack.connect.create("right: of way", config)
    right = "right_x3A_x20of_x20way"
    dag = eventually(lambda: stack.dag(right), what="the DAG of the right one")
    assert dag["dag_display_name"] == "right: of way"
    errors = eventually(lambda: _import_errors(stack), what="the import error of the wrong one")
    [(file, trace)] = errors.items()
    assert file.endswith("connector-wrong.py")
    assert "Invalid value every now and then for configuration airflow.schedule" in trace
    assert stack.dag("wrong") is None
    stack.connect.put_config("wrong", {**config, "airflow.schedule": "@daily"})
    eventually(lambda: not _import_errors(stack), what="the import error tombstone")
    eventually(lambda: stack.dag("wrong"), what="the DAG of the one put right")
    for name in ("wrong", "right: of way"):
        stack.connect.delete(name)


def test_a_connector_does_not_replace_a_dag_of_its_name(stack: RunningStack, folder: Path) -> None:
    config = {"connector.class": "FileStreamSource", "file": str(folder / "none"), "topic": "none", "airflow.mode": "micro-batch"}
    file = stack.home / "airflow" / "dags" / "nightly.py"
    stack.connect.create("hourly", config)
    # Of two files that come at once, Airflow uses the one that it parses last, until it parses the other again.
    eventually(lambda: stack.dag("hourly"), what="the connector's DAG")
    for name in ("nightly", "hourly"):
        file.with_name(f"{name}.py").write_text(
            f"from airflow.sdk import DAG\nmade = DAG({name!r}, tags=['mine'], schedule=None)\n"
        )
    eventually(lambda: stack.dag("nightly"), what="the DAG of the file")
    with pytest.raises(RestError, match="DAG nightly exists in bundle dags-folder") as refused:
        stack.mounted.create("nightly", config)
    assert refused.value.status == 409
    errors = eventually(lambda: _import_errors(stack), what="the import error of the connector whose DAG's id was taken later")
    [(path, trace)] = errors.items()
    assert path.endswith("connector-hourly.py")
    assert "DAG hourly exists in bundle dags-folder" in trace
    for name in ("nightly", "hourly"):
        dag = stack.dag(name)
        assert dag is not None
        assert [tag["name"] for tag in dag["tags"]] == ["mine"]
        file.with_name(f"{name}.py").unlink()
    stack.connect.delete("hourly")
    eventually(lambda: not _import_errors(stack), what="the end of the import error")


@dataclass
class Batches:
    """A source and a sink whose runs are micro-batches, and their files."""

    stack: RunningStack
    source: Path
    copy: Path

    def run(self, name: str) -> None:
        """Run a connector's DAG once, after the runs that it has had, and wait until no driver is left."""
        runs = len(_runs(self.stack, name)) + 1
        self.stack.airflow.post(f"/dags/{name}/dagRuns", json={"logical_date": None}).raise_for_status()
        self.await_success(name, runs)
        assert self.stack.driver(name) is None

    def await_success(self, dag_id: str, runs: int = 1) -> None:
        def done() -> bool:
            return [run["state"] for run in _runs(self.stack, dag_id)] == ["success"] * runs

        eventually(done, within=START, what=f"{runs} successful run(s) of {dag_id}")

    def copied(self) -> list[str]:
        """Return the lines of the source that the sink has written, after the source's transforms."""
        return re.findall(r"Struct\{line=(.*),origin=not for the log\}\n", self.copy.read_text())

    def xcom(self, dag_id: str, task_id: str) -> Any:
        """Return what a task of a DAG's only run has returned."""
        [run] = _runs(self.stack, dag_id)
        path = f"/dags/{dag_id}/dagRuns/{run['dag_run_id']}/taskInstances/{task_id}/xcomEntries/return_value"
        return self.stack.airflow.get(path, params={"deserialize": True}).json()["value"]


@pytest.fixture(scope="module")
def batches(stack: RunningStack, folder: Path) -> Iterator[Batches]:
    made = Batches(stack, folder / "batch.txt", folder / "batch.copy")
    made.source.write_text("1a\n1b\n")
    stack.airflow.post("/variables", json={"key": "origin", "value": "not for the log"}).raise_for_status()
    config = {"tasks.max": "1", "airflow.mode": "micro-batch", "airflow.tags": "nightly"}
    transforms = {
        "transforms": "line,origin",
        "transforms.line.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.line.field": "line",
        "transforms.origin.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.origin.static.field": "origin",
        "transforms.origin.static.value": "${airflow:variable:origin}",
    }
    reads = {**config, **transforms, "connector.class": "FileStreamSource", "file": str(made.source), "topic": "batch"}
    stack.connect.create("batch-in", reads)
    stack.connect.create("batch-out", {**config, "connector.class": "FileStreamSink", "file": str(made.copy), "topics": "batch"})
    (stack.home / "airflow" / "dags" / "follower.py").write_text(_FOLLOWER)
    for name in ("batch-in", "batch-out"):
        dag = eventually(lambda name=name: stack.dag(name), what=f"DAG {name}")
        assert "nightly" in [tag["name"] for tag in dag["tags"]]
    eventually(lambda: stack.dag("follows_batch_in"), what="the follower's DAG")
    yield made
    for name in ("batch-in", "batch-out"):
        stack.connect.delete(name)


def test_a_run_reports_its_records_and_triggers_dags_that_depend_on_its_asset(batches: Batches) -> None:
    batches.run("batch-in")
    moved = batches.xcom("batch-in", "run")
    assert moved["records"] == 2
    assert moved["seconds"] > 0
    assert moved["offsets"] == [{"partition": {"filename": str(batches.source)}, "from": None, "to": {"position": 6}}]
    batches.await_success("follows_batch_in")
    assert batches.xcom("follows_batch_in", "read") == moved
    assets = batches.stack.airflow.get("/assets", params={"only_active": False}).json()["assets"]
    uris = [asset["uri"] for asset in assets]
    assert any(uri.startswith("kafka://") and uri.endswith("/batch") for uri in uris), "the topic is an asset too"


def test_a_micro_batch_continues_after_the_one_before_and_ends_with_the_available_records(batches: Batches) -> None:
    with batches.source.open("a") as file:  # the run of the test before has read what it had
        file.write("2a\n2b\n")
    for name in ("batch-in", "batch-out"):
        batches.run(name)
    assert batches.copied() == batches.source.read_text().splitlines()
    stack = batches.stack
    assert stack.connect.config("batch-in")["transforms.origin.static.value"] == "${airflow:variable:origin}"
    logs = [log for log in stack.home.rglob("*.log") if "data" not in log.parts]  # the broker's data files are also called logs
    assert not [log for log in logs if "not for the log" in log.read_text(errors="replace")], "a secret stands in a log"


@pytest.mark.long
def test_the_next_micro_batch_of_a_sink_continues_after_the_one_before(batches: Batches) -> None:
    for lines in ("3a\n", "3b\n"):
        with batches.source.open("a") as file:
            file.write(lines)
        for name in ("batch-in", "batch-out"):
            batches.run(name)
        assert batches.copied() == batches.source.read_text().splitlines()


@pytest.mark.long
def test_the_example_dag_copies_a_file_and_pausing_it_pauses_both_connectors(stack: RunningStack, folder: Path) -> None:
    source, copy = folder / "example.txt", folder / "example.copy"
    source.write_text("one\ntwo\n")
    environment = {
        "SLUICEWAY_EXAMPLE_SOURCE": str(source),
        "SLUICEWAY_EXAMPLE_SINK": str(copy),
        "SLUICEWAY_EXAMPLE_TOPIC": "example",
    }
    dags = stack.home / "airflow" / "dags"
    (dags / "example.py").write_text(_EXAMPLE.format(environment=environment))
    (dags / "waits.py").write_text(_SENSOR_DAG)
    example, names = "example_file_to_file", ("example-file-source", "example-file-sink")
    eventually(lambda: stack.is_paused(example), what="the example DAG, paused as it says")
    eventually(lambda: stack.dag("waits_for_a_connector"), what="the sensor's DAG")
    stack.airflow.post("/dags/waits_for_a_connector/dagRuns", json={"logical_date": None}).raise_for_status()
    stack.set_paused(example, False)
    eventually(lambda: copy.exists() and copy.read_text() == source.read_text(), what="the copy")
    waits = "waits_for_a_connector"
    eventually(lambda: [run["state"] for run in _runs(stack, waits)] == ["success"], what="the sensor")
    assert stack.connect.config(names[0])["airflow.dag"] == example
    assert stack.dag(names[0]) is None, "a connector that a hand-written DAG runs has no DAG made for it"

    stack.connect.pause(names[1])
    for name in names:
        stack.await_states(name, "PAUSED", "PAUSED")
    assert stack.is_paused(example)
    stack.connect.resume(names[0])
    for name in names:
        stack.await_states(name, "RUNNING", "RUNNING")
    with source.open("a") as file:
        file.write("three\n")
    eventually(lambda: copy.read_text() == source.read_text(), what="the appended line")
    stack.set_paused(example, True)
    (dags / "example.py").unlink()
    for name in names:
        stack.connect.delete(name)
        eventually(lambda name=name: stack.driver(name) is None, what=f"the end of {name}'s driver")
