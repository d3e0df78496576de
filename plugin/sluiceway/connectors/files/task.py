"""The file sinks' task: puts records and columns into the files of their topic partitions. Runs on executors."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import ClassVar

from sluiceway.api import SinkRecord, SinkTask, TopicPartition
from sluiceway.api.columns import ColumnBatch
from sluiceway.api.outage import Outage
from sluiceway.connectors.files import keys
from sluiceway.connectors.files.filesystem import FileSystem, StorageError
from sluiceway.connectors.files.formats import Format, format_named
from sluiceway.connectors.files.hive.metastore import MetastoreError
from sluiceway.connectors.files.hive.registrar import Registrar
from sluiceway.connectors.files.hive.table import TableLayout, partition_columns
from sluiceway.connectors.files.options import FileOptions, SinkKind
from sluiceway.connectors.files.partition_writer import PartitionWriter
from sluiceway.connectors.files.record_writer import RecordWriter
from sluiceway.errors import ConnectError, FencedError, RetriableError

log = logging.getLogger(__name__)

_FENCED_SECONDS = 60.0
_MEMORY_BYTES = 64 * 1024 * 1024
_UPLOAD_BYTES = 256 * 1024 * 1024


class FileSinkTask(SinkTask):
    """Writes to one storage. The commit logs beside the data are authoritative: the task seeks to their offsets.

    A partition whose storage fails is opened again, and its records since the last commit are read again.
    """

    takes_columns = takes_schemaless_columns = True
    kind: ClassVar[SinkKind]

    _options: FileOptions
    _format: Format
    _fs: FileSystem | None = None

    @classmethod
    def needs_schemas(cls, config: Mapping[str, str]) -> bool:
        options = FileOptions.of(config, cls.kind)
        return format_named(options.format, options.format_options).needs_schema

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = FileOptions.of(config, self.kind)
        self._format = format_named(options.format, options.format_options)
        self._writers: dict[TopicPartition, PartitionWriter] = {}
        self._registrar = _registrar(options)
        check = None if self._registrar is None else self._registrar.check
        self._records = RecordWriter(options, self._format, self._report, check)
        self._unclaimed: set[TopicPartition] = set()
        self._rewinds: dict[TopicPartition, int] = {}
        """Offsets that put() requests and whose partitions it drops, until a call has ended."""
        self._fenced: dict[TopicPartition, float] = {}
        self._outage = Outage(options.unreachable)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Claim partitions from former owners; if the storage is away, the next ``put`` tries again."""
        opened = set(map(TopicPartition._make, partitions))
        self._unclaimed |= opened
        try:
            self._claim()
        except RetriableError as error:
            log.warning("Cannot open partitions yet, the next put tries again: %s", error)
        for partition in opened:
            self._rewinds.pop(partition, None)  # the consumer has fetched nothing yet

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in map(TopicPartition._make, partitions):
            self._unclaimed.discard(partition)
            self._rewinds.pop(partition, None)
            self._fenced.pop(partition, None)
            writer = self._writers.pop(partition, None)
            if writer is not None:
                writer.discard()

    def stop(self) -> None:
        self.close(list(getattr(self, "_writers", ())))

    def put(self, records: Sequence[SinkRecord]) -> None:
        with self._retrying():
            self._prepare()
            for place, group in groupby(records, key=attrgetter("original_topic", "original_kafka_partition")):
                partition = TopicPartition(*place)
                writer = self._writer(partition)
                if writer is not None:
                    with self._guarded(partition):
                        self._records.write(writer, list(group), _now())
            self._commit_due()
        self._rewinds.clear()  # the runtime seeks after put has returned

    def put_columns(self, batch: ColumnBatch) -> None:
        with self._retrying():
            self._prepare()
            partition = TopicPartition(batch.original_topic or batch.topic, batch.partition or 0)
            writer = self._writer(partition)
            if writer is not None:
                with self._guarded(partition):
                    self._records.write_columns(writer, batch, _now())
            self._commit_due()
        self._rewinds.clear()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Commit files that are due, and all if no more records come; return the offsets of what is committed."""
        safe = {}
        last, now = self.context.delivery_ends, _now()
        for partition in map(TopicPartition._make, offsets):
            writer = self._writer(partition) if partition in self._writers else None
            if writer is None:  # its offset is not known now, or it was taken away meanwhile
                continue
            try:
                with self._guarded(partition):
                    writer.register()
                    if last or writer.due(now):
                        writer.commit()
            except StorageError as error:
                log.warning("Files of %s-%d are not committed yet: %s", *partition, error)
            except MetastoreError as error:
                log.warning("Files of %s-%d are committed, but not registered yet: %s", *partition, error)
            if partition in self._fenced or partition in self._unclaimed or not writer.registered:
                continue
            if writer.safe_offset is not None:
                safe[partition] = writer.safe_offset
        return safe

    def _writer(self, partition: TopicPartition) -> PartitionWriter | None:
        """Return a partition's writer, or None if its records must not be written now."""
        if partition in self._fenced or partition in self._rewinds or partition in self._unclaimed:
            return None
        writer = self._writers.get(partition)
        if writer is None:
            raise ConnectError(f"Records of {partition.topic}-{partition.partition}, which is not assigned to this task")
        return writer

    def _prepare(self) -> None:
        self._check_fenced()
        self.context.offset(self._rewinds)
        if self._unclaimed:
            self._claim()
        for partition, writer in self._writers.items():
            if partition not in self._unclaimed:
                with self._guarded(partition):
                    writer.register()
        self._bound_memory()

    def _bound_memory(self) -> None:
        """Write what formats keep in memory, and end files early whose unfinished uploads take too much."""
        while sum(writer.pending for writer in self._writers.values()) > _MEMORY_BYTES:
            partition, writer = max(self._writers.items(), key=lambda item: item[1].pending)
            with self._guarded(partition):
                writer.flush_largest()
        while sum(writer.buffered for writer in self._writers.values()) > _UPLOAD_BYTES:
            partition, writer = max(self._writers.items(), key=lambda item: item[1].buffered)
            with self._guarded(partition):
                writer.commit()

    def _check_fenced(self) -> None:
        """Fail if the consumer group does not take away partitions that another task writes: it is in another group."""
        for partition, since in self._fenced.items():
            if time.monotonic() - since > _FENCED_SECONDS:
                raise FencedError(
                    f"Another task writes the files of {partition.topic}-{partition.partition}, which is assigned to this task: "
                    "a connector of the same name in another cluster or consumer group uses the same storage. Rename one of them "
                    f"or set another {keys.LOGS_DIR}."
                )

    def _claim(self) -> None:
        for partition in sorted(self._unclaimed):
            writer = self._writers.get(partition)
            if writer is None:
                writer = PartitionWriter(self._connected(), self._options, self._format, partition, self._registrar)
                self._writers[partition] = writer
            try:
                offset = writer.open()
            except FencedError as error:  # both try again; the consumer group leaves the partition to one of them
                raise StorageError(str(error)) from error
            self._unclaimed.discard(partition)
            if offset is not None:
                self._rewinds[partition] = offset
                self.context.offset({partition: offset})

    def _connected(self) -> FileSystem:
        if self._fs is None:
            self._fs = self._options.store.connect()
        return self._fs

    def _commit_due(self) -> None:
        now = _now()
        for partition, writer in list(self._writers.items()):
            if writer.due(now) and self._writer(partition) is not None:
                with self._guarded(partition):
                    writer.commit()

    @contextmanager
    def _guarded(self, partition: TopicPartition) -> Iterator[None]:
        """Give a partition up if its storage fails, until it is opened again, or if another task owns it."""
        try:
            yield
        except StorageError:
            self._writers[partition].discard(delete=False)
            self._unclaimed.add(partition)
            raise
        except FencedError as error:
            self._writers[partition].discard()
            self._fenced[partition] = time.monotonic()
            log.warning("%s Waiting for the consumer group to take it away", error)

    @contextmanager
    def _retrying(self) -> Iterator[None]:
        """Ask the runtime to repeat the call after a failure of storage or metastore, until that has lasted too long."""
        try:
            yield
            self._outage.ended()
        except (StorageError, MetastoreError) as error:
            self.context.timeout(self._options.backoff)
            self._outage.lasts(error)
            raise

    def _report(self, writer: PartitionWriter, record: SinkRecord, error: Exception) -> None:
        """Report a bad record. Raises ``error`` without an error reporter."""
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        writer.reported(reporter.report(record, error))


def _registrar(options: FileOptions) -> Registrar | None:
    """Return what registers files in Hive, None without Hive integration."""
    if options.hive is None:
        return None
    layout = TableLayout(options.format, partition_columns(options.partitioner), options.compatibility == "FORWARD")
    names = options.names
    return Registrar(options.hive, layout, lambda topic: names.folder(topic, ""), options.store.location)


def _now() -> int:
    return int(time.time() * 1000)
