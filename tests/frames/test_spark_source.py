"""A SparkSource whose driver is killed while it produces: each row is in the topic once, and the offsets are true."""

from __future__ import annotations

import contextlib
import random
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import psutil
import pyarrow
import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sluiceway.herder import Herder
from sluiceway.stack import maven
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from support.clusters.daemons import command_of
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import eventually

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1800)]

SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
ROWS, MORE = 1_000_000, 10
KILLS = 3
_ID = re.compile(rb'"id":(\d+)')


class ParquetFolder:
    """A folder of Parquet files."""

    conf: Mapping[str, str] = {}

    def __init__(self, folder: Path, **options: str) -> None:
        self.config = {"format": "parquet", "path": str(folder), **options}
        self._folder = folder
        folder.mkdir()

    def add(self, first: int, last: int) -> None:
        """Add rows: a file in one step, as Spark does."""
        numbers = range(first, last + 1)
        table = pyarrow.table({"id": list(numbers), "note": ["x" * 100] * len(numbers)})
        pyarrow.parquet.write_table(table, self._folder / f".{first}", row_group_size=10_000)
        (self._folder / f".{first}").rename(self._folder / f"{first}.parquet")


class Table:
    """A table of SQLite."""

    def __init__(self, folder: Path) -> None:
        self.conf = {"spark.jars": ",".join(map(str, maven.resolve([SQLITE_DRIVER])))}
        self._file = f"{folder}.db"
        url = {"option.url": f"jdbc:sqlite:{self._file}", "option.driver": "org.sqlite.JDBC"}
        self.config = {"format": "jdbc", "table": "o", **url}
        with closing(sqlite3.connect(self._file)) as database:
            database.execute("create table o (id integer primary key, note text)")

    def add(self, first: int, last: int) -> None:
        with closing(sqlite3.connect(self._file)) as database, database:
            database.executemany("insert into o values (?, ?)", ((number, "x" * 100) for number in range(first, last + 1)))


SOURCES: Mapping[str, Callable[[Path], ParquetFolder | Table]] = {
    "parquet by pyarrow": ParquetFolder,
    "parquet by spark": lambda folder: ParquetFolder(folder, **{"option.mergeSchema": "true"}),  # options are Spark's
    "table by sqlite3": Table,
}


class Reader:
    """Reads a topic."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True}
        self._consumers = {
            level: Consumer({**settings, "isolation.level": level, "enable.auto.commit": False})
            for level in ("read_committed", "read_uncommitted")
        }

    def has(self, records: int) -> bool:
        return self.written() >= records

    def written(self) -> int:
        """Return how many records were written, also by transactions that are open or were aborted."""
        consumer = self._consumers["read_uncommitted"]
        with contextlib.suppress(KafkaException):  # a topic without a leader yet
            return sum(consumer.get_watermark_offsets(each, timeout=10)[1] for each in self._partitions(consumer))
        return 0

    def wrong(self, rows: int) -> str:
        """Return which ids from 1 to ``rows`` are not in one committed record each, and where all of their records are."""
        committed = self._places("read_committed")
        ids = [id_ for id_ in range(1, rows + 1) if len(committed.get(id_, ())) != 1] + [id_ for id_ in committed if id_ > rows]
        if not ids:
            return ""
        written = self._places("read_uncommitted")
        some = {id_: (committed.get(id_), written.get(id_)) for id_ in ids[:20]}
        return f"{len(ids)} ids; committed and written (partition, offset): {some}"

    def _places(self, level: str) -> dict[int, list[tuple[int | None, int | None]]]:
        """Return partition and offset of each id's records."""
        found: dict[int, list[tuple[int | None, int | None]]] = {}
        consumer = self._consumers[level]
        for partition in self._partitions(consumer):
            consumer.assign([partition])
            at_end = False
            while not at_end:
                for message in consumer.consume(10_000, 10):
                    error = message.error()
                    assert error is None or error.code() == KafkaError._PARTITION_EOF, error
                    at_end = at_end or error is not None
                    for id_ in _ID.findall(message.value() or b"") if error is None else ():
                        found.setdefault(int(id_), []).append((message.partition(), message.offset()))
        return found

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()

    def _partitions(self, consumer: Consumer) -> list[TopicPartition]:
        known = consumer.list_topics(timeout=10).topics.get(self.topic)
        return [TopicPartition(self.topic, number, 0) for number in (known.partitions if known is not None else ())]


@pytest.fixture
def reader(kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[Reader]:
    made = Reader(kafka_bootstrap, unique("rows"))
    yield made
    made.close()


def kill(driver: BackgroundProcess) -> list[psutil.Process]:
    """Kill a driver's JVM and Python process; return its Python workers, which are left alive."""
    jvm = psutil.Process(driver.status().pid)
    below = jvm.children(recursive=True)
    python = next(each for each in below if "driver_app.py" in command_of(each))
    for process in (jvm, python):
        process.kill()
    return [each for each in below if each != python]


def check(reader: Reader, rows: int) -> None:
    """Assert that each row is in the topic once. Brokers show records some time after they have confirmed the commit."""
    with contextlib.suppress(AssertionError):
        eventually(lambda: not reader.wrong(rows))
    assert not reader.wrong(rows)


@pytest.mark.parametrize("kind", SOURCES)
def test_each_row_is_produced_once_although_the_driver_is_killed(
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    reader: Reader,
    chance: random.Random,
    kind: str,
) -> None:
    source = SOURCES[kind](tmp_path / "in")
    source.add(1, ROWS)
    converters = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    settings = {"exactly.once.source.support": "enabled", **converters}
    properties = worker_properties(kafka_bootstrap, unique("source"), **settings)
    worker_file = write_properties(tmp_path / "worker.properties", properties)
    name = unique("source")
    config = {"connector.class": "SparkSource", "topic": reader.topic, **source.config}
    config |= {"incrementing.column.name": "id", "splits": "2", "split.max.rows": "20000", "poll.interval.ms": "300"}
    config |= {"topic.creation.default.partitions": "2", "topic.creation.default.replication.factor": "1"}
    with contextlib.ExitStack() as stack:
        stores = stack.enter_context(open_stores(worker_of(properties)))
        herder = Herder(worker_of(properties), stores.config, stores.status, stores.offsets)
        herder.create(name, config)

        def start(number: int) -> BackgroundProcess:
            driver = submitted_driver(name, worker_file, tmp_path / f"driver{number}", master="local[2]", conf=source.conf)
            stack.callback(driver.stop)
            driver.start()
            return driver

        def offsets() -> list[dict[str, object]]:
            return [dict(offset or {}) for _, offset in herder.offsets(name)]

        workers = []
        for number in range(KILLS):
            driver, before = start(number), reader.written()
            some = before + chance.randrange(1, ROWS // (2 * KILLS))
            eventually(partial(reader.has, some), within=300, what=f"records\n{driver.log_tail(40)}")
            workers += kill(driver)
            assert {"incrementing": ROWS} not in offsets(), "it was killed too late to prove anything"
        driver = start(KILLS)
        eventually(lambda: offsets() == [{"incrementing": ROWS}], within=300, what=f"the end\n{driver.log_tail(40)}")
        check(reader, ROWS)
        eventually(lambda: not any(each.is_running() for each in workers), what="the killed drivers' workers have ended")

        source.add(ROWS + 1, ROWS + MORE)  # the offset is where the rest starts
        eventually(lambda: offsets() == [{"incrementing": ROWS + MORE}], within=300, what=f"more\n{driver.log_tail(40)}")
        check(reader, ROWS + MORE)
