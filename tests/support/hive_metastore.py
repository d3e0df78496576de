"""A Hive metastore for tests, from the jars of PySpark, with a Derby database."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from sluiceway.connectors.files.hive.config import HiveOptions
from sluiceway.connectors.files.hive.metastore import connect
from sluiceway.java_runtime import find_java
from sluiceway.stack.ports import free_port
from support.eventually import LIMIT, eventually

_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:{folder}/db;create=true",
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.warehouse.dir": "{folder}/warehouse",
}
_START_SECONDS = 120


class HiveMetastore:
    """The server of one folder. It can be stopped and started again with its tables."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.uri = f"thrift://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = "".join(
            f"<property><name>{name}</name><value>{value.format(folder=self._folder)}</value></property>"
            for name, value in _SETTINGS.items()
        )
        (self._folder / "hive-site.xml").write_text(f"<configuration>{settings}</configuration>")
        jars = Path(pyspark.__file__).parent / "jars"
        command = [
            str(find_java().executable),
            "-Xmx256m",
            "-Dhive.async.log.enabled=false",  # PySpark has no disruptor
            "-cp",
            f"{self._folder}{os.pathsep}{jars}/*",
            "org.apache.hadoop.hive.metastore.HiveMetaStore",
            "-p",
            str(self._port),
        ]
        with (self._folder / "metastore.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        eventually(self._answers, within=_START_SECONDS, what="the Hive metastore")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(LIMIT)
            self._process = None

    def table(self, name: str) -> Any:
        """Return a table of the database ``default``."""
        with connect(HiveOptions(self.uri, "", "default", "")) as metastore:
            return metastore.table(name)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), 2):
                return True
        except OSError:
            return False


@contextmanager
def hive_metastore(folder: Path) -> Iterator[HiveMetastore]:
    """Start a metastore. Skips the test if Thrift is not installed."""
    pytest.importorskip("thrift")
    pytest.importorskip("hive_metastore")
    server = HiveMetastore(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
