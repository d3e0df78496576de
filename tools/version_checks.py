"""Tries an installed Sluiceway with what it was installed beside, and prints a JSON line for each check.

    PYTHON tools/version_checks.py FOLDER [--checks file,jdbc,parquet,spark,cdc,airflow]
        [--postgresql HOST:PORT:USER:PASSWORD] [--bootstrap HOST:PORT]

Without ``--bootstrap`` it starts a broker. Runs with the Python of the environment that it tries, and needs nothing of this
repository. ``tools/run_matrix.py`` starts it for each cell, ``tools/check-release`` for the wheel that is to be published.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import pkgutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port

ROWS = 500
SECONDS = 300.0  # for what takes a few on an idle machine
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"

#: Topics of this run: another one may use the same broker.
LINES, ORDERS = f"lines-{os.getpid()}", f"shop{os.getpid()}-orders"

#: Packages that only some plugins need; a module that needs one may refuse to be imported without it.
_OPTIONAL = frozenset(
    {"adlfs", "airflow", "croniter", "deltalake", "dlt", "fastavro", "fsspec", "gcsfs", "hdfs_native", "hive_metastore", "numpy"}
    | {"opentelemetry", "pandas", "pendulum", "psycopg", "pyarrow", "pyiceberg", "pymysql", "pytest", "s3fs", "sqlalchemy"}
    | {"botocore", "nats", "nkeys", "paho", "paramiko", "msgspec", "pika", "redis", "thrift", "thriftpy2", "venv_pack"}
)
_AIRFLOW = ("sluiceway.dags", "sluiceway.operators", "sluiceway.provider", "sluiceway.sensors")


class Failed(Exception):  # noqa: N818 (a check's answer)
    """A check did not hold; the message says what was seen."""


class Standalone:
    """``sluiceway standalone`` with connectors that are created by REST, so that each can be refused by itself."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder, self.bootstrap = folder, bootstrap
        self.log = folder / "standalone.log"
        self._port = free_port("127.0.0.1")
        worker = folder / "worker.properties"
        worker.write_text(
            f"bootstrap.servers={bootstrap}\nkey.converter={JSON}\nvalue.converter={JSON}\noffset.flush.interval.ms=1000\n"
            f"offset.storage.file.filename={folder}/offsets\nlisteners=http://127.0.0.1:{self._port}\n"
        )
        command = [sys.executable, "-m", "sluiceway.cli.main", "standalone", str(worker)]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True)
        self._until(self._answers, "the REST API answers")

    def run(self, name: str, config: Mapping[str, str], done: Callable[[], bool]) -> None:
        """Create a connector and wait until it has done its work. Raises Failed with what its status or the log says."""
        try:
            request("PUT", f"{self._url}/connectors/{name}/config", config)
        except urllib.error.HTTPError as error:
            raise Failed(f"refused: {json.loads(error.read())['message']}") from error
        self._until(lambda: done() or self._failure(name), f"{name} has moved its records")
        if failure := self._failure(name):
            raise Failed(failure)

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _answers(self) -> bool:
        try:
            request("GET", self._url)
        except OSError:
            return False
        return True

    def _failure(self, name: str) -> str:
        status = request("GET", f"{self._url}/connectors/{name}/status")
        found = [each for each in (status["connector"], *status["tasks"]) if each["state"] == "FAILED"]
        return next((str(each.get("trace", "")).strip().splitlines()[-1] for each in found), "")

    def _until(self, condition: Callable[[], object], what: str) -> None:
        def alive() -> object:
            if self._process.poll() is not None:
                raise Failed(f"ended: {last_line(self.log)}")
            return condition()

        wait(alive, what, lambda: last_line(self.log))


def wait(condition: Callable[[], object], what: str, seen: Callable[[], object] = str) -> None:
    """Ask a few times a second until a condition is true. Raises Failed after a time."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"not within {SECONDS:g} s: {what}; last seen: {seen()}")
        time.sleep(0.5)


def request(method: str, url: str, body: object = None) -> Any:
    """Send JSON, return JSON."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:  # noqa: S310
        content = answer.read()
        return json.loads(content) if content else None


def last_line(file: Path) -> str:
    lines = file.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def imports() -> None:
    """Import every module of the package. One may refuse with a sentence, or lack a package that is optional.

    Without Airflow, its side of the package is left out.
    """
    import sluiceway
    from sluiceway.errors import MissingToolError

    failed = {}
    left_out = () if importlib.util.find_spec("airflow") else _AIRFLOW
    for module in pkgutil.walk_packages(sluiceway.__path__, "sluiceway.", onerror=lambda name: None):
        if module.name.startswith(left_out):
            continue
        try:
            importlib.import_module(module.name)
        except MissingToolError:
            continue
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in _OPTIONAL:
                failed[module.name] = repr(error)
        except Exception as error:  # noqa: BLE001 (whatever a module raises is what is looked for)
            failed[module.name] = repr(error)
    if failed:
        raise Failed("; ".join(f"{name}: {why}" for name, why in sorted(failed.items())[:3]) + f" ({len(failed)} modules)")


