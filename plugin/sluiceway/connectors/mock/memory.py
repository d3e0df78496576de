"""Logs the memory of a task's process."""

from __future__ import annotations

import logging
import resource
import sys
from pathlib import Path

log = logging.getLogger(__name__)

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes; the peak on systems without /proc."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def log_memory(task: int, records: int) -> None:
    """Log the number of records that a task has moved and the resident memory of its process in bytes."""
    log.info("Mock task %d: records=%d resident=%d", task, records, resident_bytes())
