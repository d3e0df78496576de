"""Measures what one driver with many idle tasks costs, on a Spark standalone cluster with two workers on this machine.

The connector is MockSource without a topic: each task polls every 100 ms and sends nothing. The driver runs in client mode and is
the only one. Measured for each number of tasks, on a broker of their own:

* seconds from spark-submit until the first and until every task is RUNNING, as the REST API shows it, and CPU time until then;
* at rest: CPU time of each kind of process, records per second on the status topic, the longest silence of a task there, and how
  often the REST API showed a task in another state than RUNNING;
* memory and threads of each kind of process. PSS divides shared pages among their processes;
* seconds of a restart of all tasks, from the request until the last one is RUNNING again;
* seconds of a pause: until every task is PAUSED, and until the driver has ended.

Run: python tests/benchmarks/bench_many_tasks.py [--tasks 50 200] [--seconds 60] [--leave-gb 5] [--preload]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.storage.model import State
from support.process_costs import ROLES, CostMeter, RoleCost, cpu_seconds_by_role
from support.spark_lab import Group, Lab, NotEnoughMemoryError, StatusFeed, open_lab
from support.toggles import table

IDLE = {
    "connector.class": "org.apache.kafka.connect.tools.MockSourceConnector",
    "mock_mode": "",
}
CONNECTOR = "idle"
PRELOAD = {"spark.python.daemon.module": "sluiceway.spark.local_daemon"}
SETTLE_SECONDS = 15.0
PATIENCE_SECONDS = 600.0
COUNTS = ("processes", "threads", "PSS MB", "RSS MB")
HEADINGS = ("tasks", "process", "CPU s to start", "CPU s per minute", "ms CPU per task and s", *COUNTS)


@dataclass
class Result:
    """One number of tasks."""

    tasks: int
    first_running: float
    all_running: float
    start_seconds: dict[str, float]
    costs: dict[str, RoleCost]
    status_records: float
    silence: float | None
    not_running: str
    restart: float
    paused: float
    ended: float
    load: float


def measure(lab: Lab, tasks: int, seconds: float, conf: dict[str, str]) -> Result:
    with lab.group(**{"sluiceway.slots.timeout.ms": "300000"}) as group:
        driver = group.run(CONNECTOR, {**IDLE, "tasks.max": str(tasks)}, conf)
        first = lab.wait(lambda: State.RUNNING in group.states(CONNECTOR), PATIENCE_SECONDS, "the first task RUNNING")
        rest = lab.wait(lambda: group.all_in(CONNECTOR, State.RUNNING, tasks), PATIENCE_SECONDS, f"{tasks} tasks RUNNING")
        print(f"{tasks} tasks: first RUNNING after {first:.1f} s, all after {first + rest:.1f} s", flush=True)
        start = cpu_seconds_by_role(lab.pids())
        feed = StatusFeed(group)
        time.sleep(SETTLE_SECONDS)
        feed.forget()
        costs, not_running = at_rest(lab, group, tasks, seconds)
        feed.read()
        records, silence = feed.records / seconds, feed.longest_silence()
        feed.forget()
        group.herder.restart(CONNECTOR, include_tasks=True)
        restart = lab.wait(lambda: feed.cycled(tasks), PATIENCE_SECONDS, "all tasks RUNNING again")
        feed.close()
        group.herder.pause(CONNECTOR)
        began = time.monotonic()
        paused = lab.wait(lambda: group.all_in(CONNECTOR, State.PAUSED, tasks), PATIENCE_SECONDS, "all tasks PAUSED")
        lab.wait(lambda: not driver.is_running(), PATIENCE_SECONDS, "the driver's end")
        ended = time.monotonic() - began
        load = os.getloadavg()[0]
        return Result(tasks, first, first + rest, start, costs, records, silence, not_running, restart, paused, ended, load)


def at_rest(lab: Lab, group: Group, tasks: int, seconds: float) -> tuple[dict[str, RoleCost], str]:
    """Return the costs over some seconds, and in how many looks a second apart how many tasks were not RUNNING at most."""
    meter = CostMeter(lab.pids)
    until = time.monotonic() + seconds
    others = []
    while time.monotonic() < until:
        others.append(sum(state is not State.RUNNING for state in group.states(CONNECTOR)))
        time.sleep(1)
    costs = meter.stop()
    return costs, f"{sum(map(bool, others))} of {len(others)}, at most {max(others)} of {tasks} tasks"


def show(results: list[Result]) -> None:
    print(f"\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} processors, load at the end {results[-1].load:.1f}")
    rows = [
        ["s to the first task RUNNING", *(f"{each.first_running:.1f}" for each in results)],
        ["s to all tasks RUNNING", *(f"{each.all_running:.1f}" for each in results)],
        ["status topic, records/s", *(f"{each.status_records:.1f}" for each in results)],
        ["longest silence of a task, s", *("no record" if each.silence is None else f"{each.silence:.1f}" for each in results)],
        ["REST: not all RUNNING", *(each.not_running for each in results)],
        ["s to restart all tasks", *(f"{each.restart:.1f}" for each in results)],
        ["s of a pause, all PAUSED", *(f"{each.paused:.1f}" for each in results)],
        ["s of a pause, driver ended", *(f"{each.ended:.1f}" for each in results)],
    ]
    print(table(["", *(f"{each.tasks} tasks" for each in results)], rows))
    print("\nBy kind of process: CPU time until all tasks are RUNNING (since the process started), and at rest:")
    print(
        table(
            HEADINGS,
            [row(each, role) for each in results for role in ROLES],
        )
    )


def row(result: Result, role: str) -> list[str]:
    cost = result.costs[role]
    return [
        str(result.tasks),
        role,
        f"{result.start_seconds[role]:.1f}",
        f"{cost.cores * 60:.1f}",
        f"{cost.cores * 1000 / result.tasks:.2f}",
        str(cost.processes),
        str(cost.threads),
        f"{cost.pss:,.0f}",
        f"{cost.rss:,.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the tasks are watched at rest")
    parser.add_argument("--leave-gb", type=float, default=5.0, help="give up when less memory would be left for others")
    parser.add_argument(
        "--preload", action="store_true", help="let Spark fork the tasks from a process that has imported the package"
    )
    options = parser.parse_args()
    results = []
    for tasks in options.tasks:
        print(f"{tasks} tasks: {psutil.virtual_memory().available / (1 << 30):.0f} GB are available", flush=True)
        with tempfile.TemporaryDirectory(prefix="sluiceway-bench-") as temporary:
            try:
                with open_lab(Path(temporary), slots=tasks + 2, reserve_gb=options.leave_gb) as lab:
                    results.append(measure(lab, tasks, options.seconds, PRELOAD if options.preload else {}))
            except NotEnoughMemoryError as error:
                print(f"{tasks} tasks: {error}", file=sys.stderr)
                break
    if results:
        show(results)


if __name__ == "__main__":
    main()
