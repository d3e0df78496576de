"""Finds free TCP ports, and the owners of ports in use."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from pathlib import Path

import psutil

from sluiceway.errors import MissingToolError
from sluiceway.folders import cache_home, file_lock

_LOWEST_PORT, _HIGHEST_PORT = 10_000, 32_000
_ATTEMPTS = 200
_CLAIM_SECONDS = 600.0  # within which a server listens on the port that was chosen for it


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port on which no process listens, and which no other call returns within ten minutes.

    Servers listen some seconds after their port was chosen, so ports are claimed by files in the user's cache folder. The port
    lies below the system's range for outgoing connections, so that no such connection takes it while its server restarts.

    Raises:
        MissingToolError: no free port was found.
    """
    choose, claims = random.SystemRandom(), cache_home() / "ports"
    with file_lock(claims / "lock"):
        for _ in range(_ATTEMPTS):
            port = choose.randrange(_LOWEST_PORT, _HIGHEST_PORT)
            if can_bind(host, port) and _claim(claims / str(port)):
                return port
    msg = f"Found no free TCP port between {_LOWEST_PORT} and {_HIGHEST_PORT} on {host}. Stop servers that are not needed."
    raise MissingToolError(msg)


def preferred_port(wanted: int, host: str = "127.0.0.1") -> int:
    """Return ``wanted`` if no process listens there and no other call has claimed it, otherwise a free port.

    Call ``release_port`` once the server listens: the next stack may have the port after this one has stopped.
    """
    claims = cache_home() / "ports"
    with file_lock(claims / "lock"):
        if can_bind(host, wanted) and _claim(claims / str(wanted)):
            return wanted
    return free_port(host)


def release_port(port: int) -> None:
    """Give up the claim to a port, because its server listens."""
    claims = cache_home() / "ports"
    with file_lock(claims / "lock"):
        (claims / str(port)).unlink(missing_ok=True)


def _claim(file: Path) -> bool:
    """Claim a port by its file; return False if a claim is younger than ten minutes."""
    with contextlib.suppress(FileNotFoundError):
        if time.time() - file.stat().st_mtime < _CLAIM_SECONDS:
            return False
    file.touch()
    return True


def can_bind(host: str, port: int) -> bool:
    """Return True if a server could listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        # As servers do, so that connections of a former server in TIME_WAIT do not count.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, port))
            server.listen(1)
        except OSError:
            return False
    return True


def port_is_open(host: str, port: int, timeout: float = 1.0) -> bool:
    """Return True if a server accepts connections on the port within ``timeout`` seconds."""
    try:
        with socket.create_connection((host, port), timeout=timeout):
            return True
    except OSError:
        return False


def port_owner(port: int) -> str | None:
    """Return the process that listens on a port, as ``java (pid 42)``; None if there is none or it cannot be seen."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
            if listens and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return None
