"""The search sources: find indexes of OpenSearch and Elasticsearch, and assign their shards to tasks."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import ClassVar

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector
from sluiceway.config.definition import ConfigDef, ConfigValue, ValidatedValue
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.groups import Groups
from sluiceway.connectors.periodic import Job, Periodic
from sluiceway.connectors.search.client import RefusedError, is_busy
from sluiceway.connectors.search.connection import Server
from sluiceway.connectors.search.source.client import SourceClient
from sluiceway.connectors.search.source.config import (
    AIVEN,
    CONFLUENT,
    INCREMENTING_FIELD,
    INDEX,
    MODE,
    SEQ_NO,
    TIMESTAMP_DELAY,
    TIMESTAMP_FIELD,
    Mode,
    conflicts,
)
from sluiceway.connectors.search.source.indexes import SHARDS, Index, Shard, indexes_of, missing, to_config
from sluiceway.connectors.search.source.position import check_offset
from sluiceway.connectors.search.source.reader import field_problem
from sluiceway.connectors.search.source.task import ElasticsearchSourceTask, OpenSearchSourceTask, SearchSourceTask
from sluiceway.connectors.search.validation import SearchConnector
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0  # between two attempts while there are no indexes
_INTERVAL = re.compile(r"(\d+)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class SearchSourceConnector(SearchConnector, SourceConnector):
    """Base of both connectors, which differ in the keys of their connections."""

    task_class: ClassVar[type[SearchSourceTask]]
    interval_by_timestamp = False

    _client: SourceClient | None = None
    _monitor: Periodic | None = None

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        mode = config.get(MODE, "").strip().lower()
        return "" if mode == Mode.TIMESTAMP.value else f"only {MODE}={Mode.TIMESTAMP.value} reads by time"

    @classmethod
    def server(cls, config: Mapping[str, str]) -> Server:
        return cls.task_class.options(config).server

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return conflicts(values, config)

    @classmethod
    def try_indexes(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        options = cls.task_class.options(config)
        key = TIMESTAMP_FIELD if options.mode is Mode.TIMESTAMP else INCREMENTING_FIELD
        with closing(cls.task_class.client(options)) as client:
            try:
                indexes = indexes_of(client.indexes(options.patterns), options.patterns)
                for name in missing(options.patterns, indexes):
                    if "*" not in name:  # an index that matches may come
                        found[INDEX].errors.append(
                            f"There is no index, alias or data stream {name}. Create it, or change {INDEX}."
                        )
                for index in indexes if options.field != SEQ_NO else ():
                    types = client.field_types(index.name, options.field)
                    if types and (problem := field_problem(options, index.name, types)) is not None:
                        found[key].errors.append(problem)
            except ConnectError as error:
                if isinstance(error, RefusedError) and is_busy(error.status):
                    log.warning("%s", error)
                    return
                found[INDEX].errors.append(str(error))

    def start(self, config: Mapping[str, str]) -> None:
        self._properties = dict(config)
        self._options = options = self.task_class.options(config)
        self._groups = Groups[Shard]()
        self._indexes: list[Index] = []
        self._missing: Sequence[str] = ()
        self._client = client = self.task_class.client(options)
        self._interval = min(_RETRY_SECONDS, options.index_interval)
        self._due = 0.0
        try:
            self._find(client)
        except UnreachableError as error:  # the monitor finds the indexes once the server answers
            self._wait(error)
        log.info("Found %d indexes", len(self._indexes))
        self._monitor = Periodic(
            f"search-{config.get('name', '')}", [Job("to check for new indexes", self._check, self._interval)]
        )
        self._monitor.start()

    def _wait(self, reason: object) -> None:
        log.warning("%s", reason)
        self._due = 0.0
        self.context.waiting(reason, self._interval)

    def _check(self) -> None:
        """Check for new and deleted indexes if that is due. Runs on the monitor's thread."""
        if self._client is None or time.monotonic() < self._due:
            return
        before = self._units()
        try:
            self._find(self._client)
        except UnreachableError as error:
            self._wait(error)
            return
        now = self._units()
        if now != before:
            names, old = {each.index for each in now}, {each.index for each in before}
            for change, some in (("New", names - old), ("Deleted", old - names)):
                if some:
                    log.info("%s indexes: %s", change, ", ".join(sorted(some)))
            self.context.request_task_reconfiguration()

    def _find(self, client: SourceClient) -> None:
        """Find the indexes. Raises UnreachableError, and ConnectError if the server refuses it."""
        patterns = self._options.patterns
        try:
            found = indexes_of(client.indexes(patterns), patterns)
        except RefusedError as error:
            if is_busy(error.status):
                raise UnreachableError(str(error)) from error
            raise
        known = {each.uuid for each in self._indexes}
        for index in found:
            if index.uuid not in known:
                self._warn_of_refresh(index)
        self._indexes = found
        self._due = time.monotonic() + self._options.index_interval if found else 0.0
        lacking = missing(patterns, found)
        if lacking:
            reason = f"There is no index, alias or data stream {', '.join(lacking)} that is open. Create it, or change {INDEX}."
            if lacking != self._missing:
                log.warning("%s", reason)
            self.context.waiting(reason, self._interval)
        else:
            self.context.waiting()
        self._missing = lacking

    def _warn_of_refresh(self, index: Index) -> None:
        interval = seconds_of(index.refresh)
        if self._options.mode is Mode.TIMESTAMP and interval is not None and not 0 <= interval < self._options.delay:
            log.warning(
                "Documents of %s can be searched after its index.refresh_interval, which is %s, but are read after %g s: later "
                "ones are missed. Raise %s above that interval, or read with mode=incrementing and %s.",
                index.name,
                index.refresh,
                self._options.delay,
                TIMESTAMP_DELAY,
                SEQ_NO,
            )

    def _units(self) -> list[Shard]:
        return [shard for index in self._indexes for shard in index.units()]

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign shards to tasks. A shard stays with its task, so that the configs of other tasks do not change."""
        return [{**self._properties, SHARDS: to_config(group)} for group in self._groups.assign(self._units(), max_tasks)]

    def stop(self) -> None:
        if self._monitor is not None:
            self._monitor.stop()
        if self._client is not None:
            self._client.close()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True


def seconds_of(interval: str | None) -> float | None:
    """Return a time of a server's setting, such as ``30s``, in seconds; None for one that is not set or not understood."""
    if interval == "-1":
        return -1.0
    found = _INTERVAL.fullmatch(interval or "")
    return None if found is None else int(found[1]) * _SECONDS[found[2]]


class ElasticsearchSourceConnector(SearchSourceConnector):
    """Reads the documents of indexes, aliases and data streams of Elasticsearch into a topic for each: new and changed ones in
    the order of their writes, by a number or a timestamp, or all at each poll. Deleted documents are not seen. Tested with
    OpenSearch, and with scripted answers where the interfaces differ.
    """

    task_class = ElasticsearchSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFLUENT


class OpenSearchSourceConnector(SearchSourceConnector):
    """Reads the documents of indexes, aliases and data streams of OpenSearch into a topic for each: new and changed ones in
    the order of their writes, by a number or a timestamp, or all at each poll. Deleted documents are not seen.
    """

    task_class = OpenSearchSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return AIVEN
