"""Runs a target: one process for the messages of a flush, which count once it has printed the STATE after them.

Runs on executors.
"""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluiceway.connectors.singer.plugin import Plugin
from sluiceway.connectors.singer.process import PluginProcess
from sluiceway.connectors.singer.program import command_of, write_private
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.folders import scratch_folder

log = logging.getLogger(__name__)

_CHUNK = 1 << 18


class Target:
    """A target with its config. The thread that uses it must live as long as a run: the kernel kills the process with it.

    Making it may take minutes, in which its packages are installed. Raises ConnectError, such as NotFoundError.
    """

    def __init__(self, plugin: Plugin, seconds: float) -> None:
        self._plugin = plugin
        self._seconds = seconds
        self._command = command_of(plugin)

    def load(self, messages: Iterable[bytes], state: Mapping[str, Any]) -> None:
        """Run the target with the lines of messages, and the state behind them, until it has written all of it.

        Raises:
            RetriableError: it failed, or took too long. What it has written is not known.
            ConnectError: it cannot be started, or ended well and did not print the state, so that nobody knows what it wrote.
        """
        plugin = self._plugin
        with scratch_folder("singer") as folder:
            config = write_private(folder / "config.json", plugin.settings)
            process = TargetProcess(plugin.name, [*self._command, "--config", config], plugin.secrets())
            late = threading.Event()

            def end() -> None:
                late.set()
                process.kill()

            timer = threading.Timer(self._seconds, end)
            timer.daemon = True
            timer.start()
            try:
                process.write(messages, json.dumps({"type": "STATE", "value": state}).encode() + b"\n")
                code = process.wait()
                timer.cancel()
                if late.is_set():
                    raise RetriableError(
                        f"{plugin.name} was killed, because it has not ended within {self._seconds:.0f} s. Raise "
                        f"flush.timeout.ms, or lower flush.size. {process.last_lines}"
                    )
                if code:
                    raise RetriableError(str(process.failure(code)))
                if process.state != state:
                    raise ConnectError(
                        f"{plugin.name} ended with exit code 0, but the last line that it printed is not the STATE that it was "
                        f"given ({process.printed}), so that nobody knows whether it has written the records before it. Use a "
                        f"target that prints each STATE once it has written the records before it. {process.last_lines}"
                    )
            finally:
                timer.cancel()
                process.close()


class TargetProcess(PluginProcess):
    """A process that reads messages, and prints states. One thread writes; another one, of its own, reads."""

    def __init__(self, name: str, command: Sequence[str], secrets: Iterable[str] = ()) -> None:
        super().__init__(name, command, secrets, stdin=subprocess.PIPE)
        self._last = b""
        self._lines = 0
        self._read_lines(self._process.stdout, self._note, "states")

    def write(self, messages: Iterable[bytes], end: bytes) -> None:
        """Write messages and a last one, and close the pipe. A process that ends before it has read them is no error here."""
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101 (it is a pipe)
        waiting, size = [], 0
        try:
            for message in messages:
                waiting.append(message)
                size += len(message)
                if size >= _CHUNK:
                    pipe.write(b"".join(waiting))
                    waiting, size = [], 0
            pipe.write(b"".join([*waiting, end]))
            pipe.close()
        except BrokenPipeError:
            log.debug("%s does not read any more", self._name)

    @property
    def state(self) -> Any:
        """The last line that was printed, as JSON; None if it is none."""
        try:
            return json.loads(self._last)
        except ValueError:
            return None

    @property
    def printed(self) -> str:
        """A text about what was printed, without data."""
        return f"it has printed {self._lines} lines, the last one of {len(self._last)} bytes" if self._lines else "no line"

    def _note(self, line: bytes) -> None:
        if line.strip():
            self._last = line.strip()
            self._lines += 1
