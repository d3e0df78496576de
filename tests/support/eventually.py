"""Waits for conditions instead of fixed times."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

from support import explain

T = TypeVar("T")

#: Most seconds of any wait of ``eventually``. Mutants lower it, because tests of a broken product wait in vain.
most = math.inf

#: Seconds after which a wait fails. They only tell that something hangs, so they suit a machine whose cores are all busy. How
#: long things take is for `make bench`.
LIMIT = 240.0

#: Seconds for a wait of the product's that something must end: a test that waits for it in vain runs into pytest's time limit.
NEVER = 3600.0


def eventually(condition: Callable[[], T | None], *, within: float = LIMIT, what: str = "the condition") -> T:
    """Return the first true result of ``condition``; fail after ``within`` seconds with the last one."""
    within = min(within, most)
    deadline = time.monotonic() + within
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            explain.note()
            raise AssertionError(f"{what} did not come about within {within:g} s; last seen: {result!r}")
        time.sleep(0.05)
