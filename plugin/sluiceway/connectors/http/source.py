"""HttpSourceConnector and its task: poll a server, and produce a record for each item of its lists that is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, Pump, SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.http.client import HttpClient
from sluiceway.connectors.http.position import is_offset
from sluiceway.connectors.http.reader import Batch, Reader
from sluiceway.connectors.http.source_checks import source_conflicts
from sluiceway.connectors.http.source_config import CONFIG, source_options
from sluiceway.errors import ConnectError

_WAIT_SECONDS = 1.0
_MOST_PAGES = 4


class HttpSourceTask(SourceTask):
    """Returns the pages that a thread has read, with an offset at their last record if there is one to store."""

    _pump: Pump[Batch] | None = None
    _client: HttpClient | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Begin to read. Raises ConfigError."""
        options = source_options(config)
        self._partition = options.partition
        stored = self.context.offset_storage_reader.offset(self._partition)
        self._client = HttpClient(options.server)
        self._reader = reader = Reader(options, self._client, stored, self.context.waiting)
        self._unstored: Offset | None = None
        self._asked = False
        self._runs = 0
        self._pump = Pump(self.context, reader.batches, _MOST_PAGES, reader.stop)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._pump is None:
            raise ConnectError("The task has not been started. Call start() first.")
        if self._unstored is not None and not self._asked:
            self._asked = True
            return None  # the runtime asks for it now, before there are records behind it
        for batch in self._pump.take(1, _WAIT_SECONDS):
            self._runs += batch.ends
            for record, error in batch.bad:
                self.context.report(record, error)
            if batch.records and batch.offset is not None:
                batch.records[-1].source_partition, batch.records[-1].source_offset = self._partition, batch.offset
                self._unstored = None
            elif batch.offset is not None:
                self._unstored, self._asked = batch.offset, False
            return batch.records or None
        return None

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        """Return the offset behind a page that had no record to carry it."""
        unstored, self._unstored = self._unstored, None
        return [] if unstored is None else [(self._partition, unstored)]

    @property
    def ended(self) -> bool | None:
        """True once all pages were read once."""
        return self._runs > 0 and self._unstored is None

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of runs that have ended, and of requests."""
        return {} if self._pump is None else {"runs-completed": self._runs, "requests-sent": self._reader.requests}

    def stop(self) -> None:
        if self._pump is not None:
            self._pump.close()
        if self._client is not None:
            self._client.close()


class HttpSourceConnector(CheckedConnector, SourceConnector):
    """Polls an HTTP server: a record for each item of a list in JSON, by pages, and only what is new. One task reads it.

    Many of its options are those of castorm's connector.
    """

    task_class = HttpSourceTask
    java_class = "com.github.castorm.kafka.connect.http.HttpSourceConnector"
    java_task_class = "com.github.castorm.kafka.connect.http.HttpSourceTask"
    interval_by_timestamp = False

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return source_conflicts(values)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Return SUPPORTED for a list in ascending order, in which each record has an offset."""
        options = source_options(config)
        return ExactlyOnceSupport.SUPPORTED if options.ascending else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        known = source_options(config).partition
        for partition, offset in offsets:
            if dict(partition or {}) != dict(known) and offset is not None:
                raise ConnectError(f"{dict(partition or {})} is no partition of this connector: it is {dict(known)}.")
            if offset is not None and not is_offset(offset):
                raise ConnectError(
                    f'{dict(offset)} is no offset. It has names and values, such as {{"timestamp": "2026-12-01T00:00:00Z"}}.'
                )
        return True
