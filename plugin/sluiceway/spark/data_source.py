"""Makes connectors sources and sinks of PySpark jobs: ``spark.readStream.format("sluiceway")`` and ``writeStream``.

```python
from sluiceway.spark.data_source import register

register(spark)
lines = spark.readStream.format("sluiceway").option("connector.class", "FileStreamSource").option("file", "/var/log/app.log")...
```

Options are the connector's config. Delivery is at least once, by a single task, with the offsets in the query's checkpoint; for
anything else, run the connector with its own DAG or application.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from sluiceway.api import SinkRecord, SinkTask, SourceRecord, SourceTask, TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.data import Schema, Struct, Type
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.memory import MemoryConnectorContext, MemoryOffsets, MemorySinkContext, MemorySourceContext
from sluiceway.runtime.source.failed_sends import describe_source_record
from sluiceway.runtime.task_converters import task_converters
from sluiceway.runtime.transforms.batch_transform import transform_batch
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, chain_of
from sluiceway.spark.rounds.spark_schemas import row_schema
from sluiceway.spark.session import activate
from sluiceway.spark.versions import check_python_files

try:
    from pyspark import TaskContext
    from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter, SimpleDataSourceStreamReader
    from pyspark.sql.datasource import WriterCommitMessage as CommitMessage
    from pyspark.sql.types import BinaryType, StructType
except ImportError as error:
    check_python_files()  # files of two versions have names that are missing in the other
    raise MissingToolError("The format sluiceway needs PySpark 4 or newer. Run: pip install 'pyspark>=4'") from error

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

NAME = "sluiceway"
CLASS = "connector.class"
_COLUMNS = "key binary, value binary, topic string, timestamp timestamp, source_partition string, source_offset string"
_KAFKA = ("value", "topic", "partition", "offset")  # columns of Spark's Kafka source
_MOST_RECORDS = 20_000  # of a batch, which travels from the driver to one executor
_BATCH = 5000


def register(spark: SparkSession) -> None:
    """Make the format ``sluiceway`` known to a session, and the session the active one of the calling thread."""
    spark.dataSource.register(SluicewayDataSource)
    activate(spark)


class SluicewayDataSource(DataSource):
    """Runs the source or sink connector that the option ``connector.class`` names. Spark hands options in lower case."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return _COLUMNS

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802 (PySpark's name)
        return _Reader(dict(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return _StreamWriter(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return _Writer(dict(self.options), schema)


class _Reader(SimpleDataSourceStreamReader):
    """Polls a source task on the driver. Offsets are the task's own, by source partition, and the number of records."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = config
        self._source: _Source | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"offsets": {}, "records": 0}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        """Return the records that are available, up to about ``_MOST_RECORDS``."""
        if self._source is None or self._source.position != start:
            self._restart(start)
        assert self._source is not None  # noqa: S101 (restarted)
        rows = self._source.poll()
        while rows and len(rows) < _MOST_RECORDS and (more := self._source.poll()):
            rows += more
        return iter(rows), json.loads(json.dumps(self._source.position))

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[Any, ...]]:  # noqa: N802
        """Return the records of a batch again, after a failure. Raises ConnectError if the source no longer has them."""
        source = self._restart(start)
        rows: list[tuple[Any, ...]] = []
        while source.position["records"] < end["records"]:
            more = source.poll()
            if not more:
                missing = end["records"] - source.position["records"]
                raise ConnectError(f"The source no longer returns {missing} record(s) of a batch that must be read again.")
            rows += more
        return iter(rows)

    def commit(self, end: dict[str, Any]) -> None:
        if self._source is not None:
            self._source.task.commit()

    def _restart(self, start: dict[str, Any]) -> _Source:
        if self._source is not None:
            self._source.close()
        self._source = _Source(self._config, start)
        return self._source


class _Source:
    """A running source task at a position: its offsets, as JSON by the JSON of their partitions, and its records so far."""

    def __init__(self, config: Mapping[str, str], start: Mapping[str, Any]) -> None:
        self.position: dict[str, Any] = {"offsets": dict(start["offsets"]), "records": start["records"]}
        self._resources = ExitStack()
        offsets = MemoryOffsets((json.loads(key), offset) for key, offset in start["offsets"].items())
        task, config = _task_of(config)
        if not isinstance(task, SourceTask):
            raise ConfigError(CLASS, config[CLASS], "is not a source connector; use writeStream for a sink")
        self.task = task
        self._converters = task_converters(config, _worker())
        self._resources.callback(self._converters.close)
        self._chain: TransformationChain[SourceRecord] = chain_of(config)
        self._resources.callback(self._chain.close)
        self._tolerance = RetryWithToleranceOperator(config)
        task.initialize(MemorySourceContext(config, offsets))
        self._resources.callback(task.stop)
        task.start(config)

    def poll(self) -> list[tuple[Any, ...]]:
        """Return the rows of the next records, and move the position behind them."""
        records = self.task.poll() or []
        batch = transform_batch(
            self._chain, records, self._tolerance, describe=describe_source_record, original=lambda record: record
        )
        if batch.failure is not None:
            raise batch.failure
        for record in records:
            if record.source_partition is not None:
                self.position["offsets"][_json(record.source_partition)] = record.source_offset
        self.position["records"] += len(records)
        return [self._row(record) for record in batch.records]

    def _row(self, record: SourceRecord) -> tuple[Any, ...]:
        topic, millis = record.topic, record.timestamp
        return (
            self._converters.key.from_connect_data(topic, record.key_schema, record.key),
            self._converters.value.from_connect_data(topic, record.value_schema, record.value),
            topic,
            None if millis is None else dt.datetime.fromtimestamp(millis / 1000, dt.timezone.utc),
            None if record.source_partition is None else _json(record.source_partition),
            None if record.source_offset is None else _json(record.source_offset),
        )

    def close(self) -> None:
        self._resources.close()


class _SinkWriter:
    """Puts the rows of a partition into a sink task of its own. Runs on executors.

    Rows with the columns of Spark's Kafka source are converted as Connect converts messages; others become structs.
    """

    def __init__(self, config: Mapping[str, str], schema: StructType) -> None:
        self._config = config
        self._columns = schema

    def put_all(self, rows: Iterable[Row]) -> CommitMessage:
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        task, config = _task_of(self._config)
        if not isinstance(task, SinkTask):
            raise ConfigError(CLASS, config[CLASS], "is not a sink connector; use readStream for a source")
        with ExitStack() as resources:
            chain: TransformationChain[SinkRecord] = chain_of(config)
            resources.callback(chain.close)
            task.initialize(MemorySinkContext(config, reports=False))
            resources.callback(task.stop)
            task.start(config)
            ends: dict[TopicPartition, int] = {}
            for batch in _batches(map(self._to_record(config, number), rows)):
                opened = {TopicPartition(each.topic, each.kafka_partition) for each in batch} - ends.keys()
                if opened:
                    task.open(opened)
                ends.update({TopicPartition(each.topic, each.kafka_partition): each.kafka_offset + 1 for each in batch})
                task.put([record for each in batch for record in chain.apply(each)])
            task.pre_commit(ends)
            task.close(ends)
        return CommitMessage()

    def _to_record(self, config: Mapping[str, str], number: int) -> Callable[[Row], SinkRecord]:
        names = {field.name for field in self._columns.fields}
        if names.issuperset(_KAFKA) and isinstance(self._columns["value"].dataType, BinaryType):
            converters = task_converters(config, _worker())

            def converted(row: Row) -> SinkRecord:
                key_schema, key = converters.key.to_connect_data(row["topic"], _bytes(row["key"]) if "key" in names else None)
                value_schema, value = converters.value.to_connect_data(row["topic"], _bytes(row["value"]))
                return SinkRecord(row["topic"], row["partition"], row["offset"], value, value_schema, key, key_schema)

            return converted
        schema, topic = row_schema(self._columns), config.get("topics", NAME).partition(",")[0]
        offsets = iter(range(2**62))
        return lambda row: SinkRecord(topic, number, next(offsets), _value(schema, row), schema)


class _Writer(_SinkWriter, DataSourceWriter):
    def write(self, iterator: Iterator[Row]) -> CommitMessage:
        return self.put_all(iterator)


class _StreamWriter(_SinkWriter, DataSourceStreamWriter):
    def write(self, iterator: Iterator[Row]) -> CommitMessage:
        return self.put_all(iterator)

    def commit(self, messages: list[CommitMessage | None], batchId: int) -> None:  # noqa: N803 (PySpark's name)
        """Do nothing: each partition's records are durable when ``write`` returns."""

    def abort(self, messages: list[CommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: Spark writes the batch again."""


def _task_of(config: Mapping[str, str]) -> tuple[object, dict[str, str]]:
    """Return a new task of the connector, and the config of its only task."""
    if CLASS not in config:
        raise ConfigError(f'Missing required configuration "{CLASS}" which has no default value.')
    config = {"name": NAME, **config}
    cls = connector_class(config[CLASS])
    connector = cls()
    connector.initialize(MemoryConnectorContext())
    connector.start(config)
    try:
        configs: Sequence[Mapping[str, str]] = connector.task_configs(1)
    finally:
        connector.stop()
    if not configs:
        raise ConnectError(f"{config[CLASS]} has no task with this config: it has found nothing to copy.")
    return cls.task_class(), {**config, **configs[0]}


def _worker() -> WorkerConfig:
    return WorkerConfig.of({})


def _batches(records: Iterable[SinkRecord]) -> Iterator[list[SinkRecord]]:
    batch: list[SinkRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _value(schema: Schema, value: Any) -> Any:
    """Return the Connect value of one of PySpark's: its structs are Rows, its timestamps are in local time."""
    if value is None:
        return None
    if schema.type is Type.STRUCT:
        return Struct.of(schema, [_value(field.schema, each) for field, each in zip(schema.fields, value, strict=True)])
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return [_value(schema.value_schema, each) for each in value]
    if schema.type is Type.MAP and schema.value_schema is not None:
        return {key: _value(schema.value_schema, each) for key, each in value.items()}
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc)
    return bytes(value) if isinstance(value, bytearray) else value


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)
