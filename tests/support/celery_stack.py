"""Airflow with CeleryExecutor: its database is PostgreSQL, its broker Redis, and two Celery workers run the tasks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from sluiceway.stack.addresses import Addresses
from sluiceway.stack.process import BackgroundProcess
from support.eventually import LIMIT
from support.guard import Guard, stop
from support.redis_server import RedisServer
from support.stack import SOON_DEAD, RunningStack

WORKERS = ("celery-1", "celery-2")

_SLOTS = 6


class CeleryStack(RunningStack):
    """A running stack whose tasks run on Celery workers.

    Args:
        home: the stack's folder.
        settings: more settings of Airflow, as ``SECTION__OPTION``.
        worker: properties of the worker's file, besides the stack's own.
    """

    def __init__(self, home: Path, *, settings: Mapping[str, str] | None = None, worker: Mapping[str, str] | None = None) -> None:
        self.redis = RedisServer()
        celery = {
            "CORE__EXECUTOR": "CeleryExecutor",
            "CELERY__BROKER_URL": self.redis.url,
            "CELERY__WORKER_CONCURRENCY": str(_SLOTS),
            "SLUICEWAY__PAUSE_LINGER": "0",  # a pause ends tasks that outlive their worker
            **SOON_DEAD,
        }
        self._workers = Guard(stop, home, *WORKERS)
        super().__init__(home, postgres=True, settings={**celery, **(settings or {})}, worker=worker)

    def up(self) -> Addresses:
        """Start all processes that do not run, as systemd would."""
        self.redis.start()
        addresses = super().up()
        for name in WORKERS:
            self.celery(name).start()
        for name in WORKERS:
            self.await_ready(self.celery(name))
        return addresses

    def celery(self, name: str, settings: Mapping[str, str] | None = None) -> BackgroundProcess:
        """Return the process of a Celery worker, which may or may not run. ``settings`` are more ones of Airflow."""
        command = [sys.executable, "-m", "airflow", "celery", "worker", "--skip-serve-logs", "--celery-hostname", f"{name}@%h"]
        more = {f"AIRFLOW__{key}": value for key, value in (settings or {}).items()}
        return BackgroundProcess(name, command, self.home, env={**self.airflow_environment(), **more}, private=False)

    @staticmethod
    def await_ready(worker: BackgroundProcess) -> None:
        """Wait until a Celery worker takes tasks."""
        worker.wait_until(lambda: " ready." in worker.log.read_text(errors="replace"), LIMIT)

    def close(self) -> None:
        for name in WORKERS:  # first, because their tasks would start drivers again
            self.celery(name).stop(0, may_be_killed=True)
        self._workers.close()
        super().close()
        self.redis.close()
