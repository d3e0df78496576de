"""The file sinks: a connector for each format, and Confluent's sinks for HDFS, S3, GCS and Azure."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar

from sluiceway.api import IntervalRepeat, SinkConnector, SinkRecord, TopicPartition
from sluiceway.config.definition import ConfigDef, ConfigKey, ValidatedValue
from sluiceway.config.intervals import IntervalRun
from sluiceway.connectors.files import common_config as common
from sluiceway.connectors.files import keys, store_config
from sluiceway.connectors.files.commit_log import CommitLog
from sluiceway.connectors.files.filesystem import FileSystem
from sluiceway.connectors.files.hive.config import HIVE, REFUSED, HiveOptions
from sluiceway.connectors.files.hive.metastore import connect
from sluiceway.connectors.files.naming import is_of_earlier_attempt
from sluiceway.connectors.files.options import FileOptions, SinkKind, add_conflicts
from sluiceway.connectors.files.partition_writer import commit_folder, connector_folder
from sluiceway.connectors.files.store import azure_store, gcs_store, hdfs_store, path_store, s3_store
from sluiceway.connectors.files.store_check import answered, refusals
from sluiceway.connectors.files.task import FileSinkTask
from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.java.numbers import whole_number

log = logging.getLogger(__name__)

_RECORDS = 100_000


class FileSinkConnector(SinkConnector):
    """Base class of the file sinks: validates the config and alters offsets."""

    kind: ClassVar[SinkKind]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.kind.definition

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Add whether storage and metastore let us in. No answer within seconds is not an error."""
        options = FileOptions.of(config, cls.kind)
        for key, message in [*refusals(options.store, options.names.topics_dir), *_metastore_refusals(options.hive)]:
            found[key].errors.append(message)

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return add_conflicts(cls.kind.definition.validate(config), cls.kind)

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str]:
        from sluiceway.connectors.files.preview import file_lines

        return file_lines(FileOptions.of(config, cls.kind), records)

    @classmethod
    def interval_repeat(cls, config: Mapping[str, str]) -> IntervalRepeat:
        return IntervalRepeat.REPLACES

    def start(self, config: Mapping[str, str]) -> None:
        options = FileOptions.of(config, self.kind)
        self._config = dict(config)
        run = IntervalRun.of(config)
        if run is not None and run.attempt > 1:
            deleted = delete_earlier_attempts(options.store.connect(), options.names.topics_dir, run)
            log.info("Deleted %d files of earlier attempts of interval %s", deleted, run.interval)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Set the offsets in the commit logs too, because tasks start from those. Writes to the storage.

        Resetting all offsets also resets those of partitions that the consumer group has forgotten.
        """
        for partition, offset in offsets.items():
            if offset is not None and offset < 0:
                raise ConnectError(f"The offset of {partition[0]}-{partition[1]} must not be negative, but is {offset}.")
        options = FileOptions.of(config, self.kind)
        fs = options.store.connect()
        if IntervalRun.of(config) is not None and all(offset is None for offset in offsets.values()):
            # The connector of one run, which has ended.
            fs.delete_tree(connector_folder(options))
            return True
        changes = {TopicPartition._make(partition): offset for partition, offset in offsets.items()}
        if not changes:
            changes = dict.fromkeys(_logged(fs, options))
        for partition, offset in changes.items():
            CommitLog(fs, commit_folder(options, partition)).set_offset(offset)
        return True


def _logged(fs: FileSystem, options: FileOptions) -> list[TopicPartition]:
    """Return the topic partitions that have a commit log."""
    base = connector_folder(options)
    return [
        TopicPartition(topic, number)
        for topic in fs.folders(base)
        for folder in fs.folders(f"{base}/{topic}")
        if (number := whole_number(folder)) is not None
    ]


def delete_earlier_attempts(fs: FileSystem, folder: str, run: IntervalRun) -> int:
    """Delete the files of a run's interval that other attempts have written, in a folder and those in it; return how many."""
    earlier = [name for name in fs.names(folder) if is_of_earlier_attempt(name, run)]
    for name in earlier:
        fs.delete(f"{folder}/{name}")
    below = (delete_earlier_attempts(fs, f"{folder}/{each}", run) for each in fs.folders(folder))
    return len(earlier) + sum(below)


