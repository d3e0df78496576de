from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceRecord
from sluiceway.connectors.verifiable.source import VerifiableSourceConnector, VerifiableSourceTask
from sluiceway.connectors.verifiable.throughput_throttler import ThroughputThrottler
from sluiceway.connectors.verifiable.transactions import Transactions
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, ConnectError


class Stored:
    def __init__(self, offset: Offset | None = None) -> None:
        self.stored = offset
        self.asked: list[Partition] = []

    def offset(self, partition: Partition) -> Offset | None:
        self.asked.append(partition)
        return self.stored

    def offsets(self, partitions: Any) -> list[Offset | None]:
        return [self.offset(partition) for partition in partitions]


@dataclass
class Context:
    """A ``SourceTaskContext``."""

    configs: Mapping[str, str]
    offset_storage_reader: Stored
    transaction_context: Told | None = None


def started(config: Mapping[str, str], stored: Offset | None = None) -> VerifiableSourceTask:
    task = VerifiableSourceTask()
    reader = Stored(stored)
    task.initialize(Context(config, reader))
    task.start({"topic": "t", "id": "2", "name": "n", **config})
    assert reader.asked == [{"id": 2}]
    return task


def test_records_are_numbered_from_zero_as_kafkas_are() -> None:
    records = started({"batch.size": "3"}).poll()
    assert records is not None
    assert [(record.value, record.source_offset) for record in records] == [(n, {"seqno": n}) for n in range(3)]
    first = records[0]
    assert (first.source_partition, first.topic, first.kafka_partition) == ({"id": 2}, "t", None)
    assert (first.key, first.key_schema, first.value_schema) == (2, INT32_SCHEMA, INT64_SCHEMA)


def test_a_task_goes_on_behind_the_stored_number() -> None:
    (record,) = started({"batch.size": "1"}, {"seqno": 41}).poll() or ()
    assert record.value == 42


@pytest.mark.parametrize("seqno", ["5", -1, 1.5, True])
def test_a_stored_number_that_is_none_is_refused(seqno: object) -> None:
    with pytest.raises(ConnectError, match=r"PATCH /connectors/<name>/offsets"):
        started({}, {"seqno": seqno})


def test_a_complete_record_holds_name_task_topic_time_and_number() -> None:
    (record,) = started({"complete.record.data": "true", "batch.size": "1"}).poll() or ()
    assert list(record.value) == ["name", "task", "topic", "time_ms", "seqno"]
    assert {**record.value, "time_ms": 0} == {"name": "n", "task": 2, "topic": "t", "time_ms": 0, "seqno": 0}
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, is_key=False)
    assert converter.from_connect_data("t", record.value_schema, record.value)


def test_a_record_can_be_filled_up_have_no_schema_another_key_and_a_chosen_partition() -> None:
    config = {
        "complete.record.data": "true",
        "record.size": "100",
        "record.schema.enable": "false",
        "record.key": "seqno",
        "partitions": "3",
        "batch.size": "5",
    }
    records = started(config).poll() or ()
    assert {record.value_schema for record in records} == {None}
    assert {len(record.value["payload"]) for record in records} == {100}
    assert [(record.key, record.kafka_partition) for record in records] == [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1)]
    assert started({**config, "record.key": "none"}).value(1, 2)[1]["payload"] == records[0].value["payload"]


@pytest.mark.parametrize("key", [{"record.size": "1"}, {"record.key": "none"}])
def test_options_that_need_the_complete_record_say_so(key: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"needs complete\.record\.data=true"):
        VerifiableSourceConnector().start({"topic": "t", **key})


def test_a_task_stops_at_the_number_that_is_set() -> None:
    task = started({"records.max": "5", "batch.size": "3"})
    assert [len(task.poll() or ()) for _ in range(3)] == [3, 2, 0]
    assert not started({"records.max": "5"}, {"seqno": 4}).poll()


def test_each_task_gets_its_number_and_the_connector_is_found_by_kafkas_name() -> None:
    connector = VerifiableSourceConnector()
    connector.start({"topic": "t"})
    assert connector.task_configs(2) == [{"topic": "t", "id": "0"}, {"topic": "t", "id": "1"}]
    assert connector.exactly_once_support({}) is ExactlyOnceSupport.SUPPORTED
    path = "sluiceway.connectors.verifiable.source.VerifiableSourceConnector"
    assert connector_class(path) is VerifiableSourceConnector


class Told:
    """A transaction context that keeps what it is told, as the numbers of the records at which transactions end."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, int]] = []

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        assert record is not None
        self.ends.append(("commit", record.value))

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        assert record is not None
        self.ends.append(("abort", record.value))


def test_transactions_of_its_own_are_of_the_size_that_is_set_and_some_are_repeated_and_aborted() -> None:
    told = Told()
    config = {"topic": "t", "id": "2", "batch.size": "3", "transaction.records": "4", "transaction.abort.every": "2"}
    task = VerifiableSourceTask()
    task.initialize(Context(config, Stored({"seqno": 1}), told))
    task.start(config)
    polled = [[record.value for record in task.poll() or ()] for _ in range(4)]
    assert polled == [[2, 3], [4, 5, 6], [7, 7], [8, 9, 10]]
    assert told.ends == [("commit", 3), ("commit", 7), ("abort", 7)]
    assert VerifiableSourceConnector().can_define_transaction_boundaries({}).value == "SUPPORTED"


def test_a_repeated_record_has_the_offset_of_the_last_one() -> None:
    records = [SourceRecord({}, {"seqno": number}, "t", number) for number in range(4)]
    given = Transactions(Told(), 4, 1).end(records, 4)
    assert [(record.value, record.source_offset) for record in given] == [
        *((number, {"seqno": number}) for number in range(4)),
        *((number, {"seqno": 3}) for number in range(4)),
    ]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_pace_lets_records_go_evenly() -> None:
    clock = Clock()
    pace = ThroughputThrottler(10, clock)
    assert pace.take(100) == 1
    assert pace.take(100) == 0
    assert pace.wait_seconds(100) == pytest.approx(0.1)
    clock.now += 0.5001
    assert pace.take(100) == 5
    clock.now += 0.3001
    assert pace.take(2) == 2
    assert pace.take(2) == 1


def test_pace_does_not_make_up_for_a_long_pause() -> None:
    clock = Clock()
    pace = ThroughputThrottler(10, clock)
    clock.now += 1000
    assert pace.take(10**6) == 11
    assert pace.take(10**6) == 0


def test_pace_waits_for_a_handful_of_records_at_high_rates() -> None:
    pace = ThroughputThrottler(1000, Clock())
    assert pace.wait_seconds(500) == pytest.approx(0.049)
    assert pace.wait_seconds(1) == 0


def test_pace_without_limit_and_at_zero() -> None:
    assert (ThroughputThrottler(-1).take(7), ThroughputThrottler(-1).wait_seconds(7)) == (7, 0)
    assert ThroughputThrottler(0).take(7) == 0
    assert ThroughputThrottler(0).wait_seconds(7) > 0
