"""KinesisSourceConnector and its task: read the shards of a stream, with the positions in Kafka's offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from sluiceway.api import (
    ExactlyOnceSupport,
    Offset,
    OffsetTarget,
    OffsetTargetKind,
    Partition,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from sluiceway.api.task import OffsetStorageReader
from sluiceway.config.definition import ConfigDef, ConfigValue, ValidatedValue
from sluiceway.connectors.aws.client import opened
from sluiceway.connectors.aws.connection import Account, AwsConnector, account_of
from sluiceway.connectors.aws.kinesis_options import (
    CONFIG,
    CONTINUE,
    TASK_SHARDS,
    TRIMMED,
    KinesisSourceOptions,
    conflicts_of,
    options_of,
)
from sluiceway.connectors.aws.kinesis_reader import ShardReader
from sluiceway.connectors.aws.kinesis_records import Records
from sluiceway.connectors.aws.kinesis_shards import (
    OLDEST,
    SHARD,
    STREAM,
    Position,
    Shard,
    expired_parents,
    families,
    partition_of,
    unfinished,
    with_parents,
)
from sluiceway.connectors.aws.kinesis_stream import SERVICE, STREAM_KEY, shards_of, stream_state
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.groups import Groups
from sluiceway.connectors.periodic import Job, Periodic
from sluiceway.errors import BadRequestError, ConnectError, RetriableError

log = logging.getLogger(__name__)

_RETRY_SECONDS = 10.0
_WAIT_SECONDS = 0.5
_IN_PARALLEL = 8


def stored_positions(reader: OffsetStorageReader, stream: str, shards: Sequence[Shard]) -> dict[str, Position]:
    """Return the stored positions of shards and of their parents."""
    ids = with_parents(shards)
    offsets = reader.offsets([partition_of(stream, each) for each in ids])
    return {each: Position.of(offset) for each, offset in zip(ids, offsets, strict=True) if offset is not None}


class KinesisSourceTask(SourceTask):
    """Reads shards after the last record that Kafka has, several at once, and shards that they were made of before them."""

    _client: Any = None
    _pool: ThreadPoolExecutor | None = None
    _readers: Mapping[str, ShardReader] | None = None
    _parents: Mapping[str, Sequence[str]] = {}

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options_of(config)
        self._records = {each: Records(self._options, each) for each in self._options.shards}
        self._pool = ThreadPoolExecutor(_IN_PARALLEL, thread_name_prefix="kinesis-reads")
        self._asks = False  # the last poll returned nothing, so that the runtime asks for what is not stored

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            readers = self._opened()
        except UnreachableError as error:
            raise RetriableError(str(error)) from error
        if any(each.unstored for each in readers.values()) and not self._asks:
            self._asks = True
            return None
        self._asks = False
        now = time.monotonic()
        open_ = [each for each in readers.values() if not each.position.ended and not self._waits(each)]
        due = [each for each in open_ if each.due <= now]
        if not due:
            self.context.wait(max(0.0, min([_WAIT_SECONDS, *(each.due - now for each in open_)])))
            return None
        return self._read(due) or None

    def _opened(self) -> Mapping[str, ShardReader]:
        """Return the readers of the shards that are left."""
        options = self._options
        self._client = self._client or opened(options.account)
        if self._readers is None:
            retention = stream_state(self._client, options.account, options.stream).retention
            shards = shards_of(self._client, options.account, options.stream)
            stored = stored_positions(self.context.offset_storage_reader, options.stream, shards)
            left = unfinished(shards, stored, options.since)
            self._parents = {each.id: each.parents for each in shards}
            self._readers = {each: ShardReader(options, each, left[each], retention) for each in options.shards if each in left}
        return self._readers

    def _waits(self, reader: ShardReader) -> bool:
        """Return whether a shard that this one was made of is not read to its end."""
        readers, parents = self._readers or {}, self._parents.get(reader.shard, ())
        return any(each in readers and not readers[each].position.ended for each in parents)

    def _read(self, readers: Sequence[ShardReader]) -> list[SourceRecord]:
        def read(reader: ShardReader) -> Sequence[Mapping[str, Any]] | Exception:
            try:
                return reader.read(self._client)
            except Exception as error:  # noqa: BLE001 (raised when the records of the others are taken)
                return error

        assert self._pool is not None  # noqa: S101 (made in start)
        records: list[SourceRecord] = []
        failures: list[Exception] = []
        for reader, found in zip(readers, list(self._pool.map(read, readers)), strict=True):
            if isinstance(found, Exception):
                failures.append(found)
            else:
                records += self._take(reader, found)
        lasting = [each for each in failures if not isinstance(each, UnreachableError)]
        if lasting:
            raise lasting[0]
        if failures and not records:
            raise RetriableError(str(failures[0])) from failures[0]
        return records

    def _take(self, reader: ShardReader, found: Sequence[Mapping[str, Any]]) -> list[SourceRecord]:
        """Return the records of those that were read, and move the position."""
        records: list[SourceRecord] = []
        made = self._records[reader.shard]
        ended = reader.position.ended
        for each in found:
            for taken in made.records(each, reader.position):
                reader.position = taken.position
                if taken.error is None:
                    records.append(taken.record)
                else:
                    self.context.report(taken.record, taken.error)
                    reader.unstored = True  # no record has its offset
        if ended:
            log.info("Shard %s of stream %s was read to its end", reader.shard, self._options.stream)
            reader.end()
        return records

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        """Return ends and begins of shards, and positions behind bad records or in idle shards, for the next start."""
        changed = [each for each in (self._readers or {}).values() if each.unstored]
        for each in changed:
            each.unstored = False
        return [(partition_of(self._options.stream, each.shard), each.position.to_offset()) for each in changed]

    @property
    def ended(self) -> bool | None:
        """True once all shards are read up to what they had at first."""
        return self._readers is not None and all(each.at_end for each in self._readers.values())

    def metrics(self) -> Mapping[str, float]:
        """Return the number of shards that are not read to their ends, and how often records may have been trimmed unread."""
        readers = (self._readers or {}).values()
        return {
            "shards-open": sum(not each.position.ended for each in readers),
            "shards-trimmed": sum(each.trimmed for each in readers),
        }

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)
        client, self._client = self._client, None
        if client is not None:
            client.close()


class KinesisSourceConnector(AwsConnector, SourceConnector):
    """Reads a stream of Amazon Kinesis Data Streams: a record for each record, also of the Kinesis Producer Library's."""

    task_class = KinesisSourceTask
    address_key = STREAM_KEY
    _monitor: Periodic | None = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def account(cls, values: Mapping[str, ConfigValue]) -> Account:
        return account_of(SERVICE, values)

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return conflicts_of(values)

    @classmethod
    def try_service(cls, client: Any, account: Account, found: Mapping[str, ValidatedValue]) -> None:
        stream = str(found[STREAM_KEY].value)
        stream_state(client, account, stream)
        shards_of(client, account, stream)

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self._options = options = options_of(config)
        self._groups = Groups[str]()
        self._shards: list[Shard] = []
        self._dealt: Mapping[str, Sequence[str]] = {}
        self._tasks = 1
        try:
            self._shards = self._find()
        except UnreachableError as error:  # the monitor finds them once Kinesis answers
            self._wait(error)
        interval = options.interval if self._shards else min(options.interval, _RETRY_SECONDS)
        self._monitor = Periodic(f"kinesis-{config.get('name', '')}", [Job("to check for new shards", self._check, interval)])
        self._monitor.start()

    def _find(self) -> list[Shard]:
        with closing(opened(self._options.account)) as client:
            stream_state(client, self._options.account, self._options.stream)
            return shards_of(client, self._options.account, self._options.stream)

    def _wait(self, reason: object) -> None:
        log.warning("%s", reason)
        self.context.waiting(reason, _RETRY_SECONDS)

    def _check(self) -> None:
        """Check for new shards, and for those whose parents are read, so that another task may read them."""
        try:
            self._shards = self._find()
        except UnreachableError as error:
            self._wait(error)
            return
        self.context.waiting()
        now = self._families()
        before = {each for family in self._dealt.values() for each in family}
        new = {each for family in now.values() for each in family} - before
        if new:
            log.info("Stream %s has new shards: %s", self._options.stream, ", ".join(sorted(new)))
        if new or (self._tasks > len(self._dealt) and len(now) > len(self._dealt)):
            self.context.request_task_reconfiguration()

    def _families(self) -> dict[str, list[str]]:
        """Return the shards that are left, in the groups that one task reads in order."""
        options = self._options
        stored = stored_positions(self.context.offset_storage_reader, options.stream, self._shards)
        if (lost := expired_parents(self._shards, stored)) and not options.skips_trimmed:
            raise ConnectError(
                f"Shards {', '.join(lost)} of stream {options.stream} have expired before they were read to their ends: records "
                f"may be lost. To continue with the shards that are there, set {TRIMMED}={CONTINUE}."
            )
        return families(self._shards, unfinished(self._shards, stored, options.since))

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Deal the groups of shards that are left."""
        self._tasks = max_tasks
        self._dealt = found = self._families()
        groups = self._groups.assign(sorted(found), max_tasks)
        return [{**self._config, TASK_SHARDS: ",".join(each for root in group for each in found[root])} for group in groups]

    def stop(self) -> None:
        if self._monitor is not None:
            self._monitor.stop()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        stream = options_of(config).stream
        for partition, offset in offsets:
            if offset is None:
                continue
            if set(partition or ()) != {STREAM, SHARD} or (partition or {})[STREAM] != stream:
                raise ConnectError(f'A partition is {{"{STREAM}": "{stream}", "{SHARD}": "shardId-000000000000"}}.')
            Position.of(offset)
        return True

    def find_offsets(
        self, config: Mapping[str, str], target: OffsetTarget, offsets: Sequence[tuple[Partition, Offset]]
    ) -> Sequence[tuple[Partition, Offset | None]]:
        """Return the offsets before a target, of all shards."""
        options: KinesisSourceOptions = options_of(config)
        if target.kind is OffsetTargetKind.SHIFT:
            raise BadRequestError("Records of Kinesis have no numbers one by one. Choose a time, the beginning, or the end.")
        since = OLDEST
        if target.kind is OffsetTargetKind.TIMESTAMP:
            since = max(1, target.number)
        elif target.kind is OffsetTargetKind.LATEST:
            since = int(time.time() * 1000)
        with closing(opened(options.account)) as client:
            shards = shards_of(client, options.account, options.stream)
        at_end = target.kind is OffsetTargetKind.LATEST
        return [
            (
                partition_of(options.stream, each.id),
                Position(since=None if at_end and each.closed else since, ended=at_end and each.closed).to_offset(),
            )
            for each in shards
        ]
