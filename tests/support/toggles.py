"""The ways to pause and resume a connector, and measurements of their latency."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import httpx

from support.eventually import LIMIT, eventually
from support.flow import Flow
from support.stack import RunningStack

PAUSE_LIMIT, RESUME_LIMIT = 3.0, 10.0  # seconds
_QUIET_SECONDS = 1.0  # without a record, after which the connector counts as paused

Press = Callable[[RunningStack, str, bool], float]
"""Pauses (True) or resumes; returns when that was asked for, in monotonic seconds."""


def _patch(stack: RunningStack, name: str, paused: bool) -> float:
    asked = time.monotonic()
    stack.set_paused(name, paused)
    return asked


def _button(stack: RunningStack, name: str, paused: bool) -> float:
    """Send the request of the buttons in Airflow's UI."""
    asked = time.monotonic()
    url = f"{stack.addresses.airflow}/sluiceway/connectors/{name}/{'pause' if paused else 'resume'}"
    httpx.put(url, headers={"Accept": "application/json"}, timeout=30).raise_for_status()
    return asked


def _rest(stack: RunningStack, name: str, paused: bool) -> float:
    asked = time.monotonic()
    (stack.connect.pause if paused else stack.connect.resume)(name)
    return asked


def _airflow(stack: RunningStack, name: str, paused: bool) -> float:
    """Run ``airflow dags pause``. The time counts from the flag's change, because importing Airflow takes seconds."""
    command = [sys.executable, "-m", "airflow", "dags", "pause" if paused else "unpause", "--yes", name]
    environment = {**os.environ, **stack.airflow_environment()}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        eventually(lambda: stack.is_paused(name) is paused, what=" ".join(command[2:]))
        asked = time.monotonic()
        assert process.wait(LIMIT) == 0, command
    return asked


def _sluiceway(stack: RunningStack, name: str, paused: bool) -> float:
    asked = time.monotonic()
    verb = "pause" if paused else "resume"
    command = [sys.executable, "-m", "sluiceway.cli.main", verb, name, "--server", stack.addresses.rest]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return asked


WAYS: Mapping[str, Press] = {
    "PATCH /api/v2/dags": _patch,
    "button of the page": _button,
    "Connect REST": _rest,
    "airflow dags": _airflow,
    "sluiceway": _sluiceway,
}


@dataclass(frozen=True)
class Round:
    """One pause and one resume: how each was requested, and the seconds until records stopped and flowed again."""

    paused_by: str
    stopped: float
    paused: float
    """Until both sides said PAUSED."""
    rest: float
    """Seconds that the pause lasted longer than needed."""
    resumed_by: str
    flowing: float
    load: float

    HEADINGS = ("paused by", "s to last record", "s to PAUSED", "s of rest", "resumed by", "s to first record", "load")

    @property
    def holds(self) -> bool:
        return self.stopped <= PAUSE_LIMIT and self.flowing <= RESUME_LIMIT

    def cells(self) -> list[str]:
        times = [f"{each:.1f}" for each in (self.stopped, self.paused, self.flowing)]
        return [self.paused_by, times[0], times[1], f"{self.rest:.0f}", self.resumed_by, times[2], f"{self.load:.1f}"]


def play(stack: RunningStack, flow: Flow, pause: str, resume: str, rest: float = 0.0) -> Round:
    """Pause in one way and resume in another, once records flow; the pause lasts ``rest`` seconds longer than needed."""
    name = flow.name
    flow.arrivals.first_after(time.monotonic(), LIMIT)
    asked = WAYS[pause](stack, name, True)
    stack.await_states(name, "PAUSED", "PAUSED")
    eventually(lambda: stack.is_paused(name), what=f"DAG {name} paused")
    paused = time.monotonic() - asked
    eventually(lambda: time.monotonic() - flow.arrivals.last > _QUIET_SECONDS, what="the last record")
    stopped = max(flow.arrivals.last - asked, 0.0)
    if rest:
        time.sleep(rest)
    seen = len(flow.arrivals.values)
    load = os.getloadavg()[0]
    asked = WAYS[resume](stack, name, False)
    assert len(flow.arrivals.values) == seen or resume in ("airflow dags", "sluiceway"), "a record while it was paused"
    flowing = flow.arrivals.first_after(asked, LIMIT) - asked
    stack.await_states(name, "RUNNING", "RUNNING")
    eventually(lambda: stack.is_paused(name) is False, what=f"DAG {name} unpaused")
    return Round(pause, stopped, paused, rest, resume, flowing, load)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a header and aligned columns."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
