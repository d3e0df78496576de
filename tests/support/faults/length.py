"""How long faults last: shortened, so that the matrix runs in minutes, or in full."""

from __future__ import annotations

import os

_FULL = "SLUICEWAY_FAULT_FULL"


def lasting(shortened: float, full: float) -> float:
    """Return how many seconds a fault is to last: ``full`` only with SLUICEWAY_FAULT_FULL=1 in the environment."""
    return full if os.environ.get(_FULL) == "1" else shortened