def check_file(standalone: Standalone) -> None:
    """The quickstart: a file through Kafka to a file."""
    source, sink = standalone.folder / "in.txt", standalone.folder / "out.txt"
    source.write_text("".join(f"line {n}\n" for n in range(ROWS)))
    created = {"connector.class": "FileStreamSource", "file": str(source), "topic": LINES, "value.converter": STRING}
    standalone.run("file-source", created, lambda: True)
    written = {"connector.class": "FileStreamSink", "topics": LINES, "file": str(sink), "value.converter": STRING}
    standalone.run("file-sink", written, lambda: sink.is_file() and sink.read_text() == source.read_text())


def check_jdbc(standalone: Standalone) -> None:
    """A table of SQLite into a topic, from which the sinks read."""
    file = standalone.folder / "shop.db"
    with sqlite3.connect(file) as database:
        database.execute("create table orders (id integer primary key, city text, price real)")
        database.executemany("insert into orders (city, price) values (?, ?)", [(f"city {n % 7}", n / 2) for n in range(ROWS)])
    config = {
        "connector.class": "JdbcSource",
        "connection.url": f"jdbc:sqlite:{file}",
        "table.whitelist": "orders",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": ORDERS.removesuffix("orders"),
    }
    standalone.run("jdbc", config, lambda: records(standalone.bootstrap, ORDERS) >= ROWS)


def check_parquet(standalone: Standalone) -> None:
    """The table's topic into Parquet files."""
    _sink(standalone, "parquet", {"connector.class": "ParquetSink", "flush.size": "100", "rotate.schedule.interval.ms": "1000"})


def check_spark(standalone: Standalone) -> None:
    """The table's topic through a DataFrame into Parquet files."""
    _sink(standalone, "spark", {"connector.class": "SparkSink", "format": "parquet", "rotate.interval.ms": "500"})


def _sink(standalone: Standalone, name: str, config: Mapping[str, str]) -> None:
    import pyarrow.parquet

    folder = standalone.folder / name

    def rows() -> int:
        files = [each for each in folder.rglob("*.parquet") if "_temporary" not in each.parts and not each.name.startswith(".")]
        return sum(int(pyarrow.parquet.read_metadata(each).num_rows) for each in files)

    produce_orders(standalone.bootstrap)
    standalone.run(name, {**config, "topics": ORDERS, "path": str(folder)}, lambda: rows() >= ROWS)


def produce_orders(bootstrap: str) -> None:
    """Produce what the JDBC source would, unless it has."""
    from confluent_kafka import Producer

    if records(bootstrap, ORDERS):
        return
    fields = [{"field": name, "type": kind} for name, kind in (("id", "int64"), ("city", "string"), ("price", "double"))]
    schema = {"type": "struct", "fields": fields}
    producer = Producer({"bootstrap.servers": bootstrap})
    for n in range(ROWS):
        payload = {"id": n, "city": f"city {n % 7}", "price": n / 2}
        producer.produce(ORDERS, json.dumps({"schema": schema, "payload": payload}), partition=0)
    producer.flush()


def check_cdc(standalone: Standalone, postgresql: str) -> None:
    """A table's rows and its later changes from PostgreSQL's log."""
    import psycopg

    host, port, user, password = postgresql.split(":")
    name = f"matrix{os.getpid()}"
    server = f"host={host} port={port} user={user} password={password}"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute(f"create database {name}")  # type: ignore[call-overload,unused-ignore]
    with psycopg.connect(f"{server} dbname={name}", autocommit=True) as session:
        session.execute("create table orders (id int primary key, city text)")
        session.execute("insert into orders select n, 'city ' || n from generate_series(1, 100) n")
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            **{"database.hostname": host, "database.port": port, "database.user": user, "database.password": password},
            **{"database.dbname": name, "topic.prefix": name, "slot.name": name, "plugin.name": "pgoutput"},
        }
        topic = f"{name}.public.orders"
        standalone.run("cdc", config, lambda: records(standalone.bootstrap, topic) >= 100)
        session.execute("update orders set city = 'elsewhere' where id <= 10")
        standalone.run("cdc", config, lambda: records(standalone.bootstrap, topic) >= 110)


