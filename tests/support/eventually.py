"""Waits for conditions instead of fixed times."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Factor for every time limit: `make test` runs tests in parallel on shared machines.
PATIENCE = float(os.environ.get("SLUICEWAY_TEST_PATIENCE", "1"))


def eventually(condition: Callable[[], T | None], *, within: float = 30.0, what: str = "the condition") -> T:
    """Return the first true result of ``condition``; fail after ``within`` seconds, times PATIENCE, with the last one."""
    within *= PATIENCE
    deadline = time.monotonic() + within
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about within {within:g} s; last seen: {result!r}")
        time.sleep(0.05)