def _metastore_refusals(options: HiveOptions | None) -> list[tuple[str, str]]:
    """Return the errors of keys if the Hive metastore cannot be used. Waits a while for its answer."""
    if options is None:
        return []

    def check() -> None:
        with connect(options) as metastore:
            metastore.database_exists()

    try:
        answered(check, "The Hive metastore")
    except MissingToolError as error:
        return [(keys.HIVE_INTEGRATION, str(error))]
    except ConnectError as error:
        return [(keys.HIVE_URIS if options.uris else keys.HIVE_CONF_DIR, str(error))]
    return []


def _own(name: str, *more: ConfigKey, hive: ConfigDef = HIVE) -> SinkKind:
    rotation = common.ROTATION.replace(*_with_default(common.ROTATION, {"rotate.schedule.interval.ms": 600_000}))
    partitioning = common.PARTITIONING.replace(*_with_default(common.PARTITIONING, {"timezone": "UTC"}))
    first = ConfigDef([*store_config.PATH, common.flush_size(_RECORDS)])
    return SinkKind((first + rotation + common.NAMES + partitioning + common.DATA + hive).define(*more), path_store, name)


def _with_default(definition: ConfigDef, defaults: Mapping[str, int | str]) -> list[ConfigKey]:
    return [common.changed(definition[name], default=default) for name, default in defaults.items()]


def _confluent(storage: ConfigDef, *more: ConfigKey) -> ConfigDef:
    return (ConfigDef([*storage, common.flush_size(None)]) + common.COMMON + HIVE).define(*common.AVRO, *more)


PARQUET = _own("ParquetFormat", common.PARQUET)
ORC = _own("OrcFormat", common.ORC)
AVRO = _own("AvroFormat", *common.AVRO)
CSV = _own("CsvFormat", *common.CSV, hive=REFUSED)
JSON = _own("JsonFormat", common.LINES, common.DECIMALS, hive=REFUSED)
TEXT = _own("TextFormat", common.LINES, hive=REFUSED)
_CONFLUENT_FORMATS = (common.PARQUET, common.DECIMALS)
HDFS = SinkKind(
    _confluent(store_config.HDFS, common.PARQUET, common.ORC, common.DECIMALS).replace(
        common.changed(common.NAMES["logs.dir"], default="logs")
    ),
    hdfs_store,
)
S3 = SinkKind(_confluent(store_config.S3, *_CONFLUENT_FORMATS, *common.BYTES), s3_store, last_in_name=False, codec_in_name=True)
GCS = SinkKind(
    _confluent(store_config.GCS, *_CONFLUENT_FORMATS, *common.BYTES), gcs_store, last_in_name=False, codec_in_name=True
)
AZURE = SinkKind(
    _confluent(store_config.AZURE, *_CONFLUENT_FORMATS, *common.BYTES), azure_store, last_in_name=False, codec_in_name=True
)


class ParquetSinkTask(FileSinkTask):
    kind = PARQUET


class OrcSinkTask(FileSinkTask):
    kind = ORC


class AvroFileSinkTask(FileSinkTask):
    kind = AVRO


class CsvSinkTask(FileSinkTask):
    kind = CSV


class JsonFileSinkTask(FileSinkTask):
    kind = JSON


class TextSinkTask(FileSinkTask):
    kind = TEXT


class HdfsSinkTask(FileSinkTask):
    kind = HDFS


class S3SinkTask(FileSinkTask):
    kind = S3


class GcsSinkTask(FileSinkTask):
    kind = GCS


class AzureBlobStorageSinkTask(FileSinkTask):
    kind = AZURE
