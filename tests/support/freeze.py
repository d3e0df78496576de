"""Freezes a process, as if its machine hung."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from support.eventually import eventually

#: States of threads that run no more: stopped, ended, and dead.
_STILL = {"T", "Z", "X"}


def freeze(pid: int) -> None:
    """Send SIGSTOP and wait until all threads have stopped, which on a busy machine takes a while. SIGCONT continues them."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: _thread_states(pid) <= _STILL, what=f"all threads of process {pid} stopped")


def _thread_states(pid: int) -> set[str]:
    """Return the states of a process's threads, as in proc(5); none of a process that has ended."""
    states = set()
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            states.add(stat.read_text().rpartition(")")[2].split()[0])
    return states
