"""A valid sink connector fulfills the contract, and each test of the contract detects a violation."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from sluiceway.api import SinkConnector, SinkRecord, SinkTask, TopicPartition
from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.errors import DataError, RetriableError
from sluiceway.testing import SinkConnectorContract
from support.eventually import LIMIT

from .breaches import breaches

CONFIG = {"table": "people"}


class GoodTask(SinkTask):
    """Keeps strings by partition and writes them to its table at each flush."""

    table: ClassVar[set[str]] = set()
    _buffer: Mapping[TopicPartition, list[str]] | None = None

    def start(self, config: Mapping[str, str]) -> None:
        GoodConnector.config_def().parse(config)
        self._buffer = {}

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self._buffer = {**(self._buffer or {}), **{partition: [] for partition in partitions}}

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._buffer = {one: texts for one, texts in (self._buffer or {}).items() if one not in partitions}

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            if not isinstance(record.value, str):
                raise DataError(f"Only texts can be written, not {record.value!r}.")
            assert self._buffer is not None
            self._buffer[TopicPartition(record.topic, record.kafka_partition)].append(record.value)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        for texts in (self._buffer or {}).values():
            self.table.update(texts)


class GoodConnector(SinkConnector):
    """Writes strings."""

    task_class: ClassVar[type[SinkTask]] = GoodTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey(name="table", type=Type.STRING, doc="Where to write.")])

    def start(self, config: Mapping[str, str]) -> None:
        self.config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [dict(self.config)] * max_tasks


class Contract(SinkConnectorContract):
    def check_written(self, config: Mapping[str, str], records: Sequence[SinkRecord]) -> None:
        missing = {record.value for record in records} - GoodTask.table
        assert not missing, f"{missing} are not in the table"


class NeedsRecordsTask(GoodTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        records[0].value.upper()


class NotWritingTask(GoodTask):
    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        pass


class NeedsOffsetsTask(GoodTask):
    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        max(offsets.values())


class NothingCommittedTask(GoodTask):
    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return None  # type: ignore[return-value]


class TooFarTask(GoodTask):
    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return {partition: offset + 1 for partition, offset in offsets.items()}


class OthersOffsetsTask(GoodTask):
    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return {TopicPartition("another", 0): 1}


class NoTombstonesTask(GoodTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        super().put([record.new_record(value=record.value.strip()) for record in records])


class OnlyTextsTask(GoodTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        super().put([record.new_record(value="" if record.value is None else record.value.strip()) for record in records])


class ChangingTask(GoodTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        super().put(records)
        for record in records:
            record.value += "!"


class EmptyingTask(GoodTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        super().put(records)
        records.clear()  # type: ignore[attr-defined]


class OnceOnlyTask(GoodTask):
    seen: ClassVar[set[str]] = set()

    def put(self, records: Sequence[SinkRecord]) -> None:
        super().put(records)
        for record in records:
            if record.value in self.seen:
                raise DataError(f"{record.value} is there already.")
            self.seen.add(record.value)


class ClosesAllTask(GoodTask):
    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._buffer = {}


class StopsOnceTask(GoodTask):
    def stop(self) -> None:
        if self._buffer is not None:
            self._buffer["not a partition"]  # type: ignore[index]
        self._buffer = None


class HangingTask(GoodTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        threading.Event().wait(2)


class RetryingTask(GoodTask):
    """Raises RetriableError at the first put."""

    tried = False

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.tried, tried = True, self.tried
        if not tried:
            raise RetriableError("The table is locked.")
        super().put(records)


class SilentAlterConnector(GoodConnector):
    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        return None  # type: ignore[return-value]


class RaisingAlterConnector(GoodConnector):
    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        return max(offset or 0 for offset in offsets.values()) > 0


class ChangesOffsetsConnector(GoodConnector):
    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        offsets.clear()  # type: ignore[attr-defined]
        return True


def with_task(task: type[SinkTask]) -> type[SinkConnector]:
    connector = type(f"{task.__name__}Connector", (GoodConnector,), {"task_class": task, "__module__": __name__})
    globals()[connector.__name__] = connector
    return connector


@pytest.fixture(autouse=True)
def _empty_table() -> None:
    GoodTask.table.clear()
    OnceOnlyTask.seen.clear()


def found(connector: type[SinkConnector], **settings: Any) -> dict[str, str]:
    return breaches(Contract, CONFIG, connector_class=connector, **settings)


@pytest.mark.parametrize("connector", [GoodConnector, with_task(RetryingTask)])
def test_a_valid_sink_fulfills_the_contract(connector: type[SinkConnector]) -> None:
    assert found(connector) == {}


COMMIT = "test_records_are_taken_and_their_offsets_committed"
HANGING = with_task(HangingTask)
BROKEN: list[tuple[type[SinkConnector], str, str]] = [
    (with_task(NotWritingTask), COMMIT, "are not in the table"),
    (with_task(NothingCommittedTask), COMMIT, "returned None"),
    (with_task(TooFarTask), COMMIT, "where 3 was given"),
    (with_task(OthersOffsetsTask), COMMIT, "which was not passed to it"),
    (HANGING, COMMIT, "did not return within 0.2 s"),
    (with_task(NeedsRecordsTask), "test_an_empty_put_is_taken", "raised IndexError"),
    (with_task(NeedsOffsetsTask), "test_a_commit_without_new_records_is_taken", "raised ValueError"),
    (with_task(NoTombstonesTask), "test_null_values_are_taken_or_refused", "raised AttributeError"),
    (with_task(OnlyTextsTask), "test_records_that_cannot_be_written_raise_an_error_of_connects", "raised AttributeError"),
    (with_task(ChangingTask), "test_records_are_left_as_they_were", "changed the records"),
    (with_task(EmptyingTask), "test_records_are_left_as_they_were", "changed the records or the list"),
    (with_task(OnceOnlyTask), "test_redelivered_records_are_taken", "is there already"),
    (with_task(ClosesAllTask), "test_partitions_are_taken_away_and_given_back", "raised KeyError"),
    (with_task(StopsOnceTask), "test_stopping_a_task_twice_is_harmless", "raised KeyError"),
    (SilentAlterConnector, "test_offsets_may_be_set_by_a_user", "returned None"),
    (RaisingAlterConnector, "test_offsets_may_be_set_by_a_user", "raised ValueError"),
    (ChangesOffsetsConnector, "test_offsets_may_be_set_by_a_user", "changed the offsets"),
]


@pytest.mark.parametrize(("connector", "rule", "text"), BROKEN, ids=[f"{one[0].__name__}-{one[2]}" for one in BROKEN])
def test_a_violation_is_detected(connector: type[SinkConnector], rule: str, text: str) -> None:
    failed = found(connector, only=rule, call_within=0.2 if connector is HANGING else LIMIT)
    assert text in failed.get(rule, "nothing"), failed


def test_every_sink_test_is_covered_by_a_violation() -> None:
    rules = {name for name in vars(SinkConnectorContract) if name.startswith("test_")}
    assert rules == {rule for _, rule, _ in BROKEN}
