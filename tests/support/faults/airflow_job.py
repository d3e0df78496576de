"""A verifiable source on a real Airflow, and faults of Airflow's processes."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

from sluiceway.connectors.verifiable.checker import Verdict, check
from sluiceway.connectors.verifiable.numbering import TopicRecord, from_topic
from sluiceway.stack.airflow import airflow_process
from support.eventually import LIMIT, eventually
from support.faults.cluster import Cluster
from support.faults.rows import Row
from support.faults.worker_group import SOURCE, Progress
from support.stack import START, RunningStack

RATE = 100  # records per second; Airflow uses both cores
FLUSH_SECONDS = 10.0  # the stack's offset.flush.interval.ms
BATCH = int(RATE * (FLUSH_SECONDS + 5))
AT_LEAST_ONCE = "0 lost, at most one batch repeated"


class Job:
    """A verifiable source, its DAG and its topic."""

    def __init__(self, stack: RunningStack, name: str) -> None:
        self.stack = stack
        self.name = name
        self.topic = f"{name}-numbers"
        self.cluster = Cluster(stack.addresses.bootstrap)
        self.cluster.create(self.topic)
        self.config = {"name": name, "connector.class": SOURCE, "topic": self.topic, "throughput": str(RATE), "batch.size": "10"}
        self.progress = Progress(stack.addresses.bootstrap, self.topic)

    def create(self) -> None:
        """Create the connector, with which its DAG starts."""
        self.stack.connect.create(self.name, self.config)

    def start(self) -> None:
        self.create()
        self.running()

    def running(self, within: float = 2 * START) -> None:
        self.stack.await_states(self.name, "RUNNING", "RUNNING", within=within)

    def more(self, seconds: float = 2, within: float = 2 * START) -> None:
        self.progress.more(int(seconds * RATE), within=within)

    def drivers(self) -> list[psutil.Process]:
        return self.stack.drivers(self.name)

    def driver(self) -> psutil.Process:
        [found] = self.drivers()
        return found

    def steady(self) -> psutil.Process | None:
        """Return the only driver, once it has reported the connector and its task as RUNNING."""
        drivers = self.drivers()
        if len(drivers) != 1 or self.stack.states(self.name) != ("RUNNING", "RUNNING"):
            return None
        return drivers[0] if self.stack.worker_id(self.name).endswith(f":{own_pid(drivers[0])}") else None

    def press(self, button: str) -> None:
        """Send the request of a button in Airflow's UI for the task of the newest run: "clear", "mark success", "mark failed"."""
        client, run = self.stack.airflow, self.stack.newest_run(self.name)["dag_run_id"]
        if button == "clear":
            body = {"dry_run": False, "dag_run_id": run, "task_ids": ["run"], "only_failed": False}
            client.post(f"/dags/{self.name}/clearTaskInstances", json=body).raise_for_status()
            return
        state = {"mark success": "success", "mark failed": "failed"}[button]
        client.patch(f"/dags/{self.name}/dagRuns/{run}/taskInstances/run", json={"new_state": state}).raise_for_status()

    def verdict(self) -> Verdict:
        """Check the topic's records."""
        records = self.cluster.messages(self.topic)
        return check(from_topic(TopicRecord(self.topic, each.partition, each.key, each.value) for each in records))

    def judge(self, row: Row, faults: int = 1) -> None:
        """Pause, so that the stored offset is the last record's, and check the topic; each of ``faults`` may repeat a batch."""
        self.stack.connect.pause(self.name)
        self.stack.await_states(self.name, "PAUSED", "PAUSED")
        eventually(lambda: not self.drivers(), what="the end of the driver")
        verdict = self.verdict()
        row.judge(verdict)
        assert verdict.total > 0, verdict
        assert verdict.lost == verdict.reordered == 0, verdict
        assert verdict.duplicated <= faults * BATCH, verdict

    def close(self) -> None:
        self.progress.close()
        with contextlib.suppress(Exception):
            self.stack.connect.delete(self.name)
        eventually(lambda: not self.drivers(), what="the end of the driver")


def own_pid(process: psutil.Process) -> int:
    """Return the number that a process itself, which may run in a container, knows as its pid."""
    status = Path(f"/proc/{process.pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), process.pid)


def kill(stack: RunningStack, component: str) -> None:
    """Kill one of Airflow's components with SIGKILL, but not its child processes."""
    pid = airflow_process(component, stack.home).status().pid
    assert pid is not None
    process = psutil.Process(pid)
    process.kill()
    process.wait(LIMIT)


def await_exit(process: psutil.Process, within: float = LIMIT) -> float:
    """Wait until a process ends, and return the seconds that this took."""
    started = time.monotonic()
    eventually(
        lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, within=within, what=f"the end of {process}"
    )
    return time.monotonic() - started
