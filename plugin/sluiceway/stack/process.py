"""Starts, finds and stops background processes: detached from the terminal, recorded in a pid file, ended with all children."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import psutil

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.folders import file_lock, write_atomically

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
_TAIL_LINES = 20
_KILLED_SECONDS = 30.0  # within which the kernel ends a killed process, even on a busy machine
# Start times are hundredths of a second since boot. Converting them to and from wall-clock time may round them by this much.
_START_TOLERANCE_SECONDS = 0.5

# Children of this Python process, by pid. Any object that sees a child end must reap it, whichever object started it.
_children: dict[int, subprocess.Popen[bytes]] = {}


PRIVATE_UMASK = 0o077
"""Lets only this user read what a process writes."""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """State of a background process at one moment; ``pid`` and ``started`` are None while it does not run."""

    name: str
    running: bool
    pid: int | None
    started: datetime | None
    log: Path


class BackgroundProcess:
    """One named process with its pid file and log in ``state_dir``. Any Python process can start, watch and stop it.

    Args:
        name: names the files ``<name>.pid`` and ``<name>.log``, and the process in messages.
        command: the program and its arguments; empty for an object that only watches or stops the process.
        state_dir: the folder of the files; created if necessary.
        env: environment variables in addition to those of this process.
        cwd: the working directory; default ``state_dir``.
        private: whether only this user can read the files that the process creates.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        state_dir: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        private: bool = True,
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.state_dir = state_dir.absolute()
        self.env = dict(env or {})
        self.cwd = cwd
        self.private = private
        self.log = self.state_dir / f"{name}.log"
        self.pid_file = self.state_dir / f"{name}.pid"

    def start(self) -> ProcessStatus:
        """Start the process in a session of its own unless it runs; return without waiting until it is ready.

        The previous log is kept as ``<name>.log.1``.

        Raises:
            MissingToolError: the program does not exist or cannot be executed.
        """
        with file_lock(self.state_dir / f"{self.name}.lock"):
            if self.is_running():
                return self.status()
            if self.log.exists():
                self.log.replace(self.log.with_suffix(".log.1"))
            with open(self.log, "wb", opener=_private) as output:
                try:
                    child = subprocess.Popen(
                        self.command,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        env={**os.environ, **self.env},
                        cwd=self.cwd or self.state_dir,
                        start_new_session=True,
                        umask=PRIVATE_UMASK if self.private else -1,
                    )
                except OSError as error:
                    msg = f"{self.name} cannot be started: {self.command[0]}: {error.strerror}. Check that it is installed."
                    raise MissingToolError(msg) from error
            _children[child.pid] = child
            self._write_pid_file(child.pid)
            log.debug("Started %s with pid %d, log %s", self.name, child.pid, self.log)
            return self.status()

    def is_running(self) -> bool:
        """Return True if the process of the pid file is alive. A pid that another process has now does not count."""
        return self._process() is not None

    def status(self) -> ProcessStatus:
        """Return the process's current state."""
        process = self._process()
        with contextlib.suppress(psutil.NoSuchProcess):
            if process is not None:
                started = datetime.fromtimestamp(process.create_time(), tz=timezone.utc)
                return ProcessStatus(self.name, True, process.pid, started, self.log)
        return ProcessStatus(self.name, False, None, None, self.log)

    def listens_on(self, port: int) -> bool:
        """Return True if the process or a child of it, and not some other process, listens on a TCP port."""
        process = self._process()
        with contextlib.suppress(psutil.Error):
            for member in [process, *process.children(recursive=True)] if process else []:
                for connection in member.net_connections(kind="tcp"):
                    if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                        return True
        return False

    def stop(self, timeout: float = 30.0, *, may_be_killed: bool = False) -> bool:
        """End the process and all its descendants, wait for their end, and return False if none ran.

        Only the process itself receives SIGTERM, because it should end its children. After ``timeout`` seconds it is killed;
        descendants that outlive it are killed too, even if it died before this call. With ``may_be_killed``, this is no warning.
        """
        with file_lock(self.state_dir / f"{self.name}.lock"):
            recorded = self._read_pid_file()
            process = self._process()
            family = self._family(process, recorded)
            if process is not None:
                _signal(process, signal.SIGTERM)
                if not self._wait_for_end(process, timeout):
                    level = logging.DEBUG if may_be_killed else logging.WARNING
                    log.log(level, "%s did not end within %g s after SIGTERM; killing it", self.name, timeout)
                    family |= self._family(process, recorded)
                    _signal(process, signal.SIGKILL)
                    self._wait_for_end(process, _KILLED_SECONDS)
            family |= self._family(None, recorded)
            for member in family:
                _signal(member, signal.SIGKILL)
            deadline = time.monotonic() + _KILLED_SECONDS
            for member in family:
                # FileNotFoundError: what pidfd_open() reports on some systems for a process that has just ended
                with contextlib.suppress(psutil.Error, FileNotFoundError):
                    member.wait(timeout=max(0.0, deadline - time.monotonic()))
            self.pid_file.unlink(missing_ok=True)
            return process is not None or bool(family)

    def wait_until(self, ready: Callable[[], bool], timeout: float, *, what: str = "ready") -> None:
        """Wait until ``ready()`` is true, at most ``timeout`` seconds; ``what`` names that state in the error.

        Raises:
            ConnectError: the process ended first, or it was not ready in time (it keeps running then). The message ends
                with the last lines of the log.
        """
        deadline = time.monotonic() + timeout
        while True:
            # In this order, so that a process that became ready and ended in between does not count as ready.
            is_ready, running = ready(), self.is_running()
            if is_ready and running:
                return
            if not running:
                msg = f"{self.name} ended before it was {what}. Last lines of {self.log}:\n{self.log_tail()}"
                raise ConnectError(msg)
            if time.monotonic() > deadline:
                msg = f"{self.name} was not {what} within {timeout:g} s. Last lines of {self.log}:\n{self.log_tail()}"
                raise ConnectError(msg)
            time.sleep(_POLL_SECONDS)

    def log_tail(self, lines: int = _TAIL_LINES) -> str:
        """Return the last lines of the log, or an empty text if the log does not exist."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ""

    def _write_pid_file(self, pid: int) -> None:
        try:
            process = psutil.Process(pid)
            record = {"pid": pid, "started": _seconds_after_boot(process), "command": self.command[0]}
        except psutil.NoSuchProcess:
            return  # it has already ended, so nobody needs to find it
        write_atomically(self.pid_file, json.dumps(record), mode=0o600)

    def _read_pid_file(self) -> tuple[int, float] | None:
        try:
            record = json.loads(self.pid_file.read_text())
            return int(record["pid"]), float(record["started"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            log.warning("Ignoring the invalid pid file %s: %s", self.pid_file, error)
            return None

    def _process(self) -> psutil.Process | None:
        recorded = self._read_pid_file()
        if recorded is None:
            return None
        pid, started = recorded
        child = _children.get(pid)
        if child is not None and child.poll() is not None:
            del _children[pid]
            return None
        try:
            process = psutil.Process(pid)
            same = abs(_seconds_after_boot(process) - started) < _START_TOLERANCE_SECONDS
            # A killed process is a zombie while its last threads still hold ports and files; it counts as running until then.
            dead = process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
            return process if same and not dead else None
        except psutil.NoSuchProcess:
            return None

    def _wait_for_end(self, process: psutil.Process, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self.is_running():
            if time.monotonic() > deadline:
                return False
            # Returns at once when the process ends. The loop detects a zombie that its parent does not reap.
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(timeout=_POLL_SECONDS)
        return True

    @staticmethod
    def _family(process: psutil.Process | None, recorded: tuple[int, float] | None) -> set[psutil.Process]:
        """Return the process's descendants, and all members of its session, which outlives the process."""
        members: set[psutil.Process] = set()
        with contextlib.suppress(psutil.NoSuchProcess):
            if process is not None:
                members.update(process.children(recursive=True))
        if recorded is None:
            return members
        pid, started = recorded
        for other in psutil.process_iter():
            # A session id is not reused while a member lives, and members are younger than the session's leader.
            with contextlib.suppress(OSError, psutil.Error):
                if other.pid != pid and os.getsid(other.pid) == pid and _seconds_after_boot(other) >= started - 1:
                    members.add(other)
        return members


def _seconds_after_boot(process: psutil.Process) -> float:
    """Return a process's start time in seconds since boot, which setting the clock does not change."""
    return process.create_time() - psutil.boot_time()


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
