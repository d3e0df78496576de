"""Runs many small connectors under a real Airflow while another program keeps all cores busy, and watches their states.

Run: python tests/benchmarks/bench_many_loaded.py [--connectors 50] [--minutes 5]

Passes if all are RUNNING within 90 s of the first POST, if none changes its state from then on, and if Airflow has started the
application's task once and keeps it running.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_many import AirflowApplication, connector

from sluiceway.provider.dag_bundle.dag_ids import application_dag_id
from support.stack import RunningStack

START_LIMIT_SECONDS = 90.0
_PATIENCE_SECONDS = 600.0


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep each core busy with a process of normal priority."""
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in load:
            process.kill()
            process.wait()


def tries(stack: RunningStack) -> list[tuple[str, int]]:
    """Return state and number of tries of the application's task in each run of its DAG."""
    dag = application_dag_id("many")
    runs = stack.airflow.get(f"/dags/{dag}/dagRuns").raise_for_status().json()["dag_runs"]
    instances = [
        task
        for run in runs
        for task in stack.airflow.get(f"/dags/{dag}/dagRuns/{run['dag_run_id']}/taskInstances").json()["task_instances"]
    ]
    return [(str(task["state"]), int(task["try_number"])) for task in instances]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    with ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="bench-loaded-")))
        stack = RunningStack(folder / "stack", postgres=True)
        cleanup.callback(stack.close)
        stack.await_class_archive()
        application = AirflowApplication(stack, cleanup)
        cleanup.enter_context(busy_cores())
        began = time.monotonic()
        for number in range(options.connectors):
            kind, pair = ("source", "sink")[number % 2], number // 2
            (folder / f"in-{pair}.txt").touch()
            application.create(f"{kind}-{pair}", connector(kind, pair, folder))
        while (running := application.running()) < options.connectors:
            if time.monotonic() - began > _PATIENCE_SECONDS:
                raise SystemExit(f"only {running} of {options.connectors} connectors run after {_PATIENCE_SECONDS:g} s")
            time.sleep(0.5)
        started = time.monotonic() - began
        print(f"{running} connectors RUNNING after {started:.1f} s; watching them for {options.minutes:g} min", flush=True)
        flaps = 0
        end = time.monotonic() + 60 * options.minutes
        while time.monotonic() < end:
            for name, states in application.states().items():
                if set(states) != {"RUNNING"}:
                    flaps += 1
                    print(f"  {time.monotonic() - began:6.1f} s: {name} is {' '.join(states)}", flush=True)
            time.sleep(1)
        found = tries(stack)
    print(f"RUNNING after {started:.1f} s (limit {START_LIMIT_SECONDS:g}), other states seen {flaps} times")
    print(f"Airflow's task of the application: {found}")
    return int(started > START_LIMIT_SECONDS or flaps > 0 or found != [("running", 1)])


if __name__ == "__main__":
    sys.exit(main())
