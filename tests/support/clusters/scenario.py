"""Kills each part of a cluster in turn while a connector runs on it, and measures how the connector recovers."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from support.clusters.connector import BATCH, ClusterConnector
from support.clusters.kills import Kill

#: Limits for an idle machine with free slots, in seconds.
RECOVERY_SECONDS = 30.0
FALSE_RUNNING_SECONDS = 25.0

_GIVE_UP_SECONDS = 120.0
_SETTLE_SECONDS = 4.0  # longer than the poller takes to notice a task without records
_BURN = "while True: pass"


@dataclass(slots=True)
class Result:
    """One kill: seconds until all tasks ran again and of the longest false RUNNING, missing and repeated records.

    ``doubled`` is the maximum of a task; ``problem`` has what the test must report.
    """

    deployment: str
    exactly_once: bool
    kill: str
    recovered: float
    false_running: float
    missing: int
    doubled: int
    exits: list[int] = field(default_factory=list)
    problem: str = ""

    def judge(self) -> str:
        """Return which limits were exceeded, empty if none was."""
        allowed = 0 if self.exactly_once else BATCH
        exceeded = [
            f"recovered after {self.recovered:.1f} s" * (self.recovered > RECOVERY_SECONDS),
            f"RUNNING for {self.false_running:.1f} s without a loop" * (self.false_running > FALSE_RUNNING_SECONDS),
            f"{self.missing} missing" * (self.missing > 0),
            f"{self.doubled} doubled, allowed {allowed}" * (self.doubled > allowed),
            self.problem,
        ]
        return "; ".join(filter(None, exceeded))


def strike(on: ClusterConnector, kill: Kill, chance: random.Random) -> Result:
    """Cause one fault, wait until the connector has recovered, and restore the cluster."""
    on.await_executors()
    on.await_stable(0.0)
    time.sleep(chance.uniform(0, 2))  # at any point between two commits
    doubled, exits = on.doubled(), len(on.exits())
    on.poller.reset()
    struck = time.time()
    healed = kill.strike(on, chance)
    problem = ""
    try:
        recovered = _recovery(on, struck, healed) - struck
    except AssertionError as error:
        recovered, problem = float("inf"), f"{error}\n{on.poller.story(struck)}\n{on.log_tail()}"
    kill.restore(on)
    return Result(
        on.deployment.name,
        on.exactly_once,
        kill.name,
        recovered,
        on.poller.false_running,
        on.missing(),
        max(after - before for before, after in zip(doubled, on.doubled(), strict=True)),
        on.exits()[exits:],
        problem,
    )


def _recovery(on: ClusterConnector, struck: float, healed: object) -> float:
    """Return the time since which the tasks run, after they have run for some seconds and the killed part has a successor."""
    assert callable(healed)
    successor: float | None = None
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        if successor is None and healed():
            successor = time.time()
        since = on.poller.stable_since
        if successor is not None and since is not None and time.time() - max(since, struck, successor) >= _SETTLE_SECONDS:
            return max(since, struck)
        time.sleep(0.1)
    raise AssertionError(f"not RUNNING again within {_GIVE_UP_SECONDS:g} s")


def run(on: ClusterConnector, kills: Sequence[Kill], results: list[Result]) -> None:
    """Run the rounds of a scenario: each round has all kills, in random order. Stops after a kill without recovery.

    KILLS in the environment selects kinds by parts of their names, separated by commas.
    """
    wanted = os.environ.get("KILLS", "").split(",")
    kills = [kill for kill in kills if any(part in kill.name for part in wanted)]
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(10**6)))
    rounds = int(os.environ.get("ROUNDS", "1"))
    print(f"ROUNDS={rounds} SEED={seed}")
    chance = random.Random(seed)  # noqa: S311 (where to kill)
    with load():
        for _ in range(rounds):
            for kill in chance.sample(kills, len(kills)):
                result = strike(on, kill, chance)
                results.append(result)
                print(line(result), flush=True)
                if result.problem:
                    print(result.problem, flush=True)
                    return


@contextlib.contextmanager
def load() -> Iterator[None]:
    """Keep all cores busy with LOAD=1 in the environment."""
    count = (os.cpu_count() or 1) if os.environ.get("LOAD") == "1" else 0
    burners = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for each in burners:
            each.kill()
            each.wait()


_HEAD = ("deployment", "guarantee", "killed", "times", "recovered", "false", "missing", "doubled")


def line(result: Result) -> str:
    """Return one result as text."""
    return f"{_row([result])}  exit codes {result.exits}" if result.exits else _row([result])


def table(results: Sequence[Result]) -> list[str]:
    """Return the lines of a table with a row for each kind of kill: mean and maximum seconds, and maxima of the others."""
    kinds = dict.fromkeys((each.deployment, each.exactly_once, each.kill) for each in results)
    rows = [[each for each in results if (each.deployment, each.exactly_once, each.kill) == kind] for kind in kinds]
    return [_line(*_HEAD), *map(_row, rows)]


def _row(results: Sequence[Result]) -> str:
    first = results[0]
    seconds = [each.recovered for each in results]
    recovered = f"{sum(seconds) / len(seconds):.1f} (max {max(seconds):.1f})"
    false, missing = max(each.false_running for each in results), max(each.missing for each in results)
    doubled = max(each.doubled for each in results)
    guarantee = "exactly once" if first.exactly_once else "at least once"
    return _line(first.deployment, guarantee, first.kill, len(results), recovered, f"{false:.1f}", missing, doubled)


def _line(deployment: str, guarantee: str, kill: str, *numbers: object) -> str:
    times, recovered, false, missing, doubled = numbers
    return f"{deployment:18} {guarantee:13} {kill:31} {times:>5} {recovered:>16} {false:>6} {missing:>7} {doubled:>7}"
