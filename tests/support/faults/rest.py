"""``sluiceway rest`` as a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

from sluiceway.rest.client import ConnectClient
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess


class RestServer:
    """Serves one worker group's connectors. Use it as a context manager."""

    def __init__(self, worker_file: Path, folder: Path) -> None:
        folder.mkdir()
        self.port = free_port()
        own = folder / "worker.properties"
        own.write_text(f"{worker_file.read_text()}listeners=http://127.0.0.1:{self.port}\n")
        command = [sys.executable, "-m", "sluiceway.cli.main", "rest", str(own)]
        self._process = BackgroundProcess("rest", command, folder)
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = ConnectClient(self.url)

    def __enter__(self) -> RestServer:
        self._process.start()
        self._process.wait_until(lambda: self._process.listens_on(self.port), 60)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.client.close()
        self._process.stop(15)
