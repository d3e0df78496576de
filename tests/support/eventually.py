"""Waits for conditions instead of fixed times."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

from support import explain

T = TypeVar("T")

#: Seconds between two looks: few at first, more after some seconds. Most looks are requests, which take more processor time from
#: what is waited for than the rest of a test.
SOONEST, _LATEST = 0.05, 0.5

#: Most seconds of any wait of ``eventually``. Mutants lower it, because tests of a broken product wait in vain.
most = math.inf

#: Seconds after which a wait fails. They only tell that something hangs, so they suit a machine whose cores are all busy. How
#: long things take is for `make bench`.
LIMIT = 240.0

#: Seconds for a wait of the product's that something must end: a test that waits for it in vain runs into pytest's time limit.
NEVER = 3600.0


def eventually(
    condition: Callable[[], T | None], *, within: float = LIMIT, what: str = "the condition", latest: float = _LATEST
) -> T:
    """Return the first true result of ``condition``; fail after ``within`` seconds with the last one.

    ``latest``: the most seconds between two looks, ``SOONEST`` where the wait is measured.
    """
    within = min(within, most)
    began = time.monotonic()
    while True:
        result = condition()
        if result:
            return result
        waited = time.monotonic() - began
        if waited > within:
            explain.note()
            raise AssertionError(f"{what} did not come about within {within:g} s; last seen: {result!r}")
        time.sleep(min(max(SOONEST, waited / 20), latest))
