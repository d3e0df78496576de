"""Starts programs that must not outlive the thread that started them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Sequence

PIPE_BYTES = 1 << 20
"""The size of a pipe that Linux allows a user without privileges."""

# Lets the kernel kill the process with the thread that started it, also if another process holds its pipes open. A process
# that sets this in `preexec_fn` would fork while it has threads, so a short-lived Python process does it first. The parent
# may have ended before that: then another process is the parent now.
_DIE_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.getppid() == int(sys.argv[1]) or os._exit(1); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


def die_with_parent(command: Sequence[str]) -> list[str]:
    """Return a command as one whose process the kernel kills when the thread that starts it ends.

    The first argument is the path of the program. Processes that the program starts are not killed.
    """
    return [sys.executable, "-S", "-E", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command] if sys.executable else list(command)


def enlarge_pipe(pipe: int) -> None:
    """Let a pipe hold a megabyte, so that its two sides wait for each other less often."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # beyond the user's limit of memory for pipes
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
