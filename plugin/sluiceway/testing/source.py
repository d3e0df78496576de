"""The contract of a source connector."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceRecord
from sluiceway.data import Header
from sluiceway.errors import ConnectError
from sluiceway.runtime.memory import MemoryOffsets, MemorySourceContext
from sluiceway.testing.checks import breach, fingerprint, no_error, only_these_errors
from sluiceway.testing.connector import ConnectorContract
from sluiceway.testing.running import RunningSource

Offsets = list[tuple[Partition, Offset | None]]

_IDLE_POLLS = 3


class SourceConnectorContract(ConnectorContract):
    """Subclass as ``Test...``; set ``connector_class``, ``record_count`` and the fixture ``config``.

    The source must have ``record_count`` records when a test starts, or return them within ``records_within`` seconds.
    ``poll_within`` is the timeout of ``poll`` in seconds. Set ``resumable = False`` for sources that cannot resume after a
    restart, and ``may_repeat = True`` if several records have the same offset.
    """

    connector_class: ClassVar[type[SourceConnector]]
    record_count: ClassVar[int] = 3
    tasks_max: ClassVar[int] = 1
    records_within: ClassVar[float] = 10.0
    poll_within: ClassVar[float] = 2.0
    resumable: ClassVar[bool] = True
    may_repeat: ClassVar[bool] = False

    def identity(self, record: SourceRecord) -> object:
        """Return a value that is equal if a record is read again. Override it if other attributes may differ then."""
        return fingerprint((record.source_partition, record.source_offset, record.topic, record.key, record.value))

    def new_context(self, config: Mapping[str, str]) -> MemorySourceContext:
        return MemorySourceContext(config)

    def test_records_have_a_topic_and_a_place_that_can_be_stored(self, config: dict[str, str]) -> None:
        with self._running(config) as source:
            for record in self._all(source):
                self._check_record(record)

    def test_an_idle_poll_returns_soon(self, config: dict[str, str]) -> None:
        with self._running(config) as source:
            self._all(source)
            for _ in range(_IDLE_POLLS):
                source.poll()

    def test_polled_records_are_not_changed_later(self, config: dict[str, str]) -> None:
        with self._running(config) as source:
            records = source.read(1, self.records_within)
            before = [fingerprint(record) for record in records]
            records += source.read(self.record_count - len(records), self.records_within)
            source.poll()
        for record, was in zip(records, before, strict=False):
            if fingerprint(record) != was:
                advice = "Create a new dict for each offset and a new value for each record"
                breach(self._task("poll"), f"changed a record after it was returned, {record!r}", advice)

    def test_committing_what_was_polled_is_taken(self, config: dict[str, str]) -> None:
        with self._running(config) as source:
            records = self._all(source)
            with no_error(self._task("commit"), "Accept every record in commit_record, also filtered ones (-1, -1)"):
                source.acknowledge(records)
                source.call(source.tasks[0].commit_record, records[0], -1, -1)

    def test_a_restart_neither_loses_nor_repeats_records(self, config: dict[str, str]) -> None:
        if not self.resumable:
            return
        with self._running(config) as source:
            records = self._all(source)
        for stored in sorted({1, len(records) // 2, len(records) - 1, len(records)} - {0}):
            offsets = MemoryOffsets()
            offsets.store_all(records[:stored])
            with self._running(config, offsets) as source:
                left = len(records) - stored
                again = source.read(left, self.records_within) if left else source.poll()
            self._compare(records, stored, again)

    def test_stopping_a_task_twice_is_harmless_and_ends_poll(self, config: dict[str, str]) -> None:
        with self._running(config) as source:
            source.read(1, self.records_within)
            with no_error(self._task("stop"), "Let stop() do nothing at the second call"):
                source.stop_tasks()
                source.stop_tasks()
            try:
                source.poll()  # any error is allowed, but it must not hang
            except ConnectError:
                pass
            except Exception as error:
                if isinstance(error, AssertionError):
                    raise

    def test_exactly_once_support_is_said(self, config: dict[str, str]) -> None:
        support = self.connector_class().exactly_once_support(config)
        if not isinstance(support, ExactlyOnceSupport):
            breach(self._where("exactly_once_support"), f"returned {support!r}", "Return an ExactlyOnceSupport")
        if support is ExactlyOnceSupport.SUPPORTED and (self.may_repeat or not self.resumable):
            breach(self._where("exactly_once_support"), "is SUPPORTED, but a restart may repeat records", "Return UNSUPPORTED")

    def test_its_own_offsets_may_be_set_by_a_user(self, config: dict[str, str]) -> None:
        """``alter_offsets`` takes the offsets that the connector's tasks write, and None for a reset."""
        with self._running(config) as source:
            records = self._all(source)
        newest = {json.dumps(record.source_partition): record for record in records}.values()
        own: Offsets = [(dict(record.source_partition or {}), record.source_offset) for record in newest]
        garbage: Offsets = [({"no": "such"}, {"offset": "x"}), ({}, None)]
        where = self._where("alter_offsets")
        resets: Offsets = [(partition, None) for partition, _ in own]
        for offsets in (own, resets, []):
            with no_error(where, "Take the offsets that the connector's tasks write, None (forget the offset), and nothing"):
                self._alter(config, offsets)
        with only_these_errors(where, (ConnectError,), "Refuse offsets with ConnectError, and say what is wrong with them"):
            self._alter(config, garbage)

    def _alter(self, config: dict[str, str], offsets: Offsets) -> None:
        before = fingerprint(offsets)
        answer = self.connector_class().alter_offsets(dict(config), offsets)
        if not isinstance(answer, bool):
            breach(self._where("alter_offsets"), f"returned {answer!r}", "Return True if you checked the offsets, else False")
        if fingerprint(offsets) != before:
            breach(self._where("alter_offsets"), "changed the offsets it was given", "Only check them")

    @contextmanager
    def _running(self, config: dict[str, str], offsets: MemoryOffsets | None = None) -> Iterator[RunningSource]:
        seconds = max(self.poll_within, 0.05)
        with RunningSource(
            self.connector_class, config, offsets=offsets, tasks_max=self.tasks_max, seconds=seconds, check=self._check_polled
        ) as source:
            yield source

    def _check_polled(self, polled: object) -> None:
        if polled is None:
            return
        if not isinstance(polled, Sequence) or not all(isinstance(record, SourceRecord) for record in polled):
            breach(self._task("poll"), f"returned {polled!r}", "Return a list of SourceRecord or None")

    def _all(self, source: RunningSource) -> list[SourceRecord]:
        records = source.read(self.record_count, self.records_within)
        if len(records) < self.record_count:
            what = f"returned {len(records)} of {self.record_count} records within {self.records_within:g} s"
            breach(self._task("poll"), what, "Set record_count to the number of records in the source, or correct poll()")
        return records

    def _compare(self, records: list[SourceRecord], stored: int, again: list[SourceRecord]) -> None:
        """Compare the records read after a restart with those after the first ``stored`` ones, in any order."""
        position = f"after a restart at record {stored} of {len(records)}, offset {records[stored - 1].source_offset}"
        done = [self.identity(record) for record in records[:stored]]
        found = [self.identity(record) for record in again]
        repeated = [record for record, name in zip(again, found, strict=True) if name in done]
        if repeated and not self.may_repeat:
            advice = "Set each record's offset to the position after the record, and resume there"
            breach(self._task("poll"), f"repeated {repeated[0].source_offset} {position}", advice)
        lost = [record for record in records[stored:] if self.identity(record) not in found]
        if lost and not (self.may_repeat and repeated):
            advice = "Set each record's offset to the position after the record, not after records that were read ahead"
            breach(self._task("poll"), f"lost {lost[0].source_offset} {position}", advice)

    def _check_record(self, record: SourceRecord) -> None:
        where = self._task("poll")
        if not (isinstance(record.topic, str) and record.topic):
            breach(where, f"returned a record with the topic {record.topic!r}", "Set the topic of each record")
        for name, found in (("source_partition", record.source_partition), ("source_offset", record.source_offset)):
            if found is None and not self.resumable:
                continue
            self._check_stored(where, name, found)
        self._check_rest(where, record)

    @staticmethod
    def _check_stored(where: str, name: str, found: Offset | None) -> None:
        advice = "Use a dict from str to str, int, finite float, bool and None: it is stored as JSON"
        if not isinstance(found, Mapping):
            breach(where, f"returned a record with the {name} {found!r}", advice)
        for key, value in found.items():
            stored = isinstance(value, (str, int, bool, type(None))) or (isinstance(value, float) and math.isfinite(value))
            if not (isinstance(key, str) and stored):
                breach(where, f"returned a record whose {name} has {key!r}: {value!r}", advice)

    @staticmethod
    def _check_rest(where: str, record: SourceRecord) -> None:
        rules: dict[str, Callable[[Any], bool]] = {
            "kafka_partition": lambda value: value is None or (type(value) is int and value >= 0),
            "timestamp": lambda value: value is None or (type(value) is int and value >= 0),
            "headers": lambda value: isinstance(value, tuple) and all(isinstance(header, Header) for header in value),
        }
        for name, holds in rules.items():
            if not holds(getattr(record, name)):
                advice = "Partitions and timestamps (ms) must be None or an int of at least 0, headers a tuple of Header"
                breach(where, f"returned a record with the {name} {getattr(record, name)!r}", advice)

    def _task(self, method: str) -> str:
        return f"{self.connector_class.task_class.__name__}.{method}()"
