"""How much memory a task's process takes, told in its log."""

from __future__ import annotations

import logging
import resource
import sys
from pathlib import Path

log = logging.getLogger(__name__)

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the memory that this process takes now; where the system does not tell, the most that it ever took."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def log_memory(task: int, records: int) -> None:
    """Log a line with the records that a task has moved and the memory of its process, in bytes."""
    log.info("Mock task %d: records=%d resident=%d", task, records, resident_bytes())
