"""Runs many scheduled micro-batch connectors on one small machine, and checks data, leftover processes and the scheduler.

Run: python tests/benchmarks/bench_airflow_many.py [--connectors N] [--minutes N] [--period MINUTES] [--slots N]

A run takes about ten seconds of one core, so a machine can run at most cores * 60 / 10 a minute. The connectors' schedules are
staggered over the period. The pool has one slot per core, because more concurrent Spark starts only slow each other down. Lines
are written to every source's file throughout.

Passes if each topic has every line that existed when its connector's last run started, once and in order; if no driver process
is left after the last task or was seen while no task ran; and if the scheduler's heartbeat was never older than 30 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import httpx
import orjson
from bench_airflow_batch import seconds

from sluiceway.stack import leftovers
from support.eventually import eventually
from support.faults.cluster import Cluster
from support.stack import RunningStack
from support.toggles import table

HEARTBEAT_LIMIT = 30.0  # seconds, after which Airflow reports the scheduler as unhealthy
_EACH_SECONDS = 5.0
_LINGER_SECONDS = 15.0  # seconds a driver may be seen after its task has ended or before its start is known
_BUSY = ("running", "queued", "restarting")


@dataclass
class Watch:
    """Samples of processes and of the scheduler's heartbeat."""

    drivers: list[int] = field(default_factory=list)
    stray: int = 0
    """Times that a driver was seen while no task had run for a while."""
    heartbeats: list[float] = field(default_factory=list)
    """Ages in seconds."""
    loads: list[float] = field(default_factory=list)
    unreachable: int = 0


class Watcher:
    """Takes a sample every five seconds, in a thread."""

    def __init__(self, stack: RunningStack) -> None:
        self.seen = Watch()
        self._stack = stack
        self._client = httpx.Client(base_url=f"{stack.addresses.airflow}/api/v2", timeout=30)
        self._busy = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(_EACH_SECONDS):
            try:
                self._look()
            except (httpx.HTTPError, KeyError, ValueError):
                self.seen.unreachable += 1

    def _look(self) -> None:
        seen = self.seen
        seen.loads.append(os.getloadavg()[0])
        answer = self._client.get("/dags/~/dagRuns/~/taskInstances", params={"state": list(_BUSY), "limit": 1}).json()
        if answer["total_entries"]:
            self._busy = time.monotonic()
        seen.drivers.append(drivers(self._stack))
        if seen.drivers[-1] and time.monotonic() - self._busy > _LINGER_SECONDS:
            seen.stray += 1
        beat = self._client.get("/monitor/health").json()["scheduler"]["latest_scheduler_heartbeat"]
        seen.heartbeats.append(time.time() - seconds(beat))

    def close(self) -> None:
        self._end.set()
        self._thread.join(60)
        self._client.close()


class Files:
    """One file per source; a thread appends a line to one of them every second, in turn."""

    def __init__(self, folder: Path, count: int) -> None:
        self.files = [folder / f"many-{number:02d}.txt" for number in range(count)]
        self.written: list[list[float]] = [[] for _ in self.files]
        """The times at which each line of each file was written, in seconds since the epoch."""
        for file in self.files:
            file.touch()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(2.0):
            for file, times in zip(self.files, self.written, strict=True):
                with file.open("a") as out:
                    out.write(f"{len(times)}\n")
                times.append(time.time())

    def close(self) -> None:
        self._end.set()
        self._thread.join(30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--period", type=int, default=10, help="minutes between two runs of a connector")
    parser.add_argument("--slots", type=int, default=os.cpu_count() or 2, help="tasks that run at a time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluiceway-many-") as folder:
        stack = RunningStack(Path(folder) / "stack", postgres=True)
        try:
            return measure(stack, Path(folder), options)
        finally:
            stack.close()


def measure(stack: RunningStack, folder: Path, options: argparse.Namespace) -> int:
    stack.airflow.patch("/pools/default_pool", params={"update_mask": "slots"}, json={"slots": options.slots}).raise_for_status()
    stack.await_class_archive()
    files = Files(folder, options.connectors)
    names = [file.stem for file in files.files]
    for number, (name, file) in enumerate(zip(names, files.files, strict=True)):
        stack.connect.create(
            name,
            {
                "connector.class": "FileStreamSource",
                "file": str(file),
                "topic": name,
                "airflow.mode": "micro-batch",
                "airflow.schedule": f"{number % options.period}-59/{options.period} * * * *",
            },
        )
    eventually(lambda: all(map(stack.dag, names)), within=300, what=f"{len(names)} DAGs")
    print(f"{len(names)} DAGs, watching for {options.minutes:g} min", file=sys.stderr, flush=True)
    watcher = Watcher(stack)
    try:
        _sit_out(60 * options.minutes, watcher)
        began = time.monotonic()
        for name in names:
            stack.set_paused(name, True)
        eventually(lambda: not _busy(stack), within=900, what="the end of the last task")
        eventually(lambda: not drivers(stack), within=_LINGER_SECONDS, what="the end of the last driver")
        drained = time.monotonic() - began
    finally:
        watcher.close()
        files.close()
    return _report(stack, files, names, watcher.seen, drained)


def _sit_out(seconds: float, watcher: Watcher) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(60.0, left))
        seen = watcher.seen
        line = f"{left / 60:.0f} min left; drivers {seen.drivers[-1:]}, heartbeat {max(seen.heartbeats, default=0):.0f} s at most"
        print(line, file=sys.stderr, flush=True)


