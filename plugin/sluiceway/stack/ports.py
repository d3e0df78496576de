"""Finds free TCP ports, and the owners of ports in use."""

from __future__ import annotations

import contextlib
import random
import socket

import psutil

from sluiceway.errors import MissingToolError

_LOWEST_PORT, _HIGHEST_PORT = 10_000, 32_000
_ATTEMPTS = 200


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port on which no process listens.

    The port lies below the system's range for outgoing connections, so that no such connection takes it while its server
    restarts.

    Raises:
        MissingToolError: no free port was found.
    """
    choose = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        port = choose.randrange(_LOWEST_PORT, _HIGHEST_PORT)
        if can_bind(host, port):
            return port
    msg = f"Found no free TCP port between {_LOWEST_PORT} and {_HIGHEST_PORT} on {host}. Stop servers that are not needed."
    raise MissingToolError(msg)


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
