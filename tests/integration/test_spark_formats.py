"""SparkSink and SparkSource on a driver with a local Spark master: files and tables by DataFrames."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, TopicPartition
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluiceway.api.data_frames import Offsets
from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.connectors.spark.source import SparkSourceTask
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    Struct,
    Type,
    date_schema,
    decimal_schema,
    timestamp_schema,
)
from sluiceway.errors import ConnectError
from sluiceway.spark.data_source import register
from sluiceway.spark.rounds.source_task import SourceRoundsTask
from sluiceway.spark.session import local_context
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import TaskId
from sluiceway.testing import MemorySourceContext
from support.eventually import eventually
from support.file_sinks import file_sink, record
from support.kafka import Kafka, worker_for
from support.spark_application import Application

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
_SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [{"field": "id", "type": "int64", "optional": False}, {"field": "city", "type": "string", "optional": True}],
}


@pytest.fixture(scope="module")
def context() -> Iterator[SparkContext]:
    context: SparkContext = local_context("test-spark-formats")
    yield context
    context.stop()


New = Callable[..., Application]


@pytest.fixture
def application(context: SparkContext, kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[New]:
    """Create applications of one connector, which leave at the end of the test."""
    with contextlib.ExitStack() as stack:

        def new(**settings: str) -> Application:
            defaults = {"key.converter": STRING, "value.converter": JSON, "offset.flush.interval.ms": "500"}
            worker = worker_for(kafka_bootstrap, unique, **{**defaults, **settings})
            stores = stack.enter_context(open_stores(worker))
            made = Application(unique("frames"), worker, stores, context)
            stack.callback(made.leave)
            return made

        yield new


def envelope(number: int) -> bytes:
    return json.dumps({"schema": _SCHEMA, "payload": {"id": number, "city": f"c{number % 7}"}}).encode()


def ids(folder: Path) -> list[int]:
    # os.walk passes over a folder that Spark deletes meanwhile; rglob would not.
    found = ((Path(root), name) for root, _, names in os.walk(folder) for name in names)
    files = [str(path / name) for path, name in found if name.endswith(".parquet") and "_temporary" not in path.parts]
    rows: list[dict[str, Any]] = pyarrow.dataset.dataset(files).to_table().to_pylist() if files else []
    return sorted(row["id"] for row in rows)


def test_a_sink_writes_rounds_with_a_spark_format_and_commits_their_offsets(
    application: New, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = kafka.create(unique("orders"), 2)
    for partition in range(2):
        kafka.produce(topic, *(envelope(partition + 2 * n) for n in range(500)), partition=partition)
    kafka.produce(topic, b"no json", partition=1)
    out, dlq = tmp_path / "out", unique("dlq")
    config = {"connector.class": "SparkSink", "topics": topic, "format": "parquet", "path": str(out), "partition.by": "city"}
    config |= {"value.converter": JSON, "rotate.interval.ms": "500", "flush.size": "400", "errors.tolerance": "all"}
    config |= {"errors.deadletterqueue.topic.name": dlq, "errors.deadletterqueue.topic.replication.factor": "1"}
    app = application()
    app.start(config)
    eventually(lambda: ids(out) == list(range(1000)), what=f"the rows; {app.traces()}")
    group = f"connect-{app.name}"
    eventually(lambda: kafka.committed(group) == {(topic, 0): 500, (topic, 1): 501}, what="the group's offsets")
    assert len(kafka.read(dlq, 1)) == 1
    assert {path.name.partition("=")[0] for path in out.iterdir() if path.is_dir()} == {"city"}

    app.herder.pause(app.name)
    app.eventually("PAUSED")
    kafka.produce(topic, envelope(1000))
    app.herder.resume(app.name)
    eventually(lambda: ids(out) == list(range(1001)), what="the row that was produced while the sink was paused")


def test_a_source_reads_a_column_in_splits_exactly_once_with_true_offsets(
    application: New, context: SparkContext, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    folder, topic = tmp_path / "in", unique("rows")
    write_rows(folder, 1, 1000)
    config = {"connector.class": "SparkSource", "format": "parquet", "path": str(folder), "topic": topic}
    config |= {"incrementing.column.name": "id", "splits": "3", "split.max.rows": "250", "poll.interval.ms": "300"}
    app = application(**{"exactly.once.source.support": "enabled"})
    app.start(config)
    eventually(lambda: committed_ids(kafka, topic) == list(range(1, 1001)), what=f"the rows; {app.traces()}")
    eventually(lambda: app.offsets() == [({"path": str(folder)}, {"incrementing": 1000})], what="the offsets")
    write_rows(folder, 1001, 1005)
    eventually(lambda: committed_ids(kafka, topic) == list(range(1, 1006)), what="the new rows")

    app.herder.stop(app.name)
    eventually(lambda: app.herder.status(app.name).connector.state.value == "STOPPED", what="the stop")
    app.herder.alter_offsets(app.name, [({"path": str(folder)}, {"incrementing": 995})])
    app.herder.resume(app.name)
    expected = sorted([*range(1, 1006), *range(996, 1006)])
    eventually(lambda: committed_ids(kafka, topic) == expected, what="ten rows again")


def python_workers() -> list[psutil.Process]:
    """Return the processes in which Spark runs Python functions now: children of its daemon."""
    daemons, below = set(), psutil.Process().children(recursive=True)
    for each in below:
        with contextlib.suppress(psutil.Error):  # it has just ended
            if "local_daemon" in " ".join(each.cmdline()):
                daemons.add(each.pid)
    return [each for each in below if each.is_running() and each.ppid() in daemons]


@pytest.mark.long
def test_a_source_reads_each_file_of_a_folder_once(
    application: New, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    folder, topic = tmp_path / "inbox", unique("files")
    write_rows(folder, 1, 50)
    write_rows(folder, 51, 100)
    config = {"connector.class": "SparkSource", "format": "parquet", "path": str(folder), "topic": topic}
    app = application()
    app.start({**config, "poll.interval.ms": "300"})
    eventually(lambda: committed_ids(kafka, topic) == list(range(1, 101)), what=f"the rows; {app.traces()}")
    write_rows(folder, 101, 110)
    eventually(lambda: committed_ids(kafka, topic) == list(range(1, 111)), what="the new file's rows")
    assert len(app.offsets()) == 3


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_run_reads_the_rows_whose_timestamps_are_in_its_interval(context: SparkContext, tmp_path: Path, kind: str) -> None:
    spark, hour, first = SparkSession(context), 3_600_000_000, 1_767_225_600_000_000  # microseconds
    starts = [first + number * hour for number in range(4)]
    moments = [moment for start in starts[:3] for moment in (start - 1, start, start + hour // 2)]
    rows = spark.createDataFrame(list(enumerate(moments)), "id long, micros long")
    rows.selectExpr("id", "timestamp_micros(micros) as at").write.format(kind).save(f"{tmp_path}/rows")
    config = {"format": kind, "path": f"{tmp_path}/rows", "topic": "t", "timestamp.column.name": "at"}
    for (start, end), expected in zip(pairwise(starts), ([1, 2, 3], [4, 5, 6], [7, 8]), strict=True):
        task = SparkSourceTask()
        task.spark = spark
        task.initialize(MemorySourceContext())
        task.start({**config, **IntervalRun("live", Interval(start // 1000, end // 1000), 1).keys()})
        made = task.next_round()
        assert made is not None
        assert sorted(row["id"] for split in made.splits for row in split.frame.collect()) == expected
    task.start({**config, **IntervalRun("live", Interval(0, 3_600_000), 1).keys()})
    assert task.next_round() is None, "an hour without rows"


@pytest.mark.parametrize("way", [{"format": "csv"}, {"format": "csv", "timestamp.column.name": "at"}, {"format": "image"}])
def test_a_path_that_does_not_exist_is_named_with_what_to_do(context: SparkContext, tmp_path: Path, way: dict[str, str]) -> None:
    task, config = SparkSourceTask(), {"path": f"{tmp_path}/in", "topic": "t", **way}
    task.spark = SparkSession(context)
    task.initialize(MemorySourceContext())
    task.start(config)
    with pytest.raises(ConnectError, match=rf"The path {tmp_path}/in does not exist.*Check 'path', or create the folder"):
        task.next_round()
    if way == {"format": "csv"}:
        (tmp_path / "in").mkdir()
        assert task.next_round() is None, "files may arrive later"


@pytest.mark.long
def test_files_of_the_parquet_sink_come_back_as_the_records_they_were(
    application: New, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    inner = Schema.struct({"x": INT64_SCHEMA, "price": decimal_schema(3)}, optional=True)
    types: dict[str, tuple[Schema, Any]] = {
        "i8": (Schema(Type.INT8), -1),
        "i16": (Schema(Type.INT16), 2),
        "i32": (INT32_SCHEMA, 3),
        "i64": (INT64_SCHEMA, 2**62),
        "f32": (Schema(Type.FLOAT32), 1.5),
        "f64": (Schema(Type.FLOAT64), 0.1),
        "flag": (Schema(Type.BOOLEAN), True),
        "text": (Schema(Type.STRING), "ä"),
        "data": (Schema(Type.BYTES), b"\x00\xff"),
        "number": (decimal_schema(2), Decimal("-12345678901234567890.12")),
        "day": (date_schema(), dt.date(1900, 2, 28)),
        "at": (timestamp_schema(), dt.datetime(1969, 12, 31, 23, 59, 59, 999000, dt.timezone.utc)),
        "items": (Schema.array(INT32_SCHEMA), [1]),
        "scores": (Schema.map(Schema(Type.STRING), INT32_SCHEMA), {"a": 1}),
        "inner": (inner, Struct(inner, {"x": 1, "price": Decimal("0.001")})),
        "inners": (Schema.array(inner), [Struct(inner, {"x": 2, "price": Decimal("99.999")}), None]),
        "nothing": (inner, None),
    }
    old = {name: kind for name, (kind, _) in types.items()}
    new = {**old, "more": OPTIONAL_STRING_SCHEMA}
    values = {name: value for name, (_, value) in types.items()}
    rows = [Struct(Schema.struct(old), values), Struct(Schema.struct(new), {**values, "i8": 1, "more": "x"})]
    with file_sink(tmp_path, behavior_on_null_values="ignore", reports=False) as sink:
        sink.put([record(0, rows[0], rows[0].schema), record(1), record(2, rows[1], rows[1].schema)])
        sink.end()
    topic, folder = kafka.create(unique("back")), f"{tmp_path}/topics/orders/partition=0"
    app = application()
    app.start({"connector.class": "SparkSource", "format": "parquet", "path": folder, "topic": topic})
    eventually(lambda: kafka.end(topic) == 2, what=f"the records; {app.traces()}")
    found = [JsonConverter().to_connect_data(topic, each.value())[1] for each in kafka.read(topic, 2)]
    found.sort(key=lambda row: int(row["i8"]))
    assert [plain(row) for row in found] == [{**plain(rows[0]), "more": None}, plain(rows[1])]
    first = found[0].schema
    assert {name: first.field(name).schema.type for name in old} == {name: kind.type for name, kind in old.items()}
    logical = {"number", "day", "at"}
    assert {name: first.field(name).schema.name for name in logical} == {name: old[name].name for name in logical}


def plain(value: Any) -> Any:
    """Return a value with a mapping for each struct."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def test_a_format_is_read_and_written_where_its_options_say(
    application: New, context: SparkContext, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """As those of packages: Spark knows the format of databases by this name, too."""
    spark = SparkSession.builder.getOrCreate()
    topic, url = unique("people"), f"jdbc:derby:{tmp_path}/db;create=true"
    spark.range(20).selectExpr("id as ID").write.format("jdbc").option("url", url).option("dbtable", "PEOPLE").save()
    place = {"format": "org.apache.spark.sql.jdbc", "option.url": url}
    source = {**place, "connector.class": "SparkSource", "option.dbtable": "PEOPLE", "topic": topic}
    application().start({**source, "incrementing.column.name": "ID"})
    sink = {**place, "connector.class": "SparkSink", "option.dbtable": "COPY", "topics": topic, "rotate.interval.ms": "500"}
    application().start(sink)

    def copied() -> list[int]:
        try:
            return sorted(
                row.ID for row in spark.read.format("jdbc").option("url", url).option("dbtable", "COPY").load().collect()
            )
        except Py4JJavaError:  # the sink has not created it yet
            return []

    eventually(lambda: copied() == list(range(20)), what="the copy")