def _report(stack: RunningStack, files: Files, names: list[str], seen: Watch, drained: float) -> int:
    cluster = Cluster(stack.addresses.bootstrap)
    tasks = list(_tasks(stack))
    ended: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    for task in tasks:
        if task["state"] == "success":
            ended[task["dag_id"]].append(task)
    missed = repeated = 0
    for name, times in zip(names, files.written, strict=True):
        if not ended[name]:
            continue
        last = max(seconds(task["start_date"]) for task in ended[name])
        lines = [orjson.loads(each.value or b"")["payload"] for each in cluster.messages(name)]
        due = sum(1 for each in times if each < last)
        missed += len({str(number) for number in range(due)} - set(lines))
        repeated += len(lines) - len(set(lines)) + (0 if lines == sorted(lines, key=int) else 1)
    durations = [seconds(task["end_date"]) - seconds(task["start_date"]) for task in tasks if task["state"] == "success"]
    waits = [seconds(task["start_date"]) - seconds(task["run_after"]) for task in tasks if task["start_date"]]
    states = {state: sum(task["state"] == state for task in tasks) for state in sorted({str(task["state"]) for task in tasks})}
    never = sum(not each for each in ended.values())
    rows = [
        ["connectors, of which never ran", f"{len(names)}, {never}"],
        ["runs by their task's state", ", ".join(f"{state} {count}" for state, count in states.items())],
        ["s of a task, median and longest", _spread(durations)],
        ["s from due to task start, median and longest", _spread(waits)],
        ["lines missed, repeated", f"{missed}, {repeated}"],
        ["drivers at a time, median and most", _spread([float(each) for each in seen.drivers])],
        ["looks with a driver but no task", f"{seen.stray} of {len(seen.drivers)}"],
        ["drivers left at the end", str(drivers(stack))],
        ["s until the last task had ended", f"{drained:.0f}"],
        ["s of the scheduler's heartbeat's age, median and most", _spread(seen.heartbeats)],
        ["looks that Airflow did not answer", str(seen.unreachable)],
        ["load, median and most", _spread(seen.loads)],
    ]
    print(table(("50 connectors" if len(names) == 50 else f"{len(names)} connectors", "seen"), rows))
    well = max(seen.heartbeats, default=HEARTBEAT_LIMIT) < HEARTBEAT_LIMIT
    return 0 if well and missed == repeated == seen.stray == never == drivers(stack) == 0 and "failed" not in states else 1


def drivers(stack: RunningStack) -> int:
    """Return the number of the stack's Spark JVMs."""
    return sum(1 for each in leftovers.marked(stack.home) if _is_driver(each))


def _is_driver(process: Any) -> bool:
    try:
        command = process.cmdline()
    except Exception:  # noqa: BLE001 (it has just ended)
        return False
    return bool(command) and command[0].endswith("java") and any(part.endswith("driver_app.py") for part in command)


def _busy(stack: RunningStack) -> int:
    params: dict[str, int | list[str]] = {"state": list(_BUSY), "limit": 1}
    return int(stack.airflow.get("/dags/~/dagRuns/~/taskInstances", params=params).json()["total_entries"])


def _tasks(stack: RunningStack) -> Iterator[Mapping[str, Any]]:
    offset = 0
    while True:
        params: dict[str, int | str] = {"limit": 100, "offset": offset, "order_by": "id"}
        page = stack.airflow.get("/dags/~/dagRuns/~/taskInstances", params=params).json()["task_instances"]
        yield from page
        if len(page) < 100:
            return
        offset += 100


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f}, {max(values):.1f}" if values else "-"


if __name__ == "__main__":
    sys.exit(main())
