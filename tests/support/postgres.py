"""A PostgreSQL server of a test's own, as Airflow's database: Debian's programs, a temporary folder, a free port."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from sluiceway.stack.process import BackgroundProcess, free_port

HOST = "127.0.0.1"
USER = "airflow"
_PASSWORD = "open-sesame"  # of a server that this machine alone reaches, for as long as the test runs
_READY_SECONDS = 30.0
_STOP_SECONDS = 10.0
_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_connections": "300",
}


class PostgresServer:
    """Starts with ``start``; ends with ``close``, which removes its data."""

    name = "postgresql"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sluiceway-postgresql-"))
        self.folder.chmod(0o755)
        self.port = free_port(HOST)
        self._programs = programs()

    def start(self) -> PostgresServer:
        data = self.folder / "data"
        data.mkdir()
        before = _unprivileged(data)
        secret = self.folder / "password"
        secret.write_text(_PASSWORD)
        made = [*before, self._programs / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", "-E", "UTF8", "--no-sync",
                "--locale=C.UTF-8", f"--pwfile={secret}"]  # fmt: skip
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd="/")
        options = [part for name, value in {**_SETTINGS, "port": self.port}.items() for part in ("-c", f"{name}={value}")]
        command = [*before, self._programs / "postgres", "-D", data, *options]
        process = BackgroundProcess(self.name, command, self.folder, cwd=Path("/"))
        process.start()
        process.wait_until(self._answers, _READY_SECONDS)
        return self

    def airflow(self) -> dict[str, str]:
        """Return the settings of an Airflow whose database this is, as ``SECTION__OPTION``."""
        address = f"{USER}:{_PASSWORD}@{HOST}:{self.port}/postgres"
        return {
            "DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg://{address}",
            "DATABASE__SQL_ALCHEMY_CONN_ASYNC": f"postgresql+psycopg_async://{address}",
        }

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        import psycopg

        with psycopg.connect(host=HOST, port=self.port, user=USER, password=_PASSWORD, dbname="postgres") as connection:
            return connection.execute(sql).fetchall()

    def close(self) -> None:
        end(self.folder)

    def _answers(self) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            return bool(self.execute("SELECT 1"))
        return False


def end(folder: Path) -> None:
    """End the server whose folder this is, from any process, and remove the folder."""
    if folder.exists():
        BackgroundProcess(PostgresServer.name, [], folder).stop(_STOP_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def programs() -> Path:
    """Return the folder with initdb and postgres, the newest version's; raises FileNotFoundError where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise FileNotFoundError("There is no PostgreSQL server in /usr/lib/postgresql: apt-get install postgresql")
    return found[-1].parent


def _unprivileged(folder: Path) -> list[str]:
    """Return what to put before PostgreSQL's commands, which refuse to run as root; the folder is given to that user."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]
