"""Each example DAG on a real stack, imported by a file in the DAGs folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge
from redis import Redis

from sluiceway.connectors.hbase.client import Put
from support.eventually import eventually
from support.hbase.server import HBaseServer
from support.kafka import Kafka
from support.metric_targets import exposing
from support.redis_server import RedisServer
from support.search import SearchServer
from support.stack import START, RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

_FILE = """
import os
os.environ.update({environment!r})
from sluiceway.dags.{dag} import dag  # an Airflow DAG
"""


class Examples:
    """Adds example DAGs to the DAGs folder, runs them, and cleans up."""

    def __init__(self, stack: RunningStack) -> None:
        self.stack = stack
        self._dags = stack.home / "airflow" / "dags"
        self._files: list[Path] = []

    def add(self, dag: str, **environment: object) -> None:
        """Add an example with these variables, wait until it is parsed, and unpause it."""
        path = self._dags / f"use_{dag}.py"
        texts = {f"SLUICEWAY_EXAMPLE_{key.upper()}": str(value) for key, value in environment.items()}
        path.write_text(_FILE.format(dag=dag, environment=texts))
        self._files.append(path)
        eventually(lambda: self.stack.dag(dag), what=f"the DAG {dag}")
        self.stack.set_paused(dag, False)

    def scheduled_run(self, dag: str) -> str:
        """Return the id of the scheduled run."""
        runs = eventually(lambda: self.stack.airflow.get(f"/dags/{dag}/dagRuns").json()["dag_runs"], what=f"a run of {dag}")
        return str(runs[0]["dag_run_id"])

    def begin(self, dag: str) -> str:
        """Trigger a run and return its id."""
        answer = self.stack.airflow.post(f"/dags/{dag}/dagRuns", json={"logical_date": None})
        return str(answer.raise_for_status().json()["dag_run_id"])

    def run(self, dag: str) -> str:
        """Trigger a run, wait until it succeeds, and return its id. A failure shows the tasks' states."""
        return self.ended(dag, self.begin(dag))

    def ended(self, dag: str, run_id: str) -> str:
        """Wait until a run succeeds, and return its id. A failure shows the tasks' states."""
        url = f"/dags/{dag}/dagRuns/{run_id}"
        ended = eventually(
            lambda: (state := self.stack.airflow.get(url).json()["state"]) in ("success", "failed") and state,
            within=2 * START,
            what=f"the end of {dag}, whose tasks are {self.task_states(dag, run_id)}",
        )
        assert ended == "success", self.task_states(dag, run_id)
        return run_id

    def task_states(self, dag: str, run_id: str) -> Mapping[str, str]:
        instances = self.stack.airflow.get(f"/dags/{dag}/dagRuns/{run_id}/taskInstances").json()["task_instances"]
        return {each["task_id"]: each["state"] for each in instances}

    def returned(self, dag: str, run_id: str, task: str) -> Any:
        url = f"/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}/xcomEntries/return_value"
        return self.stack.airflow.get(url, params={"deserialize": True}).json()["value"]

    def links(self, dag: str, run_id: str, task: str) -> dict[str, str | None]:
        """Return a task's extra links in Airflow's UI by name."""
        links = self.stack.airflow.get(f"/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}/links").json()["extra_links"]
        return dict(links)

    def close(self) -> None:
        for path in self._files:
            path.unlink()


@pytest.fixture
def examples(stack: RunningStack) -> Iterator[Examples]:
    found = Examples(stack)
    yield found
    found.close()


def test_a_landed_file_is_delivered_on_schedule_and_a_second_run_delivers_appended_lines(
    examples: Examples, folder: Path
) -> None:
    dag, landing, delivered = "example_landing_to_files", folder / "landing", folder / "delivered"
    landing.mkdir()
    delivered.mkdir()
    today = f"{datetime.now(timezone.utc):%Y-%m-%d}.txt"
    (landing / today).write_text("one\ntwo\n")
    (landing / "2024-01-01.txt").write_text("an older one\n")
    examples.add(dag, landing=landing, delivered=delivered, topic="example-landing")
    run_id = examples.ended(dag, examples.scheduled_run(dag))
    assert examples.task_states(dag, run_id) == {"publish": "success", "deliver": "success"}
    with (landing / today).open("a") as file:
        file.write("three\n")
    examples.run(dag)
    assert {path.name: path.read_text() for path in delivered.iterdir()} == {today: "one\ntwo\nthree\n"}
    for name in ("example-landing-source", "example-landing-sink"):
        assert examples.stack.driver(name) is None
    rest = f"{examples.stack.addresses.airflow}/sluiceway/connectors/example-landing-source/status"
    assert examples.links(dag, run_id, "publish")["Connector status (REST)"] == rest


def test_delivered_files_are_in_the_topic_and_are_moved(examples: Examples, folder: Path) -> None:
    dag, inbox, done = "example_files_to_topic", folder / "inbox", folder / "done"
    (inbox / "shop").mkdir(parents=True)
    (inbox / "shop" / "one.csv").write_text('id,name\n1,a\n2,"b, c"')
    (inbox / "two.csv.tmp").write_text("not yet")
    examples.add(dag, inbox=inbox, done=done, topic="example-deliveries")
    examples.ended(dag, examples.scheduled_run(dag))
    (inbox / "two.csv").write_text("id,name\n3,d\n")
    examples.run(dag)
    values = Kafka(examples.stack.addresses.bootstrap).values("example-deliveries", 3)
    assert [json.loads(each) for each in values] == [
        {"id": "1", "name": "a"},
        {"id": "2", "name": "b, c"},
        {"id": "3", "name": "d"},
    ]
    assert sorted(path.relative_to(done).as_posix() for path in done.rglob("*.csv")) == ["shop/one.csv", "two.csv"]
    assert [path.name for path in inbox.rglob("*") if path.is_file()] == ["two.csv.tmp"]


