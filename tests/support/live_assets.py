"""A long-running connector with partitions of some seconds, and a DAG that Airflow runs for each of them."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.config.live_assets import Partitions
from sluiceway.provider.lineage.assets import connector_uri
from support.eventually import LIMIT, eventually
from support.stack import RunningStack

PARTITIONS = 3
_HOUR = "* * * * * */5"  # five seconds stand for an hour: time passes as it does
_LATENESS_SECONDS = 2
_DAG = """
from datetime import timedelta

from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

with DAG({dag!r}, schedule=PartitionedAssetTimetable(assets=Asset({uri!r})), max_active_runs=4, is_paused_upon_creation=False):

    @task(retries=9, retry_delay=timedelta(seconds=1))  # a task dies with its scheduler
    def hour(dag_run=None):
        return dag_run.partition_key

    hour()
"""


class LiveHours:
    """Writes records out of order to a topic all the time, from which a sink with partitions reads.

    Context manager: the sink, and the DAG behind it, exist while it lasts.
    """

    def __init__(self, stack: RunningStack, name: str, folder: Path) -> None:
        self.name, self.dag = name, f"{name}-each-hour"
        self._stack = stack
        self._file = stack.home / "airflow" / "dags" / f"{self.dag}.py"
        self._folder = folder
        self._stopping = threading.Event()
        self._writer = threading.Thread(target=self._write, name="live-hours")

    def __enter__(self) -> LiveHours:
        admin = AdminClient({"bootstrap.servers": self._stack.addresses.bootstrap})
        admin.create_topics([NewTopic(self.name, PARTITIONS, 1)])[self.name].result(LIMIT)
        self._writer.start()
        self._file.write_text(_DAG.format(dag=self.dag, uri=connector_uri(self.name)))
        eventually(lambda: self._stack.dag(self.dag), within=2 * LIMIT, what=f"DAG {self.dag}")
        self._stack.connect.create(
            self.name,
            {
                "connector.class": "FileStreamSink",
                "topics": self.name,
                "file": str(self._folder / self.name),
                "value.converter": "StringConverter",
                "airflow.partition": _HOUR,
                "airflow.interval.lateness": f"{_LATENESS_SECONDS}s",
            },
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._writer.join(LIMIT)
        self._file.unlink()
        if self._stack.states(self.name):
            self._stack.connect.delete(self.name)

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self._stack.addresses.bootstrap, "linger.ms": 0})
        chance = random.Random(1)  # noqa: S311 (test data)
        while not self._stopping.wait(0.2):
            for partition in range(PARTITIONS):
                moment = time.time() - chance.uniform(0, _LATENESS_SECONDS / 2)
                producer.produce(self.name, str(moment), partition=partition, timestamp=int(moment * 1000))
            producer.poll(0)
        producer.flush(LIMIT)

    def events(self) -> list[dict[str, Any]]:
        """Return the extra of the connector's events, the oldest first."""
        found: list[dict[str, Any]] = []
        while page := self._get("/assets/events", "asset_events", len(found)):
            found += page
        mine = [each for each in found if each["uri"] == connector_uri(self.name)]
        return [each["extra"] for each in sorted(mine, key=lambda each: each["id"])]

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs of the DAG behind the connector."""
        return self._get(f"/dags/{self.dag}/dagRuns", "dag_runs")

    def done(self) -> int:
        """Return for how many hours the DAG has run with success; raise if it has run twice for one."""
        found = self.runs()
        assert set(Counter(run["partition_key"] for run in found).values()) <= {1}, found
        return sum(run["state"] == "success" for run in found)

    def each_hour_had_its_run(self) -> bool:
        """Return whether the DAG has run for each hour that had an event; raise if an hour between two others had none."""
        if any(run["start_date"] is None for run in self.runs()):
            return False  # Airflow 3.3 cannot return an event while a run that it made is queued: HTTP 500
        events = self.events()
        starts = [each["start"] for each in events]
        hours = Partitions.of(_HOUR)
        assert starts[1:] == [hours.after(start) for start in starts[:-1]]
        runs = {run["partition_key"] for run in self.runs() if run["state"] == "success"}
        return runs == {each["partition_key"] for each in events}

    def pause(self) -> None:
        """Have the connector make no more events."""
        self._stack.connect.stop(self.name)

    def _get(self, path: str, name: str, offset: int = 0) -> list[dict[str, Any]]:
        answer = self._stack.airflow.get(path, params={"limit": 100, "offset": offset})
        answer.raise_for_status()
        found: list[dict[str, Any]] = answer.json()[name]
        return found
