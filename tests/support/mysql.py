"""Starts a MySQL server for tests: that of Debian unstable, with all of its libraries, because stable Debian has none."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

from sluiceway.folders import cache_home, file_lock
from sluiceway.stack.process import BackgroundProcess
from support.database import HOST, MYSQL, PASSWORD, USER, DatabaseForTest
from support.database_server import DatabaseServer

PACKAGE = "mysql-server-core"
_SUITE = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} sid main\n"
_READY = "ready"
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")


class MySqlServer(DatabaseServer):
    """A MySQL server with GTIDs that writes a binary log with all of a row's metadata; its user has all privileges."""

    name = "mysql"

    @property
    def first(self) -> DatabaseForTest:
        return self.database("mysql")

    def database(self, name: str) -> DatabaseForTest:
        """Return the database of that name, without creating it."""
        return DatabaseForTest(MYSQL, name, f"jdbc:mysql://{HOST}:{self.port}/{name}", port=self.port)

    def process(self, data: Path) -> BackgroundProcess:
        root = _installed()
        libraries = root / _LIBRARIES
        common = [
            str(libraries / "ld-linux-x86-64.so.2"),
            "--library-path",
            f"{libraries}:{root}/usr/lib/mysql/private",
            str(root / "usr/sbin/mysqld"),
            "--no-defaults",
            f"--user={pwd.getpwuid(os.getuid()).pw_name}",
            f"--datadir={data}",
            f"--lc-messages-dir={root}/usr/share/mysql",
            f"--character-sets-dir={root}/usr/share/mysql/charsets",
            f"--plugin-dir={root}/usr/lib/mysql/plugin",
            "--secure-file-priv=",
        ]
        with (self.folder / "bootstrap.log").open("wb") as output:
            subprocess.run([*common, "--initialize-insecure"], check=True, stdout=output, stderr=output, cwd=self.folder)
        start = self.folder / "start.sql"
        start.write_text(
            f"create user if not exists '{USER}'@'%' identified by '{PASSWORD}';\n"
            f"grant all on *.* to '{USER}'@'%' with grant option;\n"
        )
        command = [
            *common,
            f"--port={self.port}",
            f"--bind-address={HOST}",
            f"--socket={self.folder / 'mysql.sock'}",
            f"--pid-file={self.folder / 'mysql-own.pid'}",
            f"--init-file={start}",
            "--mysqlx=OFF",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=OFF",
            "--sync-binlog=0",
            "--innodb-buffer-pool-size=64M",
            "--log-bin=mysql-bin",
            "--server-id=223344",
            "--binlog-row-metadata=FULL",
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--sql-mode=NO_ENGINE_SUBSTITUTION",
        ]
        return BackgroundProcess(self.name, command, self.folder)


def _installed() -> Path:
    """Return the folder with the unpacked packages. The first call on a machine loads them, 60 MB; this needs no root."""
    folder = cache_home() / "mysql"
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / "lock"):
        if not (folder / _READY).exists():
            _install(folder)
    return folder / "root"


def _install(folder: Path) -> None:
    for each in ("state/lists/partial", "cache/archives/partial"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()  # no package counts as installed, so that all libraries are loaded
    (folder / "sources.list").write_text(_SUITE.format(mirror=_mirror()))
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "APT::Install-Recommends": "false",
    }
    apt = ["apt-get", "-qq", *(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))]
    subprocess.run([*apt, "update"], check=True, timeout=300)
    subprocess.run([*apt, "--yes", "--download-only", "install", PACKAGE], check=True, timeout=300)
    for package in sorted((folder / "cache/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, folder / "root"], check=True)
    (folder / _READY).touch()


def _mirror() -> str:
    """Return the address from which this machine gets Debian's packages."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], check=True, capture_output=True, text=True)
    return next(address for address in listed.stdout.split() if address.rstrip("/").endswith("/debian"))
