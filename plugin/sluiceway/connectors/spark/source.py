"""SparkSource: read tables and files with any of Spark's formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.spark import keys
from sluiceway.connectors.spark.ranges import plan_in, position_in
from sluiceway.connectors.spark.source_config import PATH, PLACES, SourceConfig
from sluiceway.connectors.spark.source_task import SparkSourceTask
from sluiceway.errors import ConnectError


class SparkSourceConnector(SourceConnector):
    """Reads a table, a query or a folder of files with one of Spark's formats: once, by a column, or files as they arrive."""

    task_class = SparkSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.SOURCE

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = keys.SOURCE.validate(config)
        if error := keys.place_error(config, PLACES):
            found[keys.PATH].errors.append(error)
        if config.get(keys.QUERY) and config.get(keys.FORMAT, "").lower() != "jdbc":
            found[keys.QUERY].errors.append(
                "A query needs format=jdbc. Of other formats, read a view of the catalog by its table."
            )
        if config.get(keys.INCREMENTING) and config.get(keys.TIMESTAMP):
            found[keys.TIMESTAMP].errors.append(f"Set either {keys.INCREMENTING} or {keys.TIMESTAMP}.")
        return found

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        return "" if config.get(keys.TIMESTAMP) else f"it reads by no time: set {keys.TIMESTAMP}"

    def start(self, config: Mapping[str, str]) -> None:
        SourceConfig.of(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]  # the executors share the work of each round

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # A later row may have the timestamp of the last row that was read.
        return ExactlyOnceSupport.UNSUPPORTED if config.get(keys.TIMESTAMP) else ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        settings = SourceConfig.of(config)
        for partition, offset in offsets:
            if any(partition.get(name) != value for name, value in settings.partition.items()):
                raise ConnectError(
                    f"{dict(partition)} is no source partition of this connector, which reads {settings.partition}."
                )
            if offset is not None and settings.column and len(partition) == len(settings.partition):
                plan_in(offset)
                position_in(offset, timestamp=settings.by_timestamp)
            elif offset is not None and PATH not in partition:
                raise ConnectError(f"The offset of {dict(partition)} can only be deleted, not set.")
        return True
