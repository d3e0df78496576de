"""Elects the API server process that runs the pause sync: the one that holds a lock in Airflow's database."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
from pathlib import Path
from typing import IO, Any, Protocol

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

log = logging.getLogger(__name__)


class Leadership(Protocol):
    """A lock that one process holds at a time."""

    def held(self) -> bool:
        """Return whether this process holds the lock; takes it if it is free."""

    def release(self) -> None:
        """Release the lock, if this process holds it."""


class FileLeadership:
    """A lock on a file, for SQLite, where all processes run on one machine. The kernel releases it when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[Any] | None = None

    def held(self) -> bool:
        if self._file is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class DatabaseLeadership:
    """An advisory lock of PostgreSQL or MySQL, on a dedicated connection. The server releases it when the connection ends."""

    _TAKE = {
        "postgresql": "SELECT pg_try_advisory_lock(:number)",
        "mysql": "SELECT GET_LOCK(CAST(:number AS CHAR), 0)",
    }

    def __init__(self, engine: Engine, key: str) -> None:
        self._engine = engine
        # Advisory locks have numbers. The key distinguishes Connect clusters that share one Airflow.
        self._number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big", signed=True)
        self._connection: Connection | None = None

    def held(self) -> bool:
        try:
            if self._connection is not None:
                self._connection.execute(text("SELECT 1"))
                return True
            return self._take()
        except SQLAlchemyError as error:
            log.warning("Lost the lock of the pause sync, trying to take it again: %s", error)
            self.release()
            return False

    def release(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.invalidate()  # closes it: back in the pool it would keep the lock
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None

    def _take(self) -> bool:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            taken = connection.execute(text(self._TAKE[self._engine.dialect.name]), {"number": self._number}).scalar()
        except SQLAlchemyError:
            connection.close()
            raise
        if not taken:
            connection.close()
            return False
        self._connection = connection
        return True


def leadership(engine: Engine, folder: Path, key: str) -> Leadership:
    """Return the lock for the kind of Airflow's database.

    Args:
        folder: the folder of the lock file, for SQLite.
        key: the group id of the Connect cluster.
    """
    # Both names are those of version 0.1.0: during a rolling upgrade, API servers of both versions must compete for one lock.
    if engine.dialect.name in DatabaseLeadership._TAKE:
        return DatabaseLeadership(engine, f"sluiceway-mirror-{key}")
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    return FileLeadership(folder / f"sluiceway-mirror-{digest}.lock")
