"""Disturbs a running connector of change data capture at random, and waits until its records move again."""

from __future__ import annotations

import enum
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable

from sluiceway.stack.process import BackgroundProcess
from support.database_server import DatabaseServer
from support.faults.kills import end_of
from support.faults.processes import Role, send
from support.faults.proxy import TcpProxy
from support.faults.rows import Row
from support.faults.worker_group import WorkerGroup

Moves = Callable[[int, BackgroundProcess], object]
"""Waits until a number of further transactions has arrived; fails if the driver ends."""

_TRANSACTIONS = 20  # that must arrive before and after each kill
_LONGEST_CUT = 3.0  # seconds


class Part(enum.Enum):
    """The processes and connections that are killed, restarted or cut."""

    TASK = "kill -9 of the task's process"
    DRIVER = "kill -9 of the driver"
    DATABASE = "restart of the database"
    CUT = "network cut"
    RESET = "connections reset"


def kills() -> int:
    """Return how many kills a test makes, from KILLS."""
    return int(os.environ.get("KILLS", "50"))


def disturb(group: WorkerGroup, server: DatabaseServer, proxy: TcpProxy, more: Moves, row: Row) -> None:
    """Make ``kills()`` kills of random parts; SEED repeats a run. Print a line for each."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(10**6)))
    chance = random.Random(seed)  # noqa: S311 (what to kill and when)
    parts = list(Part)
    chosen = [parts[number % len(parts)] for number in range(kills())]
    chance.shuffle(chosen)
    print(f"SEED={seed} KILLS={kills()}", flush=True)
    for number, part in enumerate(chosen, 1):
        more(_TRANSACTIONS, group.drivers[-1])
        time.sleep(chance.uniform(0, 1.2))
        started = time.monotonic()
        _kill(group, server, proxy, part, chance)
        group.running()
        more(_TRANSACTIONS, group.drivers[-1])
        seconds = time.monotonic() - started
        row.recovered(seconds)
        print(
            f"kill {number}/{len(chosen)}: {part.value}; {_TRANSACTIONS} further transactions after {seconds:.1f} s", flush=True
        )
    counts = Counter(part.value for part in chosen)
    print(f"{len(chosen)} kills: {', '.join(f'{count} x {name}' for name, count in counts.items())}", flush=True)


def _kill(group: WorkerGroup, server: DatabaseServer, proxy: TcpProxy, part: Part, chance: random.Random) -> None:
    driver = group.drivers[-1]
    if part is Part.TASK:
        send(driver, Role.WORKERS, signal.SIGKILL)
    elif part is Part.DRIVER:
        send(driver, Role.DRIVER, signal.SIGKILL)
        end_of(driver)
        group.driver()
    elif part is Part.DATABASE:
        server.restart()
    else:
        (proxy.cut if part is Part.CUT else proxy.drop)()
        time.sleep(chance.uniform(0.1, _LONGEST_CUT))
        proxy.restore()