@pytest.mark.long
def test_a_database_table_is_copied_to_another_by_jdbc(
    application: New, context: SparkContext, unique: Callable[[str], str], tmp_path: Path
) -> None:
    spark = SparkSession.builder.getOrCreate()
    topic, url = unique("people"), f"jdbc:derby:{tmp_path}/db;create=true"
    people = spark.range(1, 301).selectExpr("id as ID", "concat('name ', id) as NAME", "id / 4.0D as SHARE")
    people.write.format("jdbc").option("url", url).option("dbtable", "PEOPLE").save()
    jdbc = {"format": "jdbc", "option.url": url}
    source = {**jdbc, "connector.class": "SparkSource", "table": "PEOPLE", "topic": topic, "incrementing.column.name": "ID"}
    application().start({**source, "splits": "2", "split.max.rows": "100"})
    sink = {**jdbc, "connector.class": "SparkSink", "table": "COPY", "topics": topic, "rotate.interval.ms": "500"}
    application().start(sink)

    def copied() -> bool:
        try:
            copy = spark.read.format("jdbc").option("url", url).option("dbtable", "COPY").load()
            return sorted(copy.collect()) == sorted(people.collect())
        except Py4JJavaError:  # the sink has not created it yet
            return False

    eventually(copied, what="the copy")


