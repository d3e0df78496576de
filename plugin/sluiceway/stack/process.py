"""A background process of our own: started apart from the terminal, found again by its pid file, ended with all its children."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import socket
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
_KILLED_SECONDS = 30.0  # how long the kernel may take to end what was killed, on a busy machine
# Start times come in hundredths of a second counted from boot; going by way of the wall clock may round them by that much.
_START_TOLERANCE_SECONDS = 0.5
_LOWEST_PORT, _HIGHEST_PORT = 10_000, 32_000

# Children of this very process have to be reaped by whoever sees them end, whichever object started them.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """What is known of a background process at one moment; ``pid`` and ``started`` are None when it does not run."""

    name: str
    running: bool
    pid: int | None
    started: datetime | None
    log: Path


class BackgroundProcess:
    """One named process whose pid file and log lie in ``state_dir``; any Python process may start, watch or stop it.

    Args:
        name: names the files ``<name>.pid`` and ``<name>.log``, and the process in messages.
        command: the program and its arguments; may be empty for an object that only watches or stops.
        state_dir: the folder of the files; made when needed.
        env: variables on top of this process's environment.
        cwd: the working directory; default ``state_dir``.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        state_dir: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.state_dir = state_dir.absolute()
        self.env = dict(env or {})
        self.cwd = cwd
        self.log = self.state_dir / f"{name}.log"
        self.pid_file = self.state_dir / f"{name}.pid"

    def start(self) -> ProcessStatus:
        """Start the process in a session of its own, unless it runs already; return at once, ready or not.

        The log of the start before is kept as ``<name>.log.1``.

        Raises:
            MissingToolError: the program does not exist or cannot be run.
        """
        with file_lock(self.state_dir / f"{self.name}.lock"):
            if self.is_running():
                return self.status()
            if self.log.exists():
                self.log.replace(self.log.with_suffix(".log.1"))
            with self.log.open("wb") as output:
                try:
                    child = subprocess.Popen(
                        self.command,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        env={**os.environ, **self.env},
                        cwd=self.cwd or self.state_dir,
                        start_new_session=True,
                    )
                except OSError as error:
                    msg = f"{self.name} cannot be started: {self.command[0]}: {error.strerror}"
                    raise MissingToolError(msg) from error
            _children[child.pid] = child
            self._write_pid_file(child.pid)
            log.debug("Started %s with pid %d, log %s", self.name, child.pid, self.log)
            return self.status()

    def is_running(self) -> bool:
        """Say whether the process that the pid file names is alive; a pid that went to another process does not count."""
        return self._process() is not None

    def status(self) -> ProcessStatus:
        """Return what is known of the process now."""
        process = self._process()
        with contextlib.suppress(psutil.NoSuchProcess):
            if process is not None:
                started = datetime.fromtimestamp(process.create_time(), tz=timezone.utc)
                return ProcessStatus(self.name, True, process.pid, started, self.log)
        return ProcessStatus(self.name, False, None, None, self.log)

    def listens_on(self, port: int) -> bool:
        """Say whether the process, or a child of it, listens on a port: an answer there might be somebody else's."""
        process = self._process()
        with contextlib.suppress(psutil.Error):
            for member in [process, *process.children(recursive=True)] if process else []:
                for connection in member.net_connections(kind="tcp"):
                    if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                        return True
        return False

    def stop(self, timeout: float = 30.0) -> bool:
        """End the process and everything that it started, and return when all are gone; False if nothing ran.

        SIGTERM goes to the process alone, which should end its own children; what is left ``timeout`` seconds later, or
        left behind by it, is killed. A process that died earlier and left children behind is cleaned up after likewise.
        """
        with file_lock(self.state_dir / f"{self.name}.lock"):
            recorded = self._read_pid_file()
            process = self._process()
            family = self._family(process, recorded)
            if process is not None:
                _signal(process, signal.SIGTERM)
                if not self._gone(process, timeout):
                    log.warning("%s did not end within %g s of SIGTERM; killing it", self.name, timeout)
                    family |= self._family(process, recorded)
                    _signal(process, signal.SIGKILL)
                    self._gone(process, _KILLED_SECONDS)
            family |= self._family(None, recorded)
            for member in family:
                _signal(member, signal.SIGKILL)
            psutil.wait_procs(list(family), timeout=_KILLED_SECONDS)
            self.pid_file.unlink(missing_ok=True)
            return process is not None or bool(family)

    def wait_until(self, ready: Callable[[], bool], timeout: float, *, what: str = "ready") -> None:
        """Return as soon as ``ready()`` is true.

        Raises:
            ConnectError: the process ended first, or time ran out (it is left running then); the message ends with the
                last lines of the log.
        """
        deadline = time.monotonic() + timeout
        while True:
            # Asked in this order, so that a process which got ready and ended in between is not called ready.
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
        """Return the last lines of the log, or an empty text if there is none."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ""

    def _write_pid_file(self, pid: int) -> None:
        try:
            process = psutil.Process(pid)
            record = {"pid": pid, "started": _seconds_after_boot(process), "command": self.command[0]}
        except psutil.NoSuchProcess:
            return  # it ended at once; there is nothing to find again
        write_atomically(self.pid_file, json.dumps(record))

    def _read_pid_file(self) -> tuple[int, float] | None:
        try:
            record = json.loads(self.pid_file.read_text())
            return int(record["pid"]), float(record["started"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            log.warning("Ignoring the broken pid file %s: %s", self.pid_file, error)
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
            # A killed process is a zombie while its last threads still hold its ports and files: not gone yet.
            dead = process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
            return process if same and not dead else None
        except psutil.NoSuchProcess:
            return None

    def _gone(self, process: psutil.Process, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self.is_running():
            if time.monotonic() > deadline:
                return False
            # Waits on the process itself, not on the clock; a zombie whose parent does not reap it is caught by the loop.
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(timeout=_POLL_SECONDS)
        return True

    @staticmethod
    def _family(process: psutil.Process | None, recorded: tuple[int, float] | None) -> set[psutil.Process]:
        """Return the process's descendants, and whoever else is in its session, which outlives the process itself."""
        members: set[psutil.Process] = set()
        with contextlib.suppress(psutil.NoSuchProcess):
            if process is not None:
                members.update(process.children(recursive=True))
        if recorded is None:
            return members
        pid, started = recorded
        for other in psutil.process_iter():
            # A session's number is not given away while a member lives; its members are younger than its leader.
            with contextlib.suppress(OSError, psutil.Error):
                if other.pid != pid and os.getsid(other.pid) == pid and _seconds_after_boot(other) >= started - 1:
                    members.add(other)
        return members


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port that nobody listens on now.

    It lies below the range from which the system takes ports for outgoing connections, so that none of those can be
    sitting on it when a server comes back to its port after a pause.

    Raises:
        MissingToolError: no free port was found.
    """
    choose = random.SystemRandom()
    for _ in range(200):
        port = choose.randrange(_LOWEST_PORT, _HIGHEST_PORT)
        if can_bind(host, port):
            return port
    msg = f"No free TCP port between {_LOWEST_PORT} and {_HIGHEST_PORT} was found on {host}"
    raise MissingToolError(msg)


def can_bind(host: str, port: int) -> bool:
    """Say whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        # As servers do: connections of a former server that linger in TIME_WAIT are no hindrance.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, port))
            server.listen(1)
        except OSError:
            return False
    return True


def port_is_open(host: str, port: int, timeout: float = 1.0) -> bool:
    """Say whether somebody accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=timeout):
            return True
    except OSError:
        return False


def port_owner(port: int) -> str | None:
    """Name the process that listens on a port, as ``java (pid 42)``; None if there is none or it is hidden from us."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
            if listens and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return None


def _seconds_after_boot(process: psutil.Process) -> float:
    """Tell a process's start time in a way that setting the clock does not change."""
    return process.create_time() - psutil.boot_time()


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
