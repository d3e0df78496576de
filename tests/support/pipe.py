"""A verifiable source and a sink of its topic on a real Airflow, both exactly once: a lost record or a second driver shows."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import orjson
import psutil

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file
from sluiceway.rest.client import RestError
from support.eventually import LIMIT, eventually
from support.faults.airflow_job import Job
from support.faults.rows import Row
from support.faults.worker_group import SINK
from support.stack import RunningStack

#: Properties of the worker with which both ends are exactly once, and commit soon. By default, a sink reads aborted records too.
WORKER = {
    "exactly.once.source.support": "enabled",
    "consumer.isolation.level": "read_committed",
    "offset.flush.interval.ms": "1000",
}

_TAIL_BYTES = 4096


class Pipe:
    """The source, the sink, the topic between them, and the sink's file."""

    def __init__(self, stack: RunningStack, name: str, file: Path) -> None:
        self.stack = stack
        self.file = file
        self.source, self.sink = self.jobs = (Job(stack, name), Job(stack, f"{name}_sink"))
        own = {"connector.class": SINK, "topics": self.source.topic, "file": str(file), "offsets.from.file": "true"}
        self.sink.config = {"name": self.sink.name, **own}

    def start(self) -> None:
        """Create both connectors, or resume them after ``judge``, and wait until they move records."""
        for job in self.jobs:
            if self.stack.states(job.name):
                self.stack.connect.resume(job.name)
            else:
                self.stack.connect.create(job.name, job.config)
        self.more()

    def steady(self) -> list[psutil.Process]:
        """Wait until each connector has exactly one driver, which has reported it as RUNNING; return the drivers."""
        return eventually(self._drivers, within=2 * LIMIT, what=f"a driver for each of {[job.name for job in self.jobs]}")

    def _drivers(self) -> list[psutil.Process] | None:
        found = [driver for job in self.jobs if (driver := job.steady()) is not None]
        return found if len(found) == len(self.jobs) else None

    def more(self, seconds: float = 2) -> float:
        """Wait until records made from now on have passed both connectors; return the seconds that this took."""
        began = time.monotonic()
        self.source.more(seconds, within=2 * LIMIT)
        wanted = self.source.progress.highest
        eventually(lambda: self._written() >= wanted, within=2 * LIMIT, what=f"number {wanted} in the sink's file")
        return time.monotonic() - began

    def judge(self, row: Row) -> None:
        """Pause both connectors, and check topic and file: nothing may be lost or there twice."""
        self.source.judge(row, faults=0)
        last = self.source.verdict().tasks[0].last or 0
        eventually(lambda: self._written() >= last, within=2 * LIMIT, what="the last record in the sink's file")
        self.stack.connect.pause(self.sink.name)
        eventually(lambda: set(self.stack.states(self.sink.name)) == {"PAUSED"}, what="the sink PAUSED")
        verdict = check(from_file(self.file), sent={0: last})
        row.lost, row.duplicated = (row.lost or 0) + verdict.lost, (row.duplicated or 0) + verdict.duplicated
        row.seen += f", {verdict.total} in the sink's file"
        assert verdict.exactly_once, verdict

    def close(self) -> None:
        for job in self.jobs:
            with contextlib.suppress(RestError):
                self.stack.connect.delete(job.name)
        for job in self.jobs:
            job.close()

    def _written(self) -> int:
        """Return the number of the last complete line of the sink's file."""
        if not self.file.exists():
            return -1
        with self.file.open("rb") as file:
            file.seek(max(0, self.file.stat().st_size - _TAIL_BYTES))
            lines = file.read().rpartition(b"\n")[0].splitlines()
        return int(orjson.loads(lines[-1])["seqno"]) if lines else -1