@pytest.mark.long
def test_connectors_are_sources_and_sinks_of_a_pyspark_job(context: SparkContext, tmp_path: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    source, copy = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("a\nb\n")
    options = {"connector.class": "FileStreamSource", "file": str(source), "topic": "lines"}
    options |= {"key.converter": STRING, "value.converter": STRING}
    lines = spark.readStream.format("sluiceway").options(**options).load().selectExpr("cast(value as string) as line")
    # FileStreamSink writes a struct as Java prints it
    writer = lines.writeStream.format("sluiceway").option("connector.class", "FileStreamSink").option("file", str(copy))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        eventually(lambda: copy.exists() and copy.read_text() == "Struct{line=a}\nStruct{line=b}\n", what="the lines")
        with source.open("a") as file:
            file.write("c\n")
        eventually(lambda: copy.read_text().endswith("Struct{line=c}\n"), what="the new line")
    finally:
        query.stop()


def write_rows(folder: Path, first: int, last: int) -> None:
    """Write a Parquet file in one step, as Spark does."""
    numbers = list(range(first, last + 1))
    table = pyarrow.table({"id": numbers, "city": [f"c{number % 7}" for number in numbers]})
    folder.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(table, folder / f".{first}")
    (folder / f".{first}").rename(folder / f"{first}.parquet")


def committed_ids(kafka: Kafka, topic: str) -> list[int]:
    """Return the ids in a topic's committed records, in order."""
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    try:
        known = kafka.admin.list_topics(timeout=10).topics.get(topic)
        found: list[int] = []
        for number in known.partitions if known is not None else ():
            consumer.assign([TopicPartition(topic, number, 0)])
            while (message := consumer.poll(10)) is not None and message.error() is None:
                found.append(json.loads(message.value() or b"")["payload"]["id"])
        return sorted(found)
    finally:
        consumer.close()


@pytest.mark.long
# The last test: Spark may hand a worker that was killed while it was idle to the job after it.
def test_killed_workers_and_crashes_between_the_steps_of_a_round_lose_and_repeat_nothing(
    application: New,
    context: SparkContext,
    kafka: Kafka,
    unique: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, topic = tmp_path / "in", unique("rows")
    write_rows(folder, 1, 8000)
    config = {"connector.class": "SparkSource", "format": "parquet", "path": str(folder), "topic": topic}
    config |= {"incrementing.column.name": "id", "splits": "2", "split.max.rows": "50", "poll.interval.ms": "300"}
    # By the number of the call that stores a round's plan (0, 3) or its end (5, 7), without kills in between.
    crashes = {0: "before", 3: "after", 5: "before", 7: "after"}
    calls = itertools.count()
    store = SourceRoundsTask._store

    def crash(task: SourceRoundsTask, offsets: Offsets) -> None:
        when = crashes.pop(next(calls), None)
        if when == "before":
            raise RuntimeError("crash before offsets are stored")
        store(task, offsets)
        if when == "after":
            raise RuntimeError("crash after offsets were stored")

    monkeypatch.setattr(SourceRoundsTask, "_store", crash)
    app = application(**{"exactly.once.source.support": "enabled"})
    app.start(config)
    kills = 0
    failures: list[list[str | None]] = []
    wanted = list(range(1, 8001))

    def done() -> bool:
        nonlocal kills
        if app.states() == ["FAILED"]:
            failures.append(app.traces())
            app.herder.restart_task(TaskId(app.name, 0))
        with contextlib.suppress(psutil.Error, IndexError):
            if kills < 3:
                python_workers()[-1].kill()
                kills += 1
        return committed_ids(kafka, topic) == wanted

    eventually(done, within=300, what="each row once")
    assert len(failures) >= 4, failures
    assert kills
    assert not crashes