def records(bootstrap: str, topic: str) -> int:
    """Return the number of records in a topic's first partition."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "version-checks", "log_level": 0})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
    except KafkaException:
        return 0
    finally:
        consumer.close()


def check_airflow(folder: Path, bootstrap: str) -> None:
    """A connector as a DAG: RUNNING, paused, and resumed, while a file grows."""
    worker, source = folder / "airflow.properties", folder / "log.txt"
    alone = "".join(f"{each}.storage.replication.factor=1\n" for each in ("config", "offset", "status"))
    worker.write_text(f"bootstrap.servers={bootstrap}\nkey.converter={STRING}\nvalue.converter={STRING}\n{alone}")
    source.write_text("first\n")
    command = [sys.executable, "-m", "sluiceway.cli.main"]
    given = {**os.environ, "SLUICEWAY_HOME": str(folder / "stack"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    log = folder / "up.log"
    try:
        with log.open("w") as output:
            up = subprocess.run([*command, "up", str(worker)], env=given, cwd=folder, stdout=output, stderr=output, check=False)
        if up.returncode:
            raise Failed(f"sluiceway up: {last_line(log)}")
        rest = json.loads((folder / "stack" / "stack.json").read_text())["rest"]
        config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "log"}
        request("PUT", f"{rest}/connectors/log/config", config)
        wait(lambda: state(rest) == ["RUNNING", "RUNNING"], "the DAG's connector is RUNNING", lambda: state(rest))
        wait(lambda: records(bootstrap, "log") == 1, "the first line arrives")
        request("PUT", f"{rest}/connectors/log/pause")
        wait(lambda: "RUNNING" not in state(rest), "the connector is paused", lambda: state(rest))
        with source.open("a") as more:
            more.write("second\n")
        request("PUT", f"{rest}/connectors/log/resume")
        wait(lambda: records(bootstrap, "log") == 2, "the second line arrives after the pause", lambda: state(rest))
    finally:
        subprocess.run([*command, "down"], env=given, cwd=folder, capture_output=True, check=False)


def state(rest: str) -> list[str]:
    """Return the states of the connector and its tasks."""
    try:
        status = request("GET", f"{rest}/connectors/log/status")
    except urllib.error.HTTPError:
        return []
    return [each["state"] for each in (status["connector"], *status["tasks"])]


def main(arguments: Sequence[str]) -> int:
    """Run the checks and return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checks", default="imports,file")
    parser.add_argument("--postgresql", default="", metavar="HOST:PORT:USER:PASSWORD")
    parser.add_argument("--bootstrap", default="", metavar="HOST:PORT")
    options = parser.parse_args(arguments)
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = options.checks.split(",")
    failed = [report("imports", imports)] if "imports" in wanted else []
    if wanted == ["imports"]:
        return int(any(failed))
    with _broker(folder, options.bootstrap) as bootstrap:
        failed += _standalone_checks(folder, bootstrap, wanted, options.postgresql)
        if "airflow" in wanted:
            failed.append(report("airflow", lambda: check_airflow(folder, bootstrap)))
    return int(any(failed))


@contextmanager
def _broker(folder: Path, bootstrap: str) -> Iterator[str]:
    if bootstrap:
        yield bootstrap
        return
    broker = EmbeddedBroker(folder / "broker")
    try:
        yield broker.start(timeout=SECONDS)
    finally:
        broker.stop()


def _standalone_checks(folder: Path, bootstrap: str, wanted: Sequence[str], postgresql: str) -> list[bool]:
    checks: dict[str, Callable[[Standalone], None]] = {
        "file": check_file,
        "jdbc": check_jdbc,
        "parquet": check_parquet,
        "spark": check_spark,
        "cdc": lambda standalone: check_cdc(standalone, postgresql),
    }
    chosen = {name: check for name, check in checks.items() if name in wanted}
    try:
        standalone = Standalone(folder, bootstrap) if chosen else None
    except Failed as error:
        return [answer(name, str(error)) for name in chosen]
    if standalone is None:
        return []
    try:
        return [report(name, lambda check=check: check(standalone)) for name, check in chosen.items()]  # type: ignore[misc]
    finally:
        standalone.close()


def report(name: str, check: Callable[[], None]) -> bool:
    """Run a check, print its answer, and return whether it failed."""
    began = time.monotonic()
    try:
        check()
    except Failed as error:
        return answer(name, str(error), began)
    except Exception as error:  # noqa: BLE001 (the cell's answer is what went wrong)
        return answer(name, f"{type(error).__name__}: {error}", began)
    return answer(name, "", began)


def answer(name: str, problem: str, began: float | None = None) -> bool:
    """Print a check's answer, and return whether it is a failure."""
    seconds = 0.0 if began is None else round(time.monotonic() - began, 1)
    sys.stdout.write(json.dumps({"check": name, "problem": problem, "seconds": seconds}) + "\n")
    sys.stdout.flush()
    return bool(problem)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
