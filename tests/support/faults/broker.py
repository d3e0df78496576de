"""A broker behind a TCP proxy that a test can stop, kill and freeze."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

import psutil

from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.maven import Progress
from sluiceway.stack.ports import free_port
from support.eventually import LIMIT
from support.faults.proxy import TcpProxy
from support.freeze import freeze

_HOST = "127.0.0.1"


class FaultyBroker(EmbeddedBroker):
    """Advertises the proxy's port to clients; the broker's connections to itself bypass the proxy.

    ``address`` is the clients' bootstrap server. Data and ports survive stops, kills and starts.
    """

    def __init__(self, state_dir: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(state_dir, free_port(), properties)
        assert self.port is not None
        self.proxy = TcpProxy(self.port)
        self._inner_port = free_port()

    @property
    def address(self) -> str:
        return f"{_HOST}:{self.proxy.port}"

    def start(self, progress: Progress | None = None, timeout: float = LIMIT) -> str:
        return super().start(progress, timeout)

    def kill(self) -> None:
        """Kill the broker with SIGKILL and wait until it has ended; ``start`` restarts it with the same data."""
        process = self._process_now()
        process.kill()
        process.wait(LIMIT)

    def freeze(self) -> None:
        freeze(self._process_now().pid)

    def thaw(self) -> None:
        self._process_now().send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop the broker and the proxy."""
        self.stop(5)
        self.proxy.close()

    def _process_now(self) -> psutil.Process:
        pid = self.status().pid
        assert pid is not None, "the broker does not run"
        return psutil.Process(pid)

    def _settings(self, port: int) -> str:
        text = super()._settings(port)
        settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        settings["listeners"] += f",INNER://{_HOST}:{self._inner_port}"
        settings["advertised.listeners"] = f"PLAINTEXT://{self.address},INNER://{_HOST}:{self._inner_port}"
        settings["listener.security.protocol.map"] += ",INNER:PLAINTEXT"
        settings["inter.broker.listener.name"] = "INNER"
        return "".join(f"{key}={value}\n" for key, value in settings.items())
