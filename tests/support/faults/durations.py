"""The duration of faults: short by default, so that the matrix runs in minutes."""

from __future__ import annotations

import os

_FULL = "SLUICEWAY_FAULT_FULL"


def fault_seconds(shortened: float, full: float) -> float:
    """Return the duration of a fault in seconds: ``full`` only with SLUICEWAY_FAULT_FULL=1 in the environment."""
    return full if os.environ.get(_FULL) == "1" else shortened
