"""Opens the standard input that a source without ``file`` reads: that of ``sluiceway standalone``, or of the task's process."""

from __future__ import annotations

import os
import sys

from sluiceway.config.environment import STANDARD_INPUT
from sluiceway.connectors.file.tail import StreamTail
from sluiceway.errors import ConnectError


def open_standard_input() -> StreamTail:
    """Return a reader of standard input. Raises ConnectError where a task has none, as on executors of a cluster."""
    if pipe := os.environ.get(STANDARD_INPUT):
        return StreamTail(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), owned=True)
    descriptor = sys.stdin.fileno()
    if os.fstat(descriptor).st_rdev == os.stat(os.devnull).st_rdev:  # noqa: PTH116 (compared with a descriptor's)
        raise ConnectError(
            "Without the key 'file' the connector reads standard input, which a task on Spark does not have. "
            "Set 'file', or run the connector with 'sluiceway standalone'."
        )
    return StreamTail(descriptor)
