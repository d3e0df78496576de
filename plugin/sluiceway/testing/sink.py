"""The contract of a sink connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from sluiceway.api import SinkConnector, SinkRecord, SinkTask, TopicPartition
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.errors import ConnectError
from sluiceway.runtime.memory import MemoryConnectorContext, MemorySinkContext
from sluiceway.testing.checks import breach, fingerprint, no_error, only_these_errors
from sluiceway.testing.connector import ConnectorContract
from sluiceway.testing.running import full_config, next_offsets, put
from sluiceway.testing.threads import TaskThread

_NO_HANG = "Raise RetriableError if the other system is unavailable: the same records are delivered again"
_STRUCT = Schema.struct({"id": INT64_SCHEMA})
_ODD = [
    (1, INT64_SCHEMA),
    (1.5, None),
    ({"a": [1, None]}, None),
    (b"\x00\xff", Schema(Type.BYTES)),
    (True, None),
    ([], None),
    (Struct(_STRUCT, {"id": 1}), _STRUCT),
    ("", STRING_SCHEMA),
]


class SinkConnectorContract(ConnectorContract):
    """Subclass as ``Test...``; set ``connector_class`` and the fixture ``config``; override ``records`` if necessary.

    Override ``check_written`` to check the data in the other system. ``call_within`` is the timeout of calls in seconds.
    """

    connector_class: ClassVar[type[SinkConnector]]
    call_within: ClassVar[float] = 30.0
    topic: ClassVar[str] = "contract"

    def records(self) -> Sequence[SinkRecord]:
        """Return records of at least two partitions that the sink can write; new objects at each call. Default: strings."""
        return [
            SinkRecord(self.topic, partition, offset, f"{partition}/{offset}", STRING_SCHEMA, f"key {offset}", STRING_SCHEMA)
            for offset in range(3)
            for partition in range(2)
        ]

    def check_written(self, config: Mapping[str, str], records: Sequence[SinkRecord]) -> None:
        """Assert that the other system has these records. Called whenever the sink has returned their offsets for a commit.

        Records that were put twice may exist once or twice, depending on the connector's guarantees.
        """

    def new_context(self, config: Mapping[str, str]) -> MemorySinkContext:
        return MemorySinkContext(config)

    def test_records_are_taken_and_their_offsets_committed(self, config: dict[str, str]) -> None:
        records = self.records()
        with self._running(config) as sink:
            sink.put(records)
            self._check_committed(config, records, sink.pre_commit(next_offsets(records)))

    def test_an_empty_put_is_taken(self, config: dict[str, str]) -> None:
        advice = "Return at once from put([]), which is called if there are no records, also before the first ones"
        with self._running(config) as sink, no_error(self._task("put"), advice):
            sink.put([])
            sink.put(self.records())
            sink.put([])

    def test_a_commit_without_new_records_is_taken(self, config: dict[str, str]) -> None:
        with self._running(config) as sink:
            for offsets in ({}, dict.fromkeys(sink.partitions, 0)):
                with no_error(self._task("pre_commit"), "Accept offsets of partitions without records"):
                    answer = sink.pre_commit(offsets)
                self._check_offsets(offsets, answer)

    def test_null_values_are_taken_or_refused(self, config: dict[str, str]) -> None:
        """A tombstone is written, deletes data, is skipped, or is refused with an error of Connect."""
        first = self.records()[0]
        nothing = {"value": None, "value_schema": None}
        for record in (first.new_record(**nothing), first.new_record(**nothing, key=None, key_schema=None)):
            self._put_only(config, record, "Handle a null value (a tombstone), or raise DataError")

    def test_records_that_cannot_be_written_raise_an_error_of_connects(self, config: dict[str, str]) -> None:
        for value, schema in _ODD:
            record = self.records()[0].new_record(value=value, value_schema=schema)
            advice = f"Write, report or skip a {type(value).__name__}, or raise DataError (or RetriableError)"
            self._put_only(config, record, advice)

    def test_records_are_left_as_they_were(self, config: dict[str, str]) -> None:
        records = self.records()
        before = [fingerprint(record) for record in records]
        given = list(records)
        with self._running(config) as sink:
            sink.put(given)
            sink.pre_commit(next_offsets(records))
        if [fingerprint(record) for record in records] != before or given != list(records):
            breach(self._task("put"), "changed the records or the list that it was given", "Copy them: they may come again")

    def test_redelivered_records_are_taken(self, config: dict[str, str]) -> None:
        """After a crash before the commit, a new task gets the same records again."""
        records = self.records()
        with self._running(config) as sink:
            sink.put(records)
        with self._running(config) as sink:
            with no_error(self._task("put"), "Accept records that were written before: delivery is at least once"):
                sink.put(self.records())
            self._check_committed(config, records, sink.pre_commit(next_offsets(records)))

    def test_partitions_are_taken_away_and_given_back(self, config: dict[str, str]) -> None:
        records = self.records()
        advice = "Keep the state of a partition from open() to close(), and that of other partitions after it"
        with self._running(config) as sink:
            kept, moved = sink.partitions[0], sink.partitions[1:]
            sink.put(records)
            sink.pre_commit(next_offsets(records))
            with no_error(self._task("close"), advice):
                sink.close(moved)
                sink.put([record for record in records if _partition(record) == kept])
                sink.open(moved)
                sink.put(records)
                answer = sink.pre_commit(next_offsets(records))
            self._check_committed(config, records, answer)

    def test_stopping_a_task_twice_is_harmless(self, config: dict[str, str]) -> None:
        with self._running(config) as sink:
            sink.put(self.records())
            with no_error(self._task("stop"), "Let stop() do nothing at the second call"):
                sink.stop()
                sink.stop()

    def test_offsets_may_be_set_by_a_user(self, config: dict[str, str]) -> None:
        where = self._where("alter_offsets")
        partitions = {_partition(record) for record in self.records()}
        some: list[dict[TopicPartition, int | None]] = [{}, dict.fromkeys(partitions, 1), dict.fromkeys(partitions)]
        for offsets in some:
            before = dict(offsets)
            with only_these_errors(where, (ConnectError,), "Refuse offsets with a ConnectError that says what is wrong"):
                answer = self.connector_class().alter_offsets(dict(config), offsets)
                if not isinstance(answer, bool):
                    breach(where, f"returned {answer!r}", "Return True if you checked the offsets, else False")
            if offsets != before:
                breach(where, "changed the offsets that it was given", "Do not change them")

    def _put_only(self, config: dict[str, str], record: SinkRecord, advice: str) -> None:
        with self._running(config) as sink, only_these_errors(self._task("put"), (ConnectError,), advice):
            sink.put([record])
            sink.pre_commit(next_offsets([record]))

    @contextmanager
    def _running(self, config: dict[str, str]) -> Iterator[_RunningTask]:
        """Start the connector and its first task, which gets all partitions of the sample records."""
        partitions = sorted({_partition(record) for record in self.records()})
        full = full_config(self.connector_class, {"topics": self.topic, **config})
        connector = self.connector_class()
        connector.initialize(MemoryConnectorContext())
        connector.start(full)
        try:
            task_config = {**full, **connector.task_configs(1)[0]}
            sink = _RunningTask(connector.task_class(), task_config, partitions, self.call_within)
            try:
                sink.start()
                yield sink
            except BaseException:
                with suppress(Exception):  # report the first error
                    sink.end()
                raise
            sink.end()
        finally:
            connector.stop()

    def _check_committed(
        self, config: Mapping[str, str], records: Sequence[SinkRecord], answer: Mapping[TopicPartition, int]
    ) -> None:
        self._check_offsets(next_offsets(records), answer)
        safe = [record for record in records if record.kafka_offset < answer.get(_partition(record), 0)]
        self.check_written(config, safe)

    def _check_offsets(self, asked: Mapping[TopicPartition, int], answer: object) -> None:
        where = self._task("pre_commit")
        if not isinstance(answer, Mapping):
            breach(where, f"returned {answer!r}", "Return the offsets that are safe to commit, or an empty dict")
        for partition, offset in answer.items():
            if partition not in asked:
                breach(
                    where,
                    f"returned an offset of {partition}, which was not passed to it",
                    "Return only offsets of the given partitions",
                )
            if type(offset) is not int or not 0 <= offset <= asked[partition]:
                advice = "Return the next offset to read, at most the given one, which is after the last record put"
                breach(where, f"returned {offset!r} for {partition}, where {asked[partition]} was given", advice)

    def _task(self, method: str) -> str:
        return f"{self.connector_class.task_class.__name__}.{method}()"


class _RunningTask:
    """A started sink task. One thread makes all its calls."""

    def __init__(self, task: SinkTask, config: Mapping[str, str], partitions: list[TopicPartition], seconds: float) -> None:
        self.partitions = partitions
        self._task, self._config, self._seconds = task, config, seconds
        self._context = MemorySinkContext(config)
        self._thread = TaskThread()

    def start(self) -> None:
        self._task.initialize(self._context)
        self._call(self._task.start, self._config)
        self.open(self.partitions)

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self._context.assignment |= frozenset(partitions)
        self._call(self._task.open, frozenset(partitions))

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        self._call(self._task.close, frozenset(partitions))
        self._context.assignment -= frozenset(partitions)

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._call(put, self._task, records)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Any:
        return self._call(self._task.pre_commit, dict(offsets))

    def stop(self) -> None:
        self._call(self._task.stop)

    def end(self) -> None:
        """Close the assigned partitions and stop the task, like the runtime does."""
        try:
            if self._context.assignment:
                self.close(sorted(self._context.assignment))
            self.stop()
        finally:
            self._thread.end()

    def _call(self, function: Any, *arguments: object) -> Any:
        return self._thread.call(function, *arguments, seconds=self._seconds, advice=_NO_HANG)


def _partition(record: SinkRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.kafka_partition)
