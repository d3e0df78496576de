"""Measures the start of a connector in an application of its own: from its creation by REST to its first record.

Run: python tests/benchmarks/bench_airflow_start.py [--runs N] [--quiet LOAD]

Creates a file source N times on a real stack with PostgreSQL and LocalExecutor. Prints the median of each step. Limit: 5 s.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench_airflow_batch import FirstSeen
from bench_airflow_pause import await_quiet

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import NotFoundError
from sluiceway.worker.start_times import Times, read_times, steps
from support.eventually import eventually
from support.faults.cluster import Cluster
from support.stack import START, RunningStack
from support.toggles import table

LIMIT = 5.0  # seconds
POST = "POST"
SEEN = "first record in the topic"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quiet", type=float, default=0.0, help="wait up to 10 min for a load average below this before a run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluiceway-start-") as folder:
        stack = RunningStack(Path(folder) / "stack", postgres=True)
        try:
            stack.await_class_archive()
            runs = []
            for run in range(1, options.runs + 1):
                await_quiet(options.quiet)
                runs.append(_one(stack, Path(folder), f"start-{run}"))
                print(f"run {run}: {runs[-1][SEEN] - runs[-1][POST]:.2f} s", file=sys.stderr, flush=True)
        finally:
            stack.close()
    print(table(("step", "s", "s since POST"), _medians(runs)))
    middle = statistics.median(run[SEEN] - run[POST] for run in runs)
    print(f"\nPOST to first record, {len(runs)} runs: median {middle:.2f} s, limit {LIMIT:g} s")
    return 0 if middle <= LIMIT else 1


def _one(stack: RunningStack, folder: Path, name: str) -> Times:
    """Create a connector, wait for its first record and the report of its driver, and delete it."""
    source = folder / f"{name}.txt"
    source.write_text("a\n")
    cluster = Cluster(stack.addresses.bootstrap)
    cluster.create(name)
    seen = FirstSeen(lambda: cluster.end(name) > 0)
    worker = WorkerConfig.of(read_properties(Path(stack.addresses.worker_file)))
    posted = _create(stack, name, source)
    try:
        eventually(lambda: seen.at, within=START, what="the first record")
        times = eventually(lambda: _times(worker, name), within=START, what="the times of the start")
    finally:
        seen.close()
        stack.connect.delete(name)
    eventually(lambda: stack.driver(name) is None, within=START, what="the end of the driver")
    assert seen.at is not None
    return {**times, POST: posted, SEEN: seen.at}


def _create(stack: RunningStack, name: str, source: Path) -> float:
    """Create the connector; return when the request was sent, in seconds since the epoch."""
    at = time.time()
    stack.connect.create(name, {"connector.class": "FileStreamSource", "file": str(source), "topic": name})
    return at


def _times(worker: WorkerConfig, name: str) -> Times | None:
    try:
        return read_times(worker, name)
    except NotFoundError:
        return None


def _medians(runs: list[Times]) -> list[list[str]]:
    """Return the median seconds of each step that all runs have, and since POST, in the order of the first run."""
    names = [step for step, _, _ in steps(runs[0]) if all(step in run for run in runs)]
    rows = []
    for step in names:
        found = [(own, total) for run in runs for name, own, total in steps(run) if name == step]
        rows.append([step, *(f"{statistics.median(column):.2f}" for column in zip(*found, strict=True))])
    return rows


if __name__ == "__main__":
    sys.exit(main())
