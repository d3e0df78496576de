"""SparkSource: read tables and files with any of Spark's formats."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.api import ExactlyOnceSupport, Offset, OffsetStorageReader, Partition, SourceConnector
from sluiceway.api.data_frames import DataFrameSourceTask, Round, Split
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.config.intervals import interval_of
from sluiceway.connectors.spark import keys
from sluiceway.connectors.spark.column_rounds import ColumnRounds
from sluiceway.connectors.spark.parquet_reader import parquet_reader
from sluiceway.connectors.spark.ranges import plan_in, position_in
from sluiceway.connectors.spark.reading import check_names, finding, load, load_files
from sluiceway.connectors.spark.source_config import PATH, PLACES, SourceConfig
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FILE = "file"
_DONE = {"complete": True}


class SparkSourceTask(DataFrameSourceTask):
    """Reads one table, query or folder."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = settings = SourceConfig.of(config)
        offsets = self.context.offset_storage_reader
        self._rounds: ColumnRounds | FileRounds | None = None
        if settings.column:
            self._rounds = ColumnRounds(self.spark, settings, offsets, interval_of(config))
        elif settings.by_file:
            self._rounds = FileRounds(self.spark, settings, offsets)

    @property
    def poll_seconds(self) -> float:
        return self._config.poll_interval

    @property
    def slots(self) -> int:
        return self._config.splits

    def next_round(self) -> Round | None:
        return self._everything() if self._rounds is None else self._rounds.next_round()

    def _everything(self) -> Round | None:
        """Return all rows as one split, unless they have been read."""
        config = self._config
        if self.context.offset_storage_reader.offset(config.partition) is not None:
            return None
        check_names(config)
        split = Split(load(self.spark, config), [(config.partition, {"complete": True})])
        return Round(config.topic, [split], config.schema_name)


class FileRounds:
    """The rounds of one folder. A file belongs to the same slot in every round, whatever other files there are."""

    def __init__(self, spark: SparkSession, config: SourceConfig, offsets: OffsetStorageReader) -> None:
        self._spark = spark
        self._config = config
        self._offsets = offsets
        self._done: set[str] = set()

    def next_round(self) -> Round | None:
        """Return the files that are new, at most ``round.max.files``."""
        new = [file for file in self._files() if file not in self._done]
        stored = self._offsets.offsets([self._partition(file) for file in new])
        self._done.update(file for file, offset in zip(new, stored, strict=True) if offset is not None)
        files = [file for file in new if file not in self._done][: self._config.max_files]
        if not files:
            return None
        whole = load_files(self._spark, self._config, files)
        groups: dict[int, list[str]] = {}
        for file in files:
            groups.setdefault(zlib.crc32(file.encode()) % self._config.splits, []).append(file)
        readers = {slot: parquet_reader(whole, self._config, group) for slot, group in groups.items()}
        direct = all(readers.values())
        splits = []
        for slot, group in sorted(groups.items()):
            frame = whole if direct else load_files(self._spark, self._config, group, whole)
            splits.append(Split(frame, [(self._partition(file), _DONE) for file in group], slot, readers[slot]))
        return Round(self._config.topic, splits, self._config.schema_name)

    def _files(self) -> list[str]:
        """List the folder as Spark does: without names that start with an underscore or a dot."""
        listing = self._spark.read.format("text").option("recursiveFileLookup", "true")
        with finding(self._config.path):
            return sorted(listing.load(self._config.path).inputFiles())

    def _partition(self, file: str) -> dict[str, str]:
        return {PATH: self._config.path, _FILE: file}


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