def test_rows_of_hbase_are_copied_to_another_table(examples: Examples) -> None:
    dag = "example_hbase_copy"
    with HBaseServer() as server:
        table, copy = (server.create(name, "d", "e") for name in ("orders", "orders_copy"))
        with server.client() as client:
            client.put(table, [Put(b"%d" % each, ((b"d", b"n", b"%d" % each), (b"e", b"m", b"x")), 1) for each in range(3)])
        examples.add(dag, hbase=f"127.0.0.1:{server.port}")
        examples.ended(dag, examples.scheduled_run(dag))
        assert server.rows(copy) == {b"%d" % each: {"d:n": b"%d" % each, "e:m": b"x"} for each in range(3)}


def test_documents_are_copied_to_another_index(examples: Examples) -> None:
    dag = "example_search_copy"
    with SearchServer() as server:
        for number in range(3):
            server.call("PUT", f"/orders/_doc/{number}", {"total": number})
        examples.add(dag, search_from=server.url, search_to=server.url)
        examples.ended(dag, examples.scheduled_run(dag))
        server.call("PUT", "/orders/_doc/1", {"total": 7})
        examples.run(dag)
        assert server.documents("example-search-orders") == {"0": {"total": 0}, "1": {"total": 7}, "2": {"total": 2}}


def test_the_newest_entries_of_a_stream_are_hashes(examples: Examples) -> None:
    dag, server = "example_redis_latest", RedisServer()
    with closing(server):
        server.start()
        redis = Redis.from_url(server.url, decode_responses=True)
        for customer, total in (("7", "1"), ("8", "2"), ("7", "3")):
            redis.xadd("orders", {"customer": customer, "total": total})
        examples.add(dag, redis=server.url)
        examples.ended(dag, examples.scheduled_run(dag))
        hashes = {key: redis.hgetall(key) for key in redis.scan_iter("customer:*")}
        assert hashes == {"customer:7": {"customer": "7", "total": "3"}, "customer:8": {"customer": "8", "total": "2"}}
    assert len(Kafka(examples.stack.addresses.bootstrap).values("example-redis", 3)) == 3


def test_metrics_are_scraped_until_the_dag_is_paused(examples: Examples) -> None:
    dag, topic = "example_application_metrics", "example-app-metrics"
    registry = CollectorRegistry()
    Gauge("stock_level", "pieces", registry=registry).set(7)
    with exposing(registry) as target:
        examples.add(dag, targets=target, metrics_topic=topic)
        kafka = Kafka(examples.stack.addresses.bootstrap)
        eventually(lambda: kafka.count(topic) > 0, within=START, what="records")
        records = [json.loads(message.value() or b"") for message in kafka.read_committed(topic)]
        assert {"stock_level": 7.0}.items() <= {record["name"]: record["value"] for record in records}.items()
        examples.stack.set_paused(dag, True)
        eventually(lambda: examples.stack.driver("example-application-metrics") is None, within=START, what="the driver's end")
        assert examples.stack.connect.status("example-application-metrics")["connector"]["state"] == "PAUSED"


def test_the_sensor_succeeds_when_the_topic_has_new_records_and_takes_no_slot_before(examples: Examples, folder: Path) -> None:
    dag, connect = "example_sensor_gate", examples.stack.connect
    source, collected = folder / "gated.txt", folder / "collected.txt"
    source.write_text("one\ntwo\nthree\n")
    examples.add(dag, topic="example-gated", collected=collected)

    def held(run_id: str) -> str:
        eventually(
            lambda: examples.task_states(dag, run_id)["gate"] == "up_for_reschedule",
            within=START,
            what="the sensor waiting without a slot",
        )
        return run_id

    run_id = held(examples.scheduled_run(dag))
    connect.create("gated-source", {"connector.class": "FileStreamSource", "file": str(source), "topic": "example-gated"})
    examples.ended(dag, run_id)
    run_id = held(examples.begin(dag))
    with source.open("a") as file:
        file.write("four\n")
    examples.ended(dag, run_id)
    assert collected.read_text() == source.read_text()
    assert examples.returned(dag, run_id, "count") == 4
    connect.delete("gated-source")


def test_a_hand_written_dag_triggers_a_generated_one(examples: Examples, folder: Path) -> None:
    dag, export = "example_beside_generated", folder / "export.txt"
    source = folder / "unsorted.txt"
    source.write_text("pear\napple\nfig\n")
    batch = {"airflow.mode": "micro-batch", "tasks.max": "1"}
    connect = examples.stack.connect
    connect.create("export-in", {**batch, "connector.class": "FileStreamSource", "file": str(source), "topic": "example-export"})
    connect.create(
        "example-export",
        {
            **batch,
            "connector.class": "FileStreamSink",
            "file": str(export),
            "topics": "example-export",
        },
    )
    for name in ("export-in", "example-export"):
        eventually(lambda name=name: examples.stack.dag(name), what=f"the generated DAG {name}")
    examples.run("export-in")
    examples.add(dag, generated="example-export", export=export)
    run_id = examples.run(dag)
    assert export.read_text() == source.read_text()
    assert Path(examples.returned(dag, run_id, "sort")).read_text() == "apple\nfig\npear\n"
    for name in ("export-in", "example-export"):
        connect.delete(name)
