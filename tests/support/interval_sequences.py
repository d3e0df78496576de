"""Random sequences of runs, clears, backfills side by side, and kills of a connector's intervals, on a real Airflow."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import psutil

from sluiceway.config.intervals import Interval
from support.eventually import eventually
from support.stack import RunningStack

#: Settings of Airflow with which a failed task is tried again at once, and a dead one is soon noticed.
SETTINGS = {
    "CORE__DEFAULT_TASK_RETRY_DELAY": "1",
    "CORE__PARALLELISM": "8",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}
_RUN_SECONDS = 600.0
_LONGEST = 12.0  # from a run's start to its kill: a run takes about as long


class AirflowMachine:
    """Moves intervals of a connector by runs of its DAG.

    Args:
        stack: the running stack.
        name: the connector's name, which is in no other one's.
        config: its config.
        intervals: its intervals.
        chance: makes the choices.
    """

    def __init__(
        self,
        stack: RunningStack,
        name: str,
        config: Mapping[str, str],
        intervals: Sequence[Interval],
        chance: random.Random,
        *,
        side_by_side: bool = True,
    ) -> None:
        self._stack = stack
        self.name = name
        self._intervals = intervals
        self._chance = chance
        self._at_once = (1, 1, 2, 3) if side_by_side else (1,)
        self._runs: dict[Interval, str] = {}
        self.kills = self.clears = 0
        more = {"airflow.mode": "micro-batch", "airflow.interval": "exact", "airflow.retries": "4"}
        if side_by_side:
            more["airflow.max.active.runs"] = "4"
        stack.connect.create(name, {**config, **more})
        eventually(lambda: stack.dag(name), within=_RUN_SECONDS, what=f"DAG {name}")

    def run(self, steps: int) -> None:
        """Take random steps, then move what was not moved yet."""
        for _ in range(steps):
            self.move(self._chance.sample(self._intervals, self._chance.choice(self._at_once)), may_kill=True)
        self.move([each for each in self._intervals if each not in self._runs])

    def move(self, intervals: Sequence[Interval], *, may_kill: bool = False) -> None:
        """Run these intervals side by side, or clear their runs, and wait until all have succeeded."""
        for interval in intervals:
            self._start(interval)
        killer = threading.Thread(target=self._kill, args=(self._chance.uniform(0, _LONGEST),), daemon=True)
        if may_kill and self._chance.random() < 0.6:
            killer.start()
        for interval in intervals:
            eventually(lambda each=interval: self._is_done(each), within=_RUN_SECONDS, what=f"{self.name} {interval}")
        if killer.ident is not None:
            killer.join()

    def _start(self, interval: Interval) -> None:
        airflow = self._stack.airflow
        if (run := self._runs.get(interval)) is not None:
            body = {"dry_run": False, "dag_run_id": run, "task_ids": ["run"], "only_failed": False}
            airflow.post(f"/dags/{self.name}/clearTaskInstances", json=body).raise_for_status()
            self.clears += 1
            return
        times = {"data_interval_start": _text(interval.start), "data_interval_end": _text(interval.end)}
        answer = airflow.post(f"/dags/{self.name}/dagRuns", json={**times, "logical_date": _text(interval.end)})
        answer.raise_for_status()
        self._runs[interval] = answer.json()["dag_run_id"]

    def _is_done(self, interval: Interval) -> bool:
        state = self._stack.airflow.get(f"/dags/{self.name}/dagRuns/{self._runs[interval]}").json()["state"]
        if state == "failed":  # its retries were used up
            self._start(interval)
        return bool(state == "success")

    def _kill(self, after: float) -> None:
        """Kill a driver, its JVM, or the Airflow task that runs it, some seconds from now."""
        time.sleep(after)  # where to kill
        victims = [each for each in self._stack.processes() if self.name in _command(each)]
        if victims:
            self._chance.choice(victims).kill()
            self.kills += 1


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _text(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, timezone.utc).isoformat()
