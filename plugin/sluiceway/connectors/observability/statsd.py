"""StatsdSourceConnector and its task: produce a record for each line of StatsD, or one for each series and interval."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence

from sluiceway.api import SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.listening.buffer import Buffer, Losses
from sluiceway.connectors.listening.keys import ListeningConnector
from sluiceway.connectors.observability import statsd_config as keys
from sluiceway.connectors.observability.records import METRIC_SCHEMA, Point, metric_struct
from sluiceway.connectors.observability.statsd_aggregate import Aggregates
from sluiceway.connectors.observability.statsd_config import statsd_options
from sluiceway.connectors.observability.statsd_lines import samples_of
from sluiceway.connectors.observability.statsd_listener import MOST_LINE_BYTES, Lines, StatsdListener
from sluiceway.data import OPTIONAL_BYTES_SCHEMA, STRING_SCHEMA
from sluiceway.errors import ConnectError, DataError

log = logging.getLogger(__name__)

_WAIT_SECONDS = 1.0
_SHOWN_BYTES = 200


class StatsdSourceTask(SourceTask):
    """Listens for lines, and returns them as records without offsets."""

    _listener: StatsdListener | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = statsd_options(config)
        own = options.listening
        self._buffer: Buffer[Lines] = Buffer(own.buffer_items, own.buffer_bytes)
        self._drops = Losses(
            f"%d lines are dropped: the buffer is full ({keys.LINES}, {keys.BYTES}), or an interval has too many series "
            f"({keys.FLUSH_SERIES})"
        )
        self._system_drops = Losses(
            f"%d packets are dropped by the operating system: they came faster than they were read. {keys.RECEIVE_BYTES} and "
            "net.core.rmem_max say how many bytes it holds"
        )
        self._lines: deque[tuple[bytes, int]] = deque()
        self._error: ConnectError | None = None
        self._aggregates = Aggregates(options.flush_series)
        self._began = _now()
        self._due = time.monotonic() + options.flush / 1000
        self._counts = {"lines": 0, "lines-bad": 0, "lines-lost": 0}
        self._listener = StatsdListener(options, self._buffer, self._drops, self._system_drops, self.context.wake)
        self._listener.start()
        log.info("Listening for StatsD on %s:%d (%s)", own.host, self._listener.port, ", ".join(options.protocols))

    @property
    def port(self) -> int:
        """The port that the task listens on."""
        return self._started().port

    def poll(self) -> Sequence[SourceRecord] | None:
        listener = self._started()
        self._drops.say()
        self._system_drops.say()
        if listener.failure is not None:
            raise ConnectError(f"The listener has ended: {listener.failure!r}") from listener.failure
        if self._error is not None:  # the records before the bad line have been returned
            raise self._error
        self._take(listener)
        if not self._lines:
            self.context.wait(self._wait_seconds())
            self._take(listener)
        return [*self._records(), *self._flushed()] or None

    def drain(self) -> Sequence[SourceRecord] | None:
        self._started().stop()
        self._lines.extend((line, batch.at) for batch in self._buffer.close() for line in batch.items)
        self._due = 0.0  # the interval ends now
        return [*self._records(), *self._flushed()] or None

    def _wait_seconds(self) -> float:
        return min(_WAIT_SECONDS, max(0.0, self._due - time.monotonic())) if self._options.flush else _WAIT_SECONDS

    def _take(self, listener: StatsdListener) -> None:
        taken = self._buffer.take()
        if taken:
            self._lines.extend((line, batch.at) for batch in taken for line in batch.items)
            listener.room()

    def _records(self) -> list[SourceRecord]:
        """Return the records of the lines. After a bad line that is not tolerated, those before it; the next poll raises."""
        records: list[SourceRecord] = []
        while self._lines:
            line, at = self._lines.popleft()
            self._counts["lines"] += 1
            try:
                points = self._points(line)
            except DataError as error:
                self._counts["lines-bad"] += 1
                try:
                    self._report(line, at, error)
                except ConnectError as failure:
                    if not records:
                        raise
                    self._error = failure
                    break
                continue
            records += [self._record(point, at) for point in points]
        return records

    def _points(self, line: bytes) -> list[Point]:
        """Return the points of a line that are not aggregated. Raises DataError."""
        if len(line) > MOST_LINE_BYTES:
            raise DataError(f"it has more than {MOST_LINE_BYTES} bytes")
        samples = samples_of(line)
        if not self._options.flush:
            return [sample.point() for sample in samples]
        alone = [sample.point() for sample in samples if sample.timestamp is not None]  # the client has aggregated it itself
        self._drops.add(sum(not self._aggregates.add(sample) for sample in samples if sample.timestamp is None))
        return alone

    def _report(self, line: bytes, at: int, error: DataError) -> None:
        record = SourceRecord(None, None, self._options.listening.topic, line, OPTIONAL_BYTES_SCHEMA, timestamp=at)
        beginning = line[:_SHOWN_BYTES].decode("utf-8", "replace")
        self.context.report(record, DataError(f"The line {beginning!r} cannot be read: {error}"))

    def _flushed(self) -> list[SourceRecord]:
        """Return the records of an interval that is over."""
        if not self._options.flush or time.monotonic() < self._due:
            return []
        began, self._began = self._began, _now()
        self._due = time.monotonic() + self._options.flush / 1000
        return [self._record(point, self._began) for point in self._aggregates.flush(began, self._began)]

    def _record(self, point: Point, at: int) -> SourceRecord:
        topic, key = self._options.listening.topic, point.series.key
        # Brokers refuse times that are far in the future: a client's clock must not fail the task.
        timestamp = at if point.timestamp is None else min(point.timestamp, at)
        value = metric_struct(point, at)
        return SourceRecord(None, None, topic, value, METRIC_SCHEMA, key, STRING_SCHEMA, timestamp=timestamp)

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of packets and lines, of those that are bad, dropped, or lost, and of those that wait."""
        listener = self._listener
        if listener is None:
            return {}
        return {
            **self._counts,
            "packets": listener.packets,
            "packets-dropped": self._system_drops.total,
            "lines-dropped": self._drops.total,
            "lines-waiting": self._buffer.items,
            "connections-refused": listener.refused,
        }

    def stop(self) -> None:
        listener = self._listener
        if listener is None:
            return
        listener.stop()
        left = sum(len(batch.items) for batch in self._buffer.close()) + len(self._lines) + self._aggregates.lines
        self._lines.clear()
        self._aggregates.flush(0, 0)
        if left:
            self._counts["lines-lost"] += left
            log.warning("%d lines are lost: they were received, and the task has ended before they were records", left)
        self._drops.say(at_once=True)
        self._system_drops.say(at_once=True)

    def _started(self) -> StatsdListener:
        if self._listener is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._listener


def _now() -> int:
    return time.time_ns() // 1_000_000


class StatsdSourceConnector(ListeningConnector):
    """Listens for metrics that applications send as StatsD by UDP or TCP, with DogStatsD's tags: a record for each line, or one
    for each series and interval. One task listens.
    """

    task_class = StatsdSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.STATSD

    def start(self, config: Mapping[str, str]) -> None:
        statsd_options(config)
        self._config = dict(config)
