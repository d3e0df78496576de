"""A verifiable source and a sink of its topic on a real Airflow, both exactly once: a lost record or a second driver shows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import psutil

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file
from sluiceway.rest.client import RestError
from support.eventually import LIMIT, eventually
from support.faults.airflow_job import Job, await_exit
from support.faults.rows import Row
from support.faults.worker_group import SINK
from support.stack import RunningStack

#: Properties of the worker with which both ends are exactly once, and commit soon. By default, a sink reads aborted records too.
WORKER = {
    "exactly.once.source.support": "enabled",
    "consumer.isolation.level": "read_committed",
    "offset.flush.interval.ms": "1000",
}

#: What the table expects of each fault.
EXACTLY_ONCE = "one driver each, 0 lost, 0 duplicated"

_TAIL_BYTES = 4096
_ROUND = 5  # kills between two judgements


class Pipe:
    """The source, the sink, the topic between them, and the sink's file. ``sink`` makes the sink's job."""

    def __init__(self, stack: RunningStack, name: str, file: Path, sink: Callable[[RunningStack, str], Job] = Job) -> None:
        self.stack = stack
        self.file = file
        self.source, self.sink = self.jobs = (Job(stack, name), sink(stack, f"{name}_sink"))
        own = {"connector.class": SINK, "topics": self.source.topic, "file": str(file), "offsets.from.file": "true"}
        self.sink.config = {"name": self.sink.name, **own}

    def start(self) -> None:
        """Create both connectors, or resume them after ``judge``, and wait until they move records."""
        for job in self.jobs:
            if self.stack.states(job.name):
                self.stack.connect.resume(job.name)
            else:
                job.create()
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

    def survives(
        self,
        row: Row,
        part: str,
        times: int,
        kill: Callable[[Job], None],
        *,
        outlived: bool | None,
        of: Sequence[Job] = (),
        counted: bool = False,
    ) -> None:
        """Kill a part ``times`` times, wait after each until both connectors move records, and judge these.

        Args:
            row: the row of the table.
            part: what is killed.
            kill: kills it, given the connector whose turn it is, and starts what does not start by itself.
            outlived: whether the drivers survive this; otherwise the connector's must be another one afterwards. None: until
                Airflow notices that their task has ended.
            of: the connectors whose turn it is in turn, both by default.
            counted: whether the driver counts the ends of its tasks. One that dies six times within seconds is left FAILED.
        """
        for number in range(times):
            # A driver that dies again and again waits longer before each restart.
            if (counted or not outlived) and number and number % _ROUND == 0:
                self.judge(row)
                self.start()
            job = (of or self.jobs)[number % len(of or self.jobs)]
            index = self.jobs.index(job)
            before = self.steady()
            began = time.monotonic()
            kill(job)
            if outlived is False:
                await_exit(before[index])
            after = self.steady()
            self.more()
            row.recovered(time.monotonic() - began)
            print(f"{part} killed: {time.monotonic() - began:.1f} s until both connectors move records", flush=True)
            if outlived is not None:
                assert (after[index] == before[index]) is outlived
        self.judge(row)

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
