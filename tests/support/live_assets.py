"""A long-running connector with partitions of an hour, and a DAG that Airflow runs for each of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.config.live_assets import partition_key
from sluiceway.provider.lineage.assets import connector_uri
from support.eventually import LIMIT, eventually
from support.stack import RunningStack

HOUR = 3_600_000
PARTITIONS = 3
_DAG = """
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

with DAG({dag!r}, schedule=PartitionedAssetTimetable(assets=Asset({uri!r})), max_active_runs=4, is_paused_upon_creation=False):

    @task
    def hour(dag_run=None):
        return dag_run.partition_key

    hour()
"""


class SimulatedHours:
    """Writes the records of this hour and later ones to a topic, so that only later records and no clock complete them.

    Context manager: the sink that reads the topic, and the DAG behind it, exist while it lasts.
    """

    def __init__(self, stack: RunningStack, name: str, folder: Path) -> None:
        self.name, self.dag = name, f"{name}-each-hour"
        self._stack = stack
        self._file = stack.home / "airflow" / "dags" / f"{self.dag}.py"
        self._folder = folder
        self.first = int(time.time() * 1000) // HOUR * HOUR
        self._written = 0

    def __enter__(self) -> SimulatedHours:
        config = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
        admin = AdminClient({"bootstrap.servers": self._stack.addresses.bootstrap})
        admin.create_topics([NewTopic(self.name, PARTITIONS, 1, config=config)])[self.name].result(LIMIT)
        self._file.write_text(_DAG.format(dag=self.dag, uri=connector_uri(self.name)))
        eventually(lambda: self._stack.dag(self.dag), within=2 * LIMIT, what=f"DAG {self.dag}")
        self._stack.connect.create(
            self.name,
            {
                "connector.class": "FileStreamSink",
                "topics": self.name,
                "file": str(self._folder / self.name),
                "value.converter": "StringConverter",
                "airflow.partition": "hour",
                "airflow.interval.lateness": "10m",
            },
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._file.unlink()
        if self._stack.states(self.name):
            self._stack.connect.delete(self.name)

    def write(self, hours: int) -> None:
        """Write the next hours, some records of which come up to ten minutes late."""
        producer = Producer({"bootstrap.servers": self._stack.addresses.bootstrap})
        for hour in range(self._written, self._written + hours):
            begin = self.first + hour * HOUR
            minutes = (0, -1, 20, 40, 59) if hour else (0, 20, 40, 59)  # one of them belongs to the hour before
            for partition, minute in product(range(PARTITIONS), minutes):
                value, moment = json.dumps([hour, minute]), begin + minute * 60_000
                producer.produce(self.name, value, partition=partition, timestamp=moment)
        assert producer.flush(LIMIT) == 0
        self._written += hours

    @property
    def complete(self) -> list[str]:
        """The keys of the hours that are over: the last one of which there are records may have more."""
        return [partition_key(self.first + hour * HOUR) for hour in range(self._written - 1)]

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs of the DAG behind the connector."""
        answer = self._stack.airflow.get(f"/dags/{self.dag}/dagRuns", params={"limit": 200})
        answer.raise_for_status()
        found: list[dict[str, Any]] = answer.json()["dag_runs"]
        return found

    def each_hour_ran_once(self) -> bool:
        """Return whether the DAG has run for each hour that is over; raise if it has more than once, or for another one."""
        found = self.runs()
        runs = Counter(run["partition_key"] for run in found)
        before = partition_key(self.first - HOUR)  # was over when the connector was created
        assert set(runs) <= {before, *self.complete}, sorted(set(runs) - set(self.complete))
        assert set(runs.values()) <= {1}, runs
        return {run["partition_key"] for run in found if run["state"] == "success"} >= set(self.complete)
