"""Starts a Redis server for tests: Debian's, else one from Maven Central."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.database import HOST
from support.database_server import end, unpacked
from support.eventually import LIMIT, eventually
from support.guard import Guard

COORDINATES = "com.github.codemonstur:embedded-redis:1.4.3"

_PROGRAM = "redis-server-6.2.6-v5-linux-amd64"


class RedisServer:
    """A Redis. It keeps nothing on a disk, so that its end loses all data, unless it is ``durable``."""

    name = "redis"

    def __init__(self, *, durable: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"sluiceway-{self.name}-"))
        self.port = free_port(HOST)
        self.url = f"redis://{HOST}:{self.port}/0"
        self._guard = Guard(end, self.folder, self.name)
        settings = ["--bind", HOST, "--port", str(self.port), "--save", "", "--dir", str(self.folder)]
        settings += ["--appendonly", "yes", "--appendfsync", "always"] if durable else ["--appendonly", "no"]
        self.process = BackgroundProcess(self.name, [_program(), *settings], self.folder)

    def start(self) -> None:
        """Start the server unless it runs, and wait until it answers."""
        self.process.start()
        self.process.wait_until(self._answers, LIMIT)

    def end(self, number: signal.Signals) -> None:
        """End the server with a signal. ``start`` starts it again on the same port."""
        pid = self.process.status().pid
        assert pid is not None, "Redis does not run"
        os.kill(pid, number)
        eventually(lambda: not self.process.is_running(), what="the end of Redis")

    def close(self) -> None:
        end(self.folder, self.name)
        self._guard.close()

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), 5) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _program() -> Path:
    if found := shutil.which("redis-server"):
        return Path(found)
    program = unpacked(COORDINATES, RedisServer.name) / _PROGRAM
    program.chmod(0o755)
    return program
