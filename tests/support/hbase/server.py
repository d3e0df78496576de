"""Starts and stops an HBase of one node and its Thrift 2 server, from the jars of Maven Central."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from sluiceway.connectors.hbase.client import Gateways, HBaseClient, Row, column_of
from sluiceway.stack import maven
from sluiceway.stack.ports import free_port
from support.clusters.daemons import HOST, Daemon
from support.clusters.hadoop import write_conf
from support.database_server import LocalServer
from support.eventually import LIMIT
from support.guard import Guard, stop

# The newest version of which Maven Central has a Thrift server; that one is for Hadoop 2, and needs only its own library of it.
SERVER = "org.apache.hbase:hbase-server:2.6.1-hadoop3"
THRIFT = "org.apache.hbase:hbase-thrift:2.6.1"
_OF_SERVER = (
    *("hbase-annotations", "hbase-client", "hbase-common", "hbase-hadoop-compat", "hbase-hadoop2-compat", "hbase-http"),
    *("hbase-logging", "hbase-mapreduce", "hbase-metrics", "hbase-metrics-api", "hbase-protocol", "hbase-protocol-shaded"),
    *("hbase-server", "hbase-testing-util", "hbase-zookeeper"),
)
_THRIFT = "hbase-thrift"
_PROGRAM = Path(__file__).with_name("HBaseNode.java")


def _jars() -> list[Path]:
    server = maven.resolve((SERVER,), title="HBase (120 MB)")
    left_out = ["org.apache.hadoop:*", *(f"org.apache.hbase:{name}" for name in _OF_SERVER)]
    thrift = maven.resolve((THRIFT,), exclude=left_out, title="HBase's Thrift server")
    known = {jar.parent.parent.name for jar in server}
    return [*server, *(jar for jar in thrift if jar.parent.parent.name not in known)]


def _end(folder: str | Path) -> None:
    """Stop the servers of a folder, from any process, and delete the folder."""
    if Path(folder).exists():
        stop(folder, _THRIFT, HBaseServer.name)
        shutil.rmtree(folder, ignore_errors=True)


class HBaseServer(LocalServer):
    """ZooKeeper, master and region server in one JVM, and the Thrift server in another one. A stop keeps the data."""

    name = "hbase"

    def __init__(self) -> None:
        super().__init__()
        self._guard.close()
        self._guard = Guard(_end, self.folder)
        self._admin, self.port = free_port(HOST), free_port(HOST)
        self.gateways = Gateways(((HOST, self.port),))
        zookeeper, master, region_server = (free_port(HOST) for _ in range(3))
        site = {
            "hbase.rootdir": f"file://{self.folder}/data",
            "hbase.tmp.dir": self.folder / "tmp",
            "hbase.zookeeper.quorum": HOST,
            "hbase.zookeeper.property.clientPort": zookeeper,
            "hbase.zookeeper.property.dataDir": self.folder / "zookeeper",
            "hbase.cluster.distributed": "false",
            "hbase.unsafe.stream.capability.enforce": "false",
            "hbase.master.hostname": "localhost",
            "hbase.regionserver.hostname": "localhost",
            "hbase.master.port": master,
            "hbase.master.info.port": -1,
            "hbase.regionserver.port": region_server,
            "hbase.regionserver.info.port": -1,
            "hbase.localcluster.assign.random.ports": "false",
            "hbase.regionserver.handler.count": 10,
            "hbase.thrift.info.port": -1,
            "hbase.procedure.store.wal.use.hsync": "false",
            "hbase.wal.provider": "filesystem",
            "hbase.master.wait.on.regionservers.mintostart": 1,
        }
        conf = write_conf(self.folder / "conf", hbase_site=site)
        classpath = os.pathsep.join((str(conf), maven.classpath(_jars())))
        self.node = Daemon(self.name, classpath, str(_PROGRAM), [str(self._admin)], self.folder, heap="768m")
        main = "org.apache.hadoop.hbase.thrift2.ThriftServer"
        arguments = ["start", "--port", str(self.port), "--bind", HOST]
        self.thrift = Daemon(_THRIFT, classpath, main, arguments, self.folder)

    def start(self) -> None:
        self.node.start()
        self.node.wait_until(lambda: self._ask("ready") == "yes", LIMIT)
        self.thrift.start()
        self.thrift.wait_until(self._answers, LIMIT)

    def close(self) -> None:
        _end(self.folder)
        self._guard.close()

    def do(self, command: str, *arguments: str) -> None:
        """Run one of HBaseNode's commands."""
        said = self._ask(command, *arguments)
        assert said == "done", f"{command} {arguments}: {said}"

    def create(self, table: str, *families: str, splits: Sequence[bytes] = (), **settings: Any) -> str:
        with self.client() as client:
            client.create_table(table, families or ("cf",), splits, **settings)
        return table

    def rows(self, table: str) -> dict[bytes, dict[str, bytes]]:
        """Return the newest cells of all rows, by ``family:qualifier``."""
        with self.client() as client:
            found: list[Row] = client.scan(table, most=10_000_000)
        return {row.key: {column_of(cell): cell.value for cell in row.cells} for row in found}

    @contextmanager
    def client(self) -> Iterator[HBaseClient]:
        client = HBaseClient(self.gateways)
        try:
            yield client
        finally:
            client.close()

    def _ask(self, command: str, *arguments: str) -> str:
        query = ",".join(quote(each, safe="") for each in arguments)
        try:
            with urlopen(f"http://{HOST}:{self._admin}/{command}?{query}", timeout=LIMIT) as answer:
                return str(answer.read().decode())
        except HTTPError as error:
            return error.read().decode(errors="replace")
        except OSError:
            return ""

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                client.table_exists("any")
            return True
        except OSError:
            return False
