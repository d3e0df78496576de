"""Runs the loader: a Python process for each task, which has dlt and the destination. Runs where the task does.

The API server starts one, too, to change offsets and to validate a config.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluiceway.connectors.dlt.child import close_child, started_child
from sluiceway.connectors.dlt.loader import CONFIG, FENCED, PENDING, UNREACHABLE, of_error
from sluiceway.connectors.tables.store import FencedOffsetsError, UnknownOutcomeError, UnreachableError
from sluiceway.errors import ConfigError, ConnectError

_LOADER = "sluiceway.connectors.dlt.loader"


class LoaderProcess:
    """A loader's process. One thread calls all methods, and the process does not outlive it."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None
        self._files = Path()

    @property
    def files(self) -> Path:
        """The folder for files of rows, which nobody else uses while the process lives. Starts it."""
        self._started()
        return self._files

    def call(self, call: str, **more: Any) -> Any:
        """Return the answer to a request. Starts the process.

        Raises ConfigError, UnreachableError, FencedOffsetsError, UnknownOutcomeError, and ConnectError.
        """
        process = self._started()
        try:
            return _answer(process, {"call": call, **more})
        except BrokenPipeError:
            self.close()
            raise UnknownOutcomeError(
                "The process that loads into dlt's destination has ended. Its output is in the log of the task. It is started "
                "again. If that repeats, the machine or the container may have no memory left."
            ) from None

    def close(self) -> None:
        """Kill the process. The next one completes what it has not loaded."""
        process, self._process = self._process, None
        if process is not None:
            close_child(process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        self._process = started_child(_LOADER)
        try:
            self._files = Path(_answer(self._process, dict(self._config)))
        except BrokenPipeError:
            self.close()
            raise ConnectError("The process that loads into dlt's destination ended at once. Its output is in the log.") from None
        except BaseException:
            self.close()
            raise
        return self._process


def _answer(process: subprocess.Popen[bytes], request: Mapping[str, Any]) -> Any:
    """Return the result of a request. Raises what the answer says, and BrokenPipeError for none."""
    assert process.stdin is not None  # noqa: S101 (both are pipes)
    assert process.stdout is not None  # noqa: S101
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line.endswith(b"\n"):
        raise BrokenPipeError
    answer = json.loads(line)
    if "error" in answer:
        raise _error(*of_error(answer["error"]))
    return answer["result"]


def _error(kind: str, text: str, key: str) -> ConnectError:
    if kind == CONFIG:
        return ConfigError(key, None, text) if key else ConfigError(text)
    kinds = {UNREACHABLE: UnreachableError, FENCED: FencedOffsetsError, PENDING: UnknownOutcomeError}
    return kinds.get(kind, ConnectError)(text)
