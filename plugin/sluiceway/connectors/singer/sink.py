"""SingerSinkConnector and its task: load the records of topics with a Singer target, which runs once for each flush."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.api import SinkConnector, SinkRecord, SinkTask, TopicPartition
from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.singer.sink_config import DEFINITION, MAX_RETRIES, SinkOptions, conflicts, sink_options
from sluiceway.errors import ConnectError, DataError, MissingToolError, RetriableError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from sluiceway.connectors.singer.streams import Streams
    from sluiceway.connectors.singer.target import Target

log = logging.getLogger(__name__)

_Position = tuple[int, int]  # an offset, and the number among the records that a transform has made of its message


class SingerSinkTask(SinkTask):
    """Keeps records until a flush, which runs the target. Offsets are safe once its run has acknowledged them.

    What a repeated ``put`` brings again is known by its position, and what comes again after a rewind replaces what waits.
    """

    _streams: Streams | None = None
    _target: Target | None = None

    def start(self, config: Mapping[str, str]) -> None:
        from sluiceway.connectors.singer.target import Target

        self._options = options = sink_options(config)
        self._streams = new_streams(options)
        self._taken: dict[TopicPartition, _Position] = {}  # the last one of each partition
        self._unfinished: set[tuple[TopicPartition, _Position]] = set()  # taken of a put that has not ended well
        self._since: float | None = None  # the first record waits since then
        self._failures = 0
        self._again = 0.0  # no run before that, after a failed one
        self._fatal: ConnectError | None = None  # after which the target does not run any more
        self._runs = self._loaded = 0
        self._target = Target(options.target, options.flush_timeout)

    def put(self, records: Sequence[SinkRecord]) -> None:
        if self._fatal is not None:
            raise self._fatal
        counts: Counter[tuple[TopicPartition, int]] = Counter()
        for record in records:
            partition, offset = record.original_topic_partition, record.original_kafka_offset
            position = offset, counts[partition, offset]
            counts[partition, offset] += 1
            if (partition, position) in self._unfinished:
                continue
            self._take(record, partition, position)
            self._unfinished.add((partition, position))
        if self._is_due:  # once for each put, so that the offsets of a flush are committed before the next one
            self._flush()
        self._unfinished.clear()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Run the target if it is due, or no more records come, and return the offsets of what it has acknowledged."""
        streams = self._waiting
        if self._fatal is None and streams.count and (self.context.delivery_ends or self._is_due):
            try:
                self._flush()
            except RetriableError as error:
                level = logging.ERROR if self.context.delivery_ends else logging.WARNING  # else the next put tries again
                log.log(level, "The records since the last flush are not in the target yet, nor committed: %s", error)
            except ConnectError as error:
                log.error("The records since the last flush are not in the target, and the task fails: %s", error)
        starts = streams.starts()
        return {partition: min(offset, starts.get(TopicPartition(*partition), offset)) for partition, offset in offsets.items()}

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what waits of these partitions: their next owner gets it."""
        lost = {TopicPartition(*each) for each in partitions}
        if self._streams is not None:
            self._streams.drop(lost)
        for partition in lost:
            self._taken.pop(partition, None)
        self._unfinished = {each for each in self._unfinished if each[0] not in lost}

    def metrics(self) -> Mapping[str, float]:
        """Return how often the target has run well, how many records it was given then, and how many wait."""
        waiting = 0 if self._streams is None else self._streams.count
        return {"runs": self._runs, "loaded-records": self._loaded, "waiting-records": waiting} if self._target else {}

    @property
    def _waiting(self) -> Streams:
        if self._streams is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._streams

    def _take(self, record: SinkRecord, partition: TopicPartition, position: _Position) -> None:
        """Keep a record; report a bad one."""
        streams = self._waiting
        last = self._taken.get(partition)
        if last is not None and position <= last:  # the runtime has rewound
            streams.drop({partition}, position[0])
            self._unfinished = {each for each in self._unfinished if each[0] != partition or each[1] < position}
        try:
            streams.add(record)
        except DataError as error:
            reporter = self.context.errant_record_reporter
            if reporter is None:
                raise
            reporter.report(record, error)
        self._taken[partition] = position
        if self._since is None and streams.count:
            self._since = time.monotonic()

    @property
    def _is_due(self) -> bool:
        waiting, options, now = self._waiting, self._options, time.monotonic()
        full = waiting.count >= options.flush_size or waiting.size >= options.flush_bytes
        old = self._since is not None and now - self._since >= options.flush_interval
        return waiting.count > 0 and (full or old) and now >= self._again

    def _flush(self) -> None:
        """Run the target with what waits. Raises RetriableError, and ConnectError if it cannot help to try again."""
        from sluiceway.connectors.singer.streams import state_of

        streams, target = self._waiting, self._target
        assert target is not None  # noqa: S101 (start() has made it)
        started, count = time.monotonic(), streams.count
        try:
            target.load(streams.messages(), state_of(streams.ends()))
        except RetriableError as error:
            self._failures += 1
            if self._failures > self._options.max_retries:
                text = f"{error}\n({self._failures} runs have failed in a row, more than {MAX_RETRIES} allows)"
                self._fatal = ConnectError(text)
                raise self._fatal from error
            self._again = time.monotonic() + self._options.backoff
            self.context.timeout(int(self._options.backoff * 1000))
            raise
        except ConnectError as error:
            self._fatal = error
            raise
        log.info("%s has loaded %d records in %.1f s", self._options.target.name, count, time.monotonic() - started)
        streams.clear()
        self._since, self._failures = None, 0
        self._runs += 1
        self._loaded += count
        self.context.request_commit()


def new_streams(options: SinkOptions) -> Streams:
    """Return what makes the messages. Raises MissingToolError without the package for it."""
    try:
        from sluiceway.connectors.singer.streams import Streams
    except ImportError as error:
        raise MissingToolError(
            f"SingerSink needs a Python package that is not installed ({error}). Run: {install_command('singer')} in the "
            "Python environment of the tasks."
        ) from error
    return Streams(options)


class SingerSinkConnector(CheckedConnector, SinkConnector):
    """Loads records with a Singer target, which runs once for each flush: at least once."""

    task_class = SingerSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return DEFINITION

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return conflicts(values)

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str] | None:
        """Return the messages that the target would get."""
        from sluiceway.connectors.singer.streams import messages_of

        return messages_of(sink_options(config), records)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks
