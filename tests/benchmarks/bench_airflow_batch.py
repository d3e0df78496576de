"""Measures the start-up time of a scheduled micro-batch: from the start of the Airflow task to the first record.

Run: python tests/benchmarks/bench_airflow_batch.py [--runs N] [--quiet LOAD] [--warm]

Runs a file source and a file sink repeatedly on a real stack with PostgreSQL and LocalExecutor. Limit: 10 s. With --warm in a
shared application that runs already, one run in 10 s; limits: median 1 s, 95th percentile 2 s.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench_airflow_pause import await_quiet

from support.eventually import eventually
from support.faults.cluster import Cluster
from support.stack import START, RunningStack
from support.toggles import table

LIMIT = 10.0  # seconds
WARM_LIMITS = 1.0, 2.0  # seconds, of the median and of the 95th percentile
PERIOD = 10.0  # seconds between the starts of two warm runs
LINES = 100  # of each run
HEADINGS = ("run", "connector", "s queued to start", "s to first record", "s of the task", "records", "load")


class FirstSeen:
    """Records when a condition first holds, in seconds since the epoch, from a thread."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self.at: float | None = None
        self._condition = condition
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="first-seen", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.02):
            if self._condition():
                self.at = time.time()
                return

    def close(self) -> None:
        self._end.set()
        self._thread.join(10)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quiet", type=float, default=0.0, help="wait up to 10 min for a load average below this before a run")
    parser.add_argument("--warm", action="store_true", help="run in a shared application")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluiceway-batch-") as folder:
        stack = RunningStack(Path(folder) / "stack", postgres=True)
        try:
            rows = measure(stack, Path(folder), options.runs, options.quiet, warm=options.warm)
        finally:
            stack.close()
    print(table(HEADINGS, [row[:-1] for row in rows]))
    whole = all(row[-1] == "whole" for row in rows)
    return 0 if judge([float(row[3]) for row in rows], warm=options.warm) and whole else 1


def judge(seconds: Sequence[float], *, warm: bool) -> bool:
    """Print the times from task start to first record beside their limits; return whether they are within."""
    if not warm:
        print(f"\ntask start to first record: longest {max(seconds):.1f} s, limit {LIMIT:g} s")
        return max(seconds) <= LIMIT
    half, most = (sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * share))] for share in (0.5, 0.95))
    print(
        f"\ntask start to first record, {len(seconds)} warm runs: p50 {half:.2f} s (limit {WARM_LIMITS[0]:g} s), "
        f"p95 {most:.2f} s (limit {WARM_LIMITS[1]:g} s)"
    )
    return half <= WARM_LIMITS[0] and most <= WARM_LIMITS[1]


def measure(stack: RunningStack, folder: Path, runs: int, quiet: float, *, warm: bool = False) -> list[list[str]]:
    source, copy = folder / "batch.txt", folder / "batch.copy"
    source.touch()
    cluster = Cluster(stack.addresses.bootstrap)
    cluster.create("batch")
    batch = {"airflow.mode": "micro-batch", **({"sluiceway.application": "warm"} if warm else {})}
    stack.connect.create("batch-in", {**batch, "connector.class": "FileStreamSource", "file": str(source), "topic": "batch"})
    stack.connect.create("batch-out", {**batch, "connector.class": "FileStreamSink", "file": str(copy), "topics": "batch"})
    for name in ("batch-in", "batch-out"):
        eventually(lambda name=name: stack.dag(name), within=START, what=f"DAG {name}")
    stack.await_class_archive()
    if warm:
        eventually(lambda: stack.driver("warm"), within=START, what="the shared application")
        time.sleep(PERIOD)
    rows = []
    for run in range(1, runs + 1):
        with source.open("a") as file:
            file.writelines(f"{run} {number}\n" for number in range(LINES))
        end, size = cluster.end("batch"), copy.stat().st_size if copy.exists() else 0
        watched: dict[str, Callable[[], bool]] = {
            "batch-in": lambda end=end: cluster.end("batch") > end,
            "batch-out": lambda size=size: copy.exists() and copy.stat().st_size > size,
        }
        for name, condition in watched.items():
            await_quiet(quiet)
            due = time.monotonic() + (PERIOD if warm else 0.0)
            rows.append(_one(stack, name, run, condition))
            moved = cluster.end("batch") if name == "batch-in" else len(copy.read_text().splitlines())
            rows[-1].append("whole" if moved == run * LINES else "not whole")
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
            time.sleep(max(0.0, due - time.monotonic()))
    return rows


def _one(stack: RunningStack, name: str, run: int, condition: Callable[[], bool]) -> list[str]:
    """Trigger a run, wait until it ends, and return its table row."""
    load = os.getloadavg()[0]
    seen = FirstSeen(condition)
    try:
        stack.airflow.post(f"/dags/{name}/dagRuns", json={"logical_date": None}).raise_for_status()
        eventually(lambda: _tasks(stack, name, "success") == run, within=3 * START, what=f"run {run} of {name}")
    finally:
        seen.close()
    task = _newest(stack, name)
    started, ended, queued = (seconds(task[key]) for key in ("start_date", "end_date", "queued_when"))
    first = "-" if seen.at is None else f"{seen.at - started:.2f}"
    return [str(run), name, f"{started - queued:.1f}", first, f"{ended - started:.1f}", str(LINES), f"{load:.1f}"]


def _tasks(stack: RunningStack, name: str, state: str) -> int:
    return sum(each == state for each in stack.task_states(name))


def _newest(stack: RunningStack, name: str) -> Mapping[str, Any]:
    answer = stack.airflow.get(f"/dags/{name}/dagRuns/~/taskInstances", params={"order_by": "-run_after", "limit": 1})
    return dict(answer.json()["task_instances"][0])


def seconds(moment: str) -> float:
    """Convert a timestamp of Airflow's REST API to seconds since the epoch."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    sys.exit(main())
