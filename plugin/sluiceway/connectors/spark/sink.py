"""SparkSink and its task: write the records of topics with any of Spark's formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.api import SinkConnector, TopicPartition
from sluiceway.api.data_frames import DataFrameSinkTask
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.null_values import REPLACE_NULLS
from sluiceway.connectors.spark import keys
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_JDBC = "jdbc"
_EXACTLY_ONCE = {
    **dict.fromkeys(("parquet", "orc", "csv", "json", "text", "avro"), "a file sink, such as ParquetSink"),
    "iceberg": "IcebergSink",
    "delta": "DeltaSink",
    _JDBC: "JdbcSink with insert.mode=upsert",
}
_PLACES = (keys.PATH, keys.TABLE)


class SparkSinkTask(DataFrameSinkTask):
    """Appends each round with ``DataFrame.write``."""

    def start(self, config: Mapping[str, str]) -> None:
        values = keys.SINK.parse(config)
        self._format = str(values[keys.FORMAT])
        self._options = keys.options_of(config)
        self._path, self._table = str(values[keys.PATH]), str(values[keys.TABLE])
        columns = values[keys.PARTITION_BY]
        self._partition_by = [str(column) for column in columns] if isinstance(columns, list) else []
        self.flush_size = int(str(values[keys.FLUSH_SIZE]))
        self.flush_bytes = int(str(values[keys.FLUSH_BYTES]))
        self.rotate_seconds = int(str(values[keys.ROTATE_INTERVAL])) / 1000
        self.skip_nulls = str(values[keys.ON_NULL]).lower() == "ignore"
        self.replace_nulls = bool(values[REPLACE_NULLS])

    def write(self, frame: DataFrame) -> None:
        writer = frame.write.format(self._format).options(**self._options).mode("append")
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        if self._path:
            writer.save(self._path)
        elif self._format.lower() == _JDBC:
            writer.option("dbtable", self._table).save()
        elif not self._table:
            writer.save()
        else:
            writer.saveAsTable(self._table)


class SparkSinkConnector(SinkConnector):
    """Writes the records of its topics to files or a table with one of Spark's formats, at least once."""

    task_class = SparkSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.SINK

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = keys.SINK.validate(config)
        if error := keys.place_error(config, _PLACES):
            found[keys.PATH].errors.append(error)
        if config.get(keys.EXACTLY_ONCE, "").lower() == "required":
            found[keys.EXACTLY_ONCE].errors.append(_at_least_once(config.get(keys.FORMAT, "")))
        return found

    def start(self, config: Mapping[str, str]) -> None:
        keys.SINK.parse(config)
        if error := keys.place_error(config, _PLACES):
            raise ConfigError(error)
        if config.get(keys.EXACTLY_ONCE, "").lower() == "required":
            raise ConfigError(_at_least_once(config.get(keys.FORMAT, "")))
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        return True  # any offset is valid, since writing does not depend on it


def _at_least_once(format_name: str) -> str:
    """Return why the sink does not deliver exactly once, and what does."""
    other = _EXACTLY_ONCE.get(format_name.lower())
    advice = f" Use {other}, which writes each record once." if other else ""
    return (
        f"SparkSink delivers at least once with format={format_name}: Spark's writer commits without the offsets.{advice} "
        f"Or set {keys.EXACTLY_ONCE}=requested."
    )
