"""Runs taps and targets as child processes that end with their task. Runs on executors, and where configs are validated."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO

from sluiceway.child_processes import PIPE_BYTES, die_with_parent, enlarge_pipe
from sluiceway.config.environment import for_configs
from sluiceway.config.password import HIDDEN
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_TAIL_LINES = 50
_STOP_SECONDS = 5.0
_LONG_LINE = 2000
# Below so many bytes, the next read waits, because a batch of few records costs as much as one of many.
_FULL = 1 << 16
_GATHER_MILLIS = 50
# Settings of this process's Python and Spark would mix two environments.
_OF_THIS_PYTHON = re.compile(r"PYTHON.*|PYSPARK.*|SPARK.*|VIRTUAL_ENV|CONDA_.*")
_SHORTEST_SECRET = 4


def environment_of_plugins(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a plugin's process."""
    return {name: value for name, value in for_configs(environment).items() if not _OF_THIS_PYTHON.fullmatch(name)}


class PluginProcess:
    """A process that prints messages. Its log goes to this process's log.

    The thread that makes it must live as long as the process: the kernel kills the process with it. Errors have the last lines
    of the log, without the ``secrets``. ``stdin`` is as ``subprocess`` takes it.
    """

    def __init__(
        self, name: str, command: Sequence[str], secrets: Iterable[str] = (), *, stdin: int = subprocess.DEVNULL
    ) -> None:
        self._name = name
        self._secrets = sorted((each for each in secrets if len(each) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        try:
            self._process = subprocess.Popen(
                die_with_parent(command),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment_of_plugins(os.environ),
                start_new_session=True,  # a signal to the process group is for Python, which stops the plugin first
            )
        except OSError as error:
            raise ConnectError(f"{name} cannot be started: {error}.") from error
        assert self._process.stdout is not None  # noqa: S101 (it is a pipe)
        enlarge_pipe(self._process.stdout.fileno())
        self._threads: dict[IO[bytes] | None, threading.Thread] = {}  # that read a pipe
        self._read_lines(self._process.stderr, self._log, "log")

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, seconds: float | None = None) -> int:
        """Return the exit code, once the process has closed its output. Raises ConnectError if it does not end in time."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.close()
            raise ConnectError(f"{self._name} has closed its standard output, but does not end: it was killed.") from None
        self._join()
        return code

    def failure(self, code: int, doing: str = "") -> ConnectError:
        """Return the error for an exit code other than 0."""
        how = f"exit code {code}"
        if code < 0:
            how = f"signal {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"signal {-code}"
        return ConnectError(f"{self._name}{doing} ended with {how}. {self.last_lines}")

    @property
    def last_lines(self) -> str:
        """The last lines of the log, for errors."""
        tail = "\n".join(self._tail)
        return f"Its last lines:\n{tail or '(none)'}"

    def kill(self) -> None:
        """End the process and those that it has started with SIGKILL. Thread-safe."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """End the process and those that it has started: with SIGTERM, and after 5 s with SIGKILL."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                log.warning("%s does not end by SIGTERM within %.0f s: it is killed", self._name, _STOP_SECONDS)
                self._signal(signal.SIGKILL)
                self._process.wait()
        self._join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            thread = self._threads.get(pipe)
            if pipe is not None and (thread is None or not thread.is_alive()):
                with contextlib.suppress(BrokenPipeError):  # it has not read all
                    pipe.close()

    def _join(self) -> None:
        """Wait until the pipes are read. A process that the plugin has started may hold them open."""
        for thread in self._threads.values():
            thread.join(_STOP_SECONDS)

    def _read_lines(self, pipe: IO[bytes] | None, take: Callable[[bytes], None], what: str) -> None:
        """Call a function with each line of a pipe, in a thread."""
        assert pipe is not None  # noqa: S101 (it is a pipe)

        def read() -> None:
            for line in pipe:
                take(line)

        self._threads[pipe] = threading.Thread(target=read, name=f"{what} of {self._name}", daemon=True)
        self._threads[pipe].start()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _log(self, raw: bytes) -> None:
        line = raw.decode(errors="replace").rstrip()[:_LONG_LINE]
        for secret in self._secrets:
            line = line.replace(secret, HIDDEN)
        if line:
            self._tail.append(line)
            log.info("%s: %s", self._name, line)


class TapProcess(PluginProcess):
    """A process whose messages one thread reads; others may call ``interrupt``."""

    def __init__(self, name: str, command: Sequence[str], secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()  # of the pipe that ends a wait
        self._waking, self._woken = os.pipe()
        try:
            super().__init__(name, command, secrets)
        except ConnectError:
            self._close_pipe()
            raise

    def chunks(self, *, gather: bool = True) -> Iterator[bytes]:
        """Yield what the process prints, in pieces of up to a megabyte, until its output ends, or ``interrupt`` is called.

        While there is little, waits for more, with ``gather``.
        """
        assert self._process.stdout is not None  # noqa: S101
        out = self._process.stdout.fileno()
        either, interrupted = select.poll(), select.poll()
        either.register(out, select.POLLIN)
        either.register(self._waking, select.POLLIN)
        interrupted.register(self._waking, select.POLLIN)
        while self._waking not in [fd for fd, _ in either.poll()]:
            data = os.read(out, PIPE_BYTES)
            if not data:
                return
            yield data
            if gather and len(data) < _FULL and interrupted.poll(_GATHER_MILLIS):
                return

    def interrupt(self) -> None:
        """End ``chunks`` soon. Thread-safe."""
        with self._lock:
            if self._woken >= 0:
                os.write(self._woken, b"x")

    def close(self) -> None:
        super().close()
        self._close_pipe()

    def _close_pipe(self) -> None:
        with self._lock:
            if self._woken >= 0:
                os.close(self._waking)
                os.close(self._woken)
                self._waking = self._woken = -1
