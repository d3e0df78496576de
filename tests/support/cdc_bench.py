"""The databases, tables and workers of the benchmark of change data capture."""

from __future__ import annotations

import abc
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import psutil

from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.database import HOST, PASSWORD, USER, DatabaseForTest
from support.driver import write_properties
from support.mariadb import MariaDbServer
from support.peer import rest_answers
from support.postgres import PostgresServer, drop_slots

if TYPE_CHECKING:
    from typing_extensions import Self

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_ROWS_PER_TRANSACTION = 50_000


class Worker:
    """Our standalone worker with its REST API, in a process of its own. Use it as a context manager."""

    def __init__(self, bootstrap: str, folder: Path, properties: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.rest = f"http://{HOST}:{free_port(HOST)}"
        file = folder / "worker.properties"
        worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": _JSON,
            "value.converter": _JSON,
            "offset.storage.file.filename": str(folder / "connect.offsets"),
            "listeners": self.rest,
            **properties,
        }
        write_properties(file, worker)
        self._process = BackgroundProcess("worker", [sys.executable, "-m", "sluiceway.cli.main", "standalone", file], folder)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the worker and its processes."""
        worker = psutil.Process(self._process.status().pid)
        times = [each.cpu_times() for each in (worker, *worker.children(recursive=True))]
        return sum(each.user + each.system for each in times)

    def kill(self) -> None:
        """End the worker and its processes at once."""
        worker = psutil.Process(self._process.status().pid)
        family = [*worker.children(recursive=True), worker]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, 30)

    def __enter__(self) -> Self:
        self._process.start()
        self._process.wait_until(lambda: rest_answers(self.rest), 120)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()


class Source(abc.ABC):
    """A database whose changes are captured. Each table has its own topic, slot or server id, and ten columns."""

    kind: ClassVar[str]
    row: ClassVar[str]
    columns: ClassVar[str]

    @property
    @abc.abstractmethod
    def database(self) -> DatabaseForTest: ...

    @abc.abstractmethod
    def config(self, table: str) -> dict[str, str]:
        """Return the config of a connector of the table."""

    @abc.abstractmethod
    def topic(self, table: str) -> str: ...

    @abc.abstractmethod
    def numbers(self, low: int, high: int) -> str:
        """Return the table of numbers ``n`` from ``low`` to before ``high``, for FROM."""

    def create(self, table: str) -> None:
        self.database.execute(f"create table {table} ({self.columns})")

    def insert(self, table: str, low: int, high: int) -> None:
        """Insert rows by their ids, in large transactions."""
        for begin in range(low, high, _ROWS_PER_TRANSACTION):
            numbers = self.numbers(begin, min(begin + _ROWS_PER_TRANSACTION, high))
            self.database.execute(f"insert into {table} select {self.row} from {numbers}")  # noqa: S608 (our own names)

    def update(self, table: str, low: int, high: int) -> None:
        for begin in range(low, high, _ROWS_PER_TRANSACTION):
            end = min(begin + _ROWS_PER_TRANSACTION, high)
            self.database.execute(f"update {table} set a = a + 1 where id >= {begin} and id < {end}")  # noqa: S608 (our own names)

    def drop(self, table: str) -> None:
        """Drop the table, and what a connector left in the database."""
        self.database.execute(f"drop table {table}")


class PostgresSource(Source):
    kind = "PostgreSQL"
    columns = (
        "id bigint primary key, a int, b bigint, c text, d numeric(12, 2), e timestamp, f timestamptz, g boolean, "
        "h double precision, i varchar(50)"
    )
    row = (
        "n, n % 1000, n * 1000000007, 'the text of row ' || n || ', as long as a note', n % 100000 / 100.0, now()::timestamp, "
        "now(), n % 2 = 0, n / 7.0, 'customer ' || n"
    )

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    @property
    def database(self) -> DatabaseForTest:
        return self._server.first

    def config(self, table: str) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": HOST,
            "database.port": str(self.database.port),
            "database.user": USER,
            "database.password": PASSWORD,
            "database.dbname": self.database.name,
            "topic.prefix": table,
            "plugin.name": "pgoutput",
            "slot.name": table,
            "publication.name": table,
            "publication.autocreate.mode": "filtered",
            "table.include.list": f"public.{table}",
        }

    def topic(self, table: str) -> str:
        return f"{table}.public.{table}"

    def numbers(self, low: int, high: int) -> str:
        return f"generate_series({low}::bigint, {high - 1}) n"

    def drop(self, table: str) -> None:
        drop_slots(self.database, f"slot_name = '{table}'")
        self.database.execute(f"drop publication if exists {table}")
        super().drop(table)


class MariaDbSource(Source):
    kind = "MariaDB"
    columns = (
        "id bigint primary key, a int, b bigint, c text, d decimal(12, 2), e datetime(6), f timestamp(6) null, g boolean, "
        "h double, i varchar(50)"
    )
    row = (
        "seq, seq % 1000, seq * 1000000007, concat('the text of row ', seq, ', as long as a note'), seq % 100000 / 100.0, "
        "now(6), now(6), seq % 2 = 0, seq / 7.0, concat('customer ', seq)"
    )
    _next_server_id = 6000

    def __init__(self, server: MariaDbServer, bootstrap: str) -> None:
        self._server = server
        self._bootstrap = bootstrap
        server.execute("create database bench")

    @property
    def database(self) -> DatabaseForTest:
        return self._server.database("bench")

    def config(self, table: str) -> dict[str, str]:
        MariaDbSource._next_server_id += 1
        return {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.hostname": HOST,
            "database.port": str(self._server.port),
            "database.user": USER,
            "database.password": PASSWORD,
            "database.server.id": str(MariaDbSource._next_server_id),
            "database.include.list": "bench",
            "database.ssl.mode": "disable",
            "topic.prefix": table,
            "table.include.list": f"bench.{table}",
            "schema.history.internal.kafka.bootstrap.servers": self._bootstrap,
            "schema.history.internal.kafka.topic": f"{table}.history",
        }

    def topic(self, table: str) -> str:
        return f"{table}.bench.{table}"

    def numbers(self, low: int, high: int) -> str:
        return f"seq_{low}_to_{high - 1}"
