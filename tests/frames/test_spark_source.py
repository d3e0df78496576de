"""A SparkSource whose driver is killed while it produces: each row is in the topic once, and the offsets are true."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pyarrow
import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sluiceway.herder import Herder
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from support.clusters.daemons import command_of
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import eventually

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1800)]

ROWS, MORE = 1_000_000, 10
KILLS = 3
_ID = re.compile(rb'"id":(\d+)')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    write_rows(made, 1, ROWS)
    return made


def write_rows(folder: Path, first: int, last: int) -> None:
    """Write a Parquet file in one step, as Spark does."""
    numbers = range(first, last + 1)
    table = pyarrow.table({"id": list(numbers), "note": ["x" * 100] * len(numbers)})
    pyarrow.parquet.write_table(table, folder / f".{first}", row_group_size=10_000)
    (folder / f".{first}").rename(folder / f"{first}.parquet")


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


@pytest.mark.parametrize("options", [{}, {"option.mergeSchema": "true"}], ids=["pyarrow", "spark"])
def test_each_row_is_produced_once_although_the_driver_is_killed(
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    folder: Path,
    reader: Reader,
    chance: random.Random,
    options: dict[str, str],
) -> None:
    """Options are Spark's, so it reads the files itself then."""
    converters = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    settings = {"exactly.once.source.support": "enabled", **converters}
    properties = worker_properties(kafka_bootstrap, unique("source"), **settings)
    worker_file = write_properties(tmp_path / "worker.properties", properties)
    name = unique("source")
    config = {"connector.class": "SparkSource", "format": "parquet", "path": str(folder), "topic": reader.topic, **options}
    config |= {"incrementing.column.name": "id", "splits": "2", "split.max.rows": "20000", "poll.interval.ms": "300"}
    config |= {"topic.creation.default.partitions": "2", "topic.creation.default.replication.factor": "1"}
    with contextlib.ExitStack() as stack:
        stores = stack.enter_context(open_stores(worker_of(properties)))
        herder = Herder(worker_of(properties), stores.config, stores.status, stores.offsets)
        herder.create(name, config)

        def start(number: int) -> BackgroundProcess:
            driver = submitted_driver(name, worker_file, tmp_path / f"driver{number}", master="local[2]")
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

        write_rows(folder, ROWS + 1, ROWS + MORE)  # the offset is where the rest starts
        eventually(lambda: offsets() == [{"incrementing": ROWS + MORE}], within=300, what=f"more\n{driver.log_tail(40)}")
        check(reader, ROWS + MORE)
