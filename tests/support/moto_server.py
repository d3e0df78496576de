"""Starts servers with the protocols of AWS (moto) for tests, in processes of their own. They forget all when they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

import pytest

from sluiceway.stack.ports import free_port
from support.eventually import LIMIT, eventually

HOST = "127.0.0.1"
SERVE = ("-c", "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])")


class MotoServer:
    """A server, as a context. Skips the test if moto is not installed. ``log`` has a line for each request."""

    serve: tuple[str, ...] = SERVE
    """The arguments of Python that start it, before the port."""

    def __init__(self) -> None:
        pytest.importorskip("moto")
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        self._log = tempfile.NamedTemporaryFile(prefix="moto-", suffix=".log")  # noqa: SIM115 (closed in __exit__)
        self.log = Path(self._log.name)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> MotoServer:
        command = [sys.executable, *self.serve, str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self._log)
        eventually(lambda: answers(self.url), what="moto")
        return self

    def __exit__(self, *_: object) -> None:
        self.send_signal(signal.SIGCONT)
        assert self._process is not None
        self._process.terminate()
        self._process.wait(LIMIT)
        self._log.close()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP."""
        assert self._process is not None, "the server was not started"
        os.kill(self._process.pid, number)


def answers(url: str) -> bool:
    """Return whether a server answers a request."""
    try:
        with urlopen(url, timeout=2):  # noqa: S310 (our own server)
            return True
    except OSError:
        return False
