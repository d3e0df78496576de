"""Runs the reader: a Python process for each run, which has dlt and the user's source.

Runs on executors and, to validate, on drivers.

dlt keeps its configuration and contexts in objects of the process. So no two sources share one, and no secret of one is seen by
another; what a source waits for, such as a limit of requests, delays no pause and no stop, because the process can be ended.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from sluiceway.connectors.dlt.child import close_child, kill_child, started_child
from sluiceway.connectors.dlt.frames import ERROR, Frame, read_frame
from sluiceway.errors import ConnectError

READER = "sluiceway.connectors.dlt.reader"


class SourceUnreachableError(ConnectError):
    """The source could not be reached, or answered that it is busy. A later run may succeed."""


class SourceError(ConnectError):
    """The run failed. ``key`` is the config key that is wrong, empty if it is none."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class ReaderProcess:
    """A reader's process. ``frames`` runs on one thread, which the process does not outlive; the other methods on any."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def frames(self) -> Iterator[Frame]:
        """Start the process, and yield its frames. Raises SourceError, and SourceUnreachableError."""
        with self._lock:
            if self._ended:
                return
            process = self._process = started_child(READER)
        try:
            self.answer(self._request)
            last = None
            while (frame := read_frame(process.stdout)) is not None:  # type: ignore[arg-type]  # it is a pipe
                last = frame.kind
                if frame.kind == ERROR:
                    raise _error(**frame.head)
                yield frame
            self._raise_if_crashed(process, last)
        finally:
            self.end()
            close_child(process)

    def answer(self, message: object) -> None:
        """Send a message to the process. What an ended process does not read is dropped."""
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()

    def end(self) -> None:
        """Kill the process. What it has not handed over is read again by the next one."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                kill_child(self._process)

    def _raise_if_crashed(self, process: subprocess.Popen[bytes], last: str | None) -> None:
        if self._ended or last in {"end", "described"}:
            return
        code = process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        raise SourceError(
            f"The process that reads the source ended {how}. Its output is in the log of the task. Signal 9 may mean that the "
            "machine or the container had no memory left."
        )


def _error(text: str, key: str = "", *, unreachable: bool = False) -> ConnectError:
    return SourceUnreachableError(text) if unreachable else SourceError(text, key)
