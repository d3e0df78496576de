"""Runs what the conformance kit needs: a broker, a standalone worker, PostgreSQL and MariaDB.

``python -m cdc.lab FOLDER`` starts them, prints the arguments of ``compare.py``, and stops them at the end of its input.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.database import HOST, PASSWORD, USER
from support.driver import write_properties
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_READY_SECONDS = 120.0


class Lab:
    """The servers of a run, started with ``with``. ``arguments`` are those of ``compare.py`` and ``record.py``."""

    def __init__(self, folder: Path, *, mariadb: bool = True) -> None:
        self.folder = folder
        self.broker = EmbeddedBroker(folder / "broker")
        self.postgres = PostgresServer()
        self.mariadb = MariaDbServer(binlog=True) if mariadb else None
        self.port = free_port(HOST)
        self.bootstrap = ""
        self._stack = ExitStack()

    def __enter__(self) -> Lab:
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self.bootstrap = self.broker.start(progress=lambda line: print(line, file=sys.stderr))
            stack.callback(self.broker.stop)
            stack.enter_context(self.postgres)
            if self.mariadb is not None:
                stack.enter_context(self.mariadb)
            self.start_worker()
            stack.callback(self.stop_worker)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def arguments(self) -> list[str]:
        mariadb = [] if self.mariadb is None else ["--mariadb", f"mysql://{USER}:{PASSWORD}@{HOST}:{self.mariadb.port}/"]
        postgres = f"postgresql://{USER}:{PASSWORD}@{HOST}:{self.postgres.port}/postgres"
        return ["--rest", f"http://{HOST}:{self.port}", "--bootstrap", self.bootstrap, "--pg", postgres, *mariadb]

    def start_worker(self) -> None:
        """Start the worker, with the code as it is now."""
        properties = {
            "bootstrap.servers": self.bootstrap,
            "key.converter": _JSON,
            "value.converter": _JSON,
            "offset.storage.file.filename": str(self.folder / "connect.offsets"),
            "offset.flush.interval.ms": "1000",
            "listeners": f"http://{HOST}:{self.port}",
        }
        file = write_properties(self.folder / "worker.properties", properties)
        process = self._worker([sys.executable, "-m", "sluiceway.cli.main", "standalone", str(file)])
        process.start()
        process.wait_until(self._answers, _READY_SECONDS)

    def stop_worker(self) -> None:
        self._worker([]).stop()

    def _worker(self, command: list[str]) -> BackgroundProcess:
        return BackgroundProcess("worker", command, self.folder, cwd=self.folder)

    def _answers(self) -> bool:
        import httpx

        try:
            return httpx.get(f"http://{HOST}:{self.port}/connectors").is_success
        except httpx.HTTPError:
            return False


def main() -> None:
    with Lab(Path(sys.argv[1]).absolute(), mariadb="--no-mariadb" not in sys.argv) as lab:
        print(*lab.arguments, flush=True)
        for line in sys.stdin:
            if line.strip() == "restart":
                lab.stop_worker()
                lab.start_worker()
                print("restarted", flush=True)


if __name__ == "__main__":
    main()
