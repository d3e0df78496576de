"""The search sources' task: reads its shards in turn, each at its interval. Runs on the executors."""

from __future__ import annotations

import abc
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

from sluiceway.api import Offset, Partition, SourceLag, SourceRecord, SourceTask
from sluiceway.api.outage import Outage
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.search.client import RefusedError, is_busy
from sluiceway.connectors.search.source.client import SourceClient
from sluiceway.connectors.search.source.config import AIVEN, CONFLUENT, SourceOptions, source_options
from sluiceway.connectors.search.source.indexes import SHARDS, from_config
from sluiceway.connectors.search.source.reader import ShardReader, explained
from sluiceway.errors import RetriableError

_PATIENCE_SECONDS = 0.5  # the longest that poll waits


class SearchSourceTask(SourceTask):
    """Reads its shards one after the other, each from end to end, over one connection."""

    opensearch: ClassVar[bool]
    """Whether the server is taken for OpenSearch if it does not tell."""

    _client: SourceClient | None = None
    _readers: Sequence[ShardReader] = ()
    _current: ShardReader | None = None

    @classmethod
    @abc.abstractmethod
    def options(cls, config: Mapping[str, str]) -> SourceOptions:
        """Return the options of a config. Raises ConfigError."""

    @classmethod
    def client(cls, options: SourceOptions) -> SourceClient:
        return SourceClient(options.server, opensearch=cls.opensearch)

    def start(self, config: Mapping[str, str]) -> None:
        options, shards = self.options(config), from_config(config[SHARDS])
        self._client = client = self.client(options)
        self._outage = Outage(options.unreachable)
        stored = self.context.offset_storage_reader.offsets([each.partition for each in shards])
        pairs = zip(shards, stored, strict=True)
        self._readers = [ShardReader(shard, options, client, offset) for shard, offset in pairs]

    def poll(self) -> Sequence[SourceRecord] | None:
        """Return the next records; None if no shard that is due has any.

        The first call reads each shard, however long that takes: after two polls without records, a run in micro-batch mode ends.
        """
        until = time.monotonic() + _PATIENCE_SECONDS
        while (reader := self._current or self._next_due()) is not None:
            self._current = reader
            if (records := self._read(reader)) is not None:
                return records
            self._current = None
            if time.monotonic() > until and all(each.due for each in self._readers):
                break
        return None

    def _next_due(self) -> ShardReader | None:
        """Return the shard to read next; wait a little and return None if none is due."""
        found = min(self._readers, key=lambda each: each.due, default=None)
        wait = _PATIENCE_SECONDS if found is None else found.due - time.monotonic()
        if found is not None and wait <= 0:
            return found
        self.context.wait(min(wait, _PATIENCE_SECONDS))
        return None

    def _read(self, reader: ShardReader) -> Sequence[SourceRecord] | None:
        """Return the next page of a shard. Raises RetriableError if the cluster is busy or away, as long as that is allowed."""
        try:
            records = reader.next()
        except (UnreachableError, RefusedError) as error:
            if isinstance(error, RefusedError) and not is_busy(error.status):
                raise
            self._outage.lasts(error)
            raise RetriableError(f"Reading {reader.shard} was interrupted: {explained(error)}") from error
        self._outage.ended()
        return records

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset]]:
        moved = [(each.partition, each.moved) for each in self._readers if each.moved is not None]
        for reader in self._readers:
            reader.moved = None
        return moved

    def source_lag(self) -> SourceLag:
        """Return the lag of the shard that is furthest behind."""
        now = time.monotonic()
        return SourceLag(max((lag for each in self._readers if (lag := each.lag(now)) is not None), default=None))

    def stop(self) -> None:
        for reader in self._readers:
            reader.close()
        if self._client is not None:
            self._client.close()


class ElasticsearchSourceTask(SearchSourceTask):
    """The task of the source for Elasticsearch."""

    opensearch = False

    @classmethod
    def options(cls, config: Mapping[str, str]) -> SourceOptions:
        return source_options(CONFLUENT, config)


class OpenSearchSourceTask(SearchSourceTask):
    """The task of the source for OpenSearch."""

    opensearch = True

    @classmethod
    def options(cls, config: Mapping[str, str]) -> SourceOptions:
        return source_options(AIVEN, config)
