from __future__ import annotations

from collections.abc import Mapping

import pytest

from sluiceway.api import ExactlyOnceSupport, Offset, SourceRecord
from sluiceway.connectors.verifiable.source import Transactions, VerifiableSourceConnector, VerifiableSourceTask
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.testing import MemoryOffsets, MemorySourceContext


def started(config: Mapping[str, str], stored: Offset | None = None) -> VerifiableSourceTask:
    task = VerifiableSourceTask()
    task.initialize(MemorySourceContext(config, MemoryOffsets([] if stored is None else [({"id": 2}, stored)])))
    task.start({"topic": "t", "id": "2", "name": "n", **config})
    return task


def test_records_are_numbered_from_zero_like_kafkas() -> None:
    records = started({"batch.size": "3"}).poll()
    assert records is not None
    assert [(record.value, record.source_offset) for record in records] == [(n, {"seqno": n}) for n in range(3)]
    first = records[0]
    assert (first.source_partition, first.topic, first.kafka_partition) == ({"id": 2}, "t", None)
    assert (first.key, first.key_schema, first.value_schema) == (2, INT32_SCHEMA, INT64_SCHEMA)


def test_a_task_resumes_after_the_stored_number() -> None:
    (record,) = started({"batch.size": "1"}, {"seqno": 41}).poll() or ()
    assert record.value == 42


@pytest.mark.parametrize("seqno", ["5", -1, 1.5, True])
def test_an_invalid_stored_number_is_refused(seqno: object) -> None:
    with pytest.raises(ConnectError, match=r"PATCH /connectors/<name>/offsets"):
        started({}, {"seqno": seqno})


def test_a_complete_record_has_name_task_topic_time_and_number() -> None:
    (record,) = started({"complete.record.data": "true", "batch.size": "1"}).poll() or ()
    assert list(record.value) == ["name", "task", "topic", "time_ms", "seqno"]
    assert {**record.value, "time_ms": 0} == {"name": "n", "task": 2, "topic": "t", "time_ms": 0, "seqno": 0}
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, is_key=False)
    assert converter.from_connect_data("t", record.value_schema, record.value)


def test_payload_size_schema_key_and_partition_are_configurable() -> None:
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
def test_keys_that_require_complete_records_report_it(key: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"needs complete\.record\.data=true"):
        VerifiableSourceConnector().start({"topic": "t", **key})


def test_a_task_stops_at_records_max() -> None:
    task = started({"records.max": "5", "batch.size": "3"})
    assert [len(task.poll() or ()) for _ in range(3)] == [3, 2, 0]
    assert not started({"records.max": "5"}, {"seqno": 4}).poll()


def test_each_task_gets_its_id_and_the_connector_is_found_by_its_java_class() -> None:
    connector = VerifiableSourceConnector()
    connector.start({"topic": "t"})
    assert connector.task_configs(2) == [{"topic": "t", "id": "0"}, {"topic": "t", "id": "1"}]
    assert connector.exactly_once_support({}) is ExactlyOnceSupport.SUPPORTED
    path = "sluiceway.connectors.verifiable.source.VerifiableSourceConnector"
    assert connector_class(path) is VerifiableSourceConnector


class TransactionEnds:
    """A transaction context that keeps the numbers of the records at which transactions end."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, int]] = []

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        assert record is not None
        self.ends.append(("commit", record.value))

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        assert record is not None
        self.ends.append(("abort", record.value))


def test_transactions_have_the_configured_size_and_some_are_repeated_and_aborted() -> None:
    transactions = TransactionEnds()
    config = {"topic": "t", "id": "2", "batch.size": "3", "transaction.records": "4", "transaction.abort.every": "2"}
    task = VerifiableSourceTask()
    context = MemorySourceContext(config, MemoryOffsets([({"id": 2}, {"seqno": 1})]))
    context.transaction_context = transactions
    task.initialize(context)
    task.start(config)
    polled = [[record.value for record in task.poll() or ()] for _ in range(4)]
    assert polled == [[2, 3], [4, 5, 6], [7, 7], [8, 9, 10]]
    assert transactions.ends == [("commit", 3), ("commit", 7), ("abort", 7)]
    assert VerifiableSourceConnector().can_define_transaction_boundaries({}).value == "SUPPORTED"


def test_a_repeated_record_has_the_offset_of_the_last_one() -> None:
    records = [SourceRecord({}, {"seqno": number}, "t", number) for number in range(4)]
    given = Transactions(TransactionEnds(), 4, 1).end(records, 4)
    assert [(record.value, record.source_offset) for record in given] == [
        *((number, {"seqno": number}) for number in range(4)),
        *((number, {"seqno": 3}) for number in range(4)),
    ]
