from __future__ import annotations

import pickle
from typing import Any, cast

import pytest
from confluent_kafka import Message

from sluiceway.api import Converter, SchemaAndValue, SinkRecord, TopicPartition, Transform
from sluiceway.config.worker import WorkerConfig
from sluiceway.data import INT8_SCHEMA, STRING_SCHEMA, Header
from sluiceway.errors import RetriableError
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.runtime.errors.errant_record_reporter import consumer_record_of
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.sink.sink_records import SinkRecordConverter
from sluiceway.runtime.task_converters import task_converters
from unit.runtime.chains import chain


def message(offset: int, value: bytes | None, topic: str = "t", partition: int = 0, **more: Any) -> ConsumedMessage:
    options: dict[str, Any] = {"timestamp": (1, 1000), **more}
    return cast(ConsumedMessage, Message(topic=topic, partition=partition, offset=offset, value=value, **options))


def reader(**config: str) -> tuple[SinkRecordConverter, list[str]]:
    topics: list[str] = []
    properties = {key.replace("_", "."): value for key, value in config.items()}
    worker = WorkerConfig.of({"key.converter": "StringConverter", "value.converter": "JsonConverter"})
    return SinkRecordConverter(task_converters(properties, worker), RetryWithToleranceOperator(properties), topics.append), topics


def test_a_record_has_all_parts_of_its_message() -> None:
    read, topics = reader()
    envelope = b'{"schema":{"type":"string","optional":false},"payload":"foo"}'
    (record,) = read.convert([message(7, envelope, partition=3, key=b"k", headers=[("h", b"1")])]).records
    assert (record.topic, record.kafka_partition, record.kafka_offset) == ("t", 3, 7)
    assert (record.original_topic, record.original_kafka_partition, record.original_kafka_offset) == ("t", 3, 7)
    assert (record.key, record.value, record.value_schema) == ("k", "foo", STRING_SCHEMA)
    assert (record.timestamp, record.timestamp_type) == (1000, 1)
    assert record.headers == (Header("h", 1, INT8_SCHEMA),)
    assert topics == ["t"]
    assert pickle.loads(pickle.dumps(record)).value == "foo"  # noqa: S301 (our own bytes)


@pytest.mark.parametrize(
    ("needed", "advice"), [(True, "set value.converter.schema.content"), (False, "set schemas.enable=false")]
)
def test_plain_json_is_refused_with_the_advice_that_fits_the_sink(needed: bool, advice: str) -> None:
    worker = WorkerConfig.of({"key.converter": "StringConverter", "value.converter": "JsonConverter"})
    tolerance = RetryWithToleranceOperator({})
    read = SinkRecordConverter(task_converters({}, worker), tolerance, lambda _topic: None, needs_schemas=needed)
    failure = read.convert([message(0, b'{"id": 1}')]).failure
    assert failure is not None
    assert advice in str(failure.__cause__)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_a_message_without_timestamp_and_headers_has_none(kind: int) -> None:
    (record,) = reader()[0].convert([message(0, None, timestamp=(kind, -1))]).records
    assert (record.timestamp, record.timestamp_type, record.headers, record.value) == (None, kind, (), None)


def test_a_batch_has_the_first_and_next_offset_of_each_partition() -> None:
    places = [("t", 0, 5), ("t", 0, 6), ("t", 1, 9), ("u", 1, 2), ("t", 0, 8)]
    batch = reader()[0].convert([message(offset, None, topic, partition) for topic, partition, offset in places])
    assert batch.starts == {("t", 0): 5, ("t", 1): 9, ("u", 1): 2}
    assert batch.ends == {("t", 0): 9, ("t", 1): 10, ("u", 1): 3}
    batch.drop(frozenset({TopicPartition("t", 0)}))
    assert [record.kafka_offset for record in batch.records] == [9, 2]
    assert batch.ends == {("t", 1): 10, ("u", 1): 3}


@pytest.mark.parametrize("bad_at", [0, 2])
def test_the_batch_ends_before_a_message_that_cannot_be_converted(bad_at: int) -> None:
    messages = [message(offset, b"bad" if offset == bad_at else None) for offset in range(4)]
    batch = reader()[0].convert(messages)
    assert [record.kafka_offset for record in batch.records] == list(range(bad_at))
    assert batch.ends == {("t", 0): bad_at}
    assert batch.failure is not None
    assert f"the record at offset {bad_at} of t-0 cannot be converted" in str(batch.failure)


def test_a_chain_does_not_change_the_original_topic_and_offset() -> None:
    batch = reader()[0].convert([message(5, None), message(6, None, partition=1)])
    batch.transform(
        chain({"type": "RegexRouter", "regex": "t", "replacement": "u"}, in_place=True), RetryWithToleranceOperator({})
    )
    assert [(record.topic, record.original_topic, record.original_kafka_offset) for record in batch.records] == [
        ("u", "t", 5),
        ("u", "t", 6),
    ]
    batch.drop(frozenset({TopicPartition("t", 1)}))
    assert [record.kafka_offset for record in batch.records] == [5]


def test_the_offset_of_a_filtered_record_counts_as_read() -> None:
    batch = reader()[0].convert([message(5, None), message(6, None)])
    batch.transform(chain({"type": "Filter"}), RetryWithToleranceOperator({}))
    assert (list(batch.records), batch.ends, batch.failure) == ([], {("t", 0): 7}, None)


CAST = {"type": "Cast$Value", "spec": "int32"}


def test_the_batch_ends_before_a_record_that_cannot_be_transformed_in_every_partition() -> None:
    places = [(0, 5, b'"1"'), (1, 8, b'"2"'), (0, 6, b'"x"'), (1, 9, b'"3"'), (2, 0, b'"4"'), (0, 7, b'"5"')]
    read = reader(value_converter="JsonConverter", value_converter_schemas_enable="false")[0]
    batch = read.convert([message(offset, value, partition=partition) for partition, offset, value in places])
    batch.transform(chain(CAST, in_place=True), RetryWithToleranceOperator({}))
    assert [record.value for record in batch.records] == [1, 2]
    assert batch.ends == {("t", 0): 6, ("t", 1): 9, ("t", 2): 0}
    assert str(batch.failure).startswith(
        "Tolerance exceeded in error handler: the record at offset 6 of t-0 cannot be transformed by t0: "
    )


def test_a_record_that_cannot_be_transformed_is_skipped_with_tolerance(caplog: pytest.LogCaptureFixture) -> None:
    read = reader(value_converter="JsonConverter", value_converter_schemas_enable="false")[0]
    batch = read.convert([message(offset, value) for offset, value in enumerate([b'"1"', b'"x"', b'"3"'])])
    batch.transform(chain(CAST), RetryWithToleranceOperator({"errors.tolerance": "all"}))
    assert [record.value for record in batch.records] == [1, 3]
    assert (batch.ends, batch.failure) == ({("t", 0): 3}, None)
    assert "the record at offset 1 of t-0 cannot be transformed by t0" in caplog.text


def test_a_message_that_cannot_be_converted_is_skipped_with_tolerance(caplog: pytest.LogCaptureFixture) -> None:
    batch = reader(errors_tolerance="all")[0].convert(
        [message(0, None), message(1, b"bad"), message(2, None), message(3, b"bad")]
    )
    assert [record.kafka_offset for record in batch.records] == [0, 2]
    assert (batch.ends, batch.failure) == ({("t", 0): 4}, None)
    assert "2 skipped so far" in caplog.text


class Unready(Converter):
    """Raises RetriableError ``left`` times, then returns the bytes unchanged."""

    left = 0

    def from_connect_data(self, topic: str, schema: Any, value: Any) -> bytes | None:
        return None if value is None else bytes(value)

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if Unready.left:
            Unready.left -= 1
            raise RetriableError("not ready")
        return SchemaAndValue(None, data)


@pytest.mark.parametrize("part", ["key", "value", "header"])
@pytest.mark.parametrize(("failures", "retries", "records"), [(3, 3, [b"v"]), (100, 10, [])])
def test_a_converter_is_retried_after_a_retriable_error(part: str, failures: int, retries: int, records: list[bytes]) -> None:
    clock = [0.0]

    def wait(_seconds: float) -> None:
        clock[0] += 1.0

    config = {
        "key.converter": "ByteArrayConverter",
        "value.converter": "ByteArrayConverter",
        "errors.tolerance": "all",
        "errors.retry.timeout": "10000",
        f"{part}.converter": f"{__name__}.Unready",
    }
    tolerance = RetryWithToleranceOperator(config, wait=wait)
    tolerance._retries._clock = lambda: clock[0]
    Unready.left = failures
    read = SinkRecordConverter(task_converters(config, WorkerConfig.of({})), tolerance, lambda _topic: None)
    batch = read.convert([message(0, b"v", key=b"k", headers=[("h", b"1")])])
    assert [record.value for record in batch.records] == records
    assert (tolerance.counts.retries, tolerance.skipped) == (retries, 1 - len(records))
    assert tolerance.counts.record_failures == (retries if records else retries + 1)
    assert batch.ends == {("t", 0): 1}


def test_a_command_during_a_converters_retries_interrupts_the_batch() -> None:
    def wait(_seconds: float) -> None:
        raise Interrupted

    config = {"value.converter": f"{__name__}.Unready", "errors.tolerance": "all", "errors.retry.timeout": "-1"}
    Unready.left = 100
    tolerance = RetryWithToleranceOperator(config, wait=wait)
    read = SinkRecordConverter(task_converters(config, WorkerConfig.of({})), tolerance, lambda _topic: None)
    with pytest.raises(Interrupted):
        read.convert([message(0, b"v")])
    assert (tolerance.skipped, Unready.left) == (0, 99)
    Unready.left = 0


@pytest.mark.parametrize("command", [Interrupted, Abandoned])
def test_a_command_during_a_conversion_does_not_count_as_a_failure(command: type[BaseException]) -> None:
    read, _ = reader(errors_tolerance="all", errors_retry_timeout="-1")

    def interrupted(_value: bytes | None) -> Any:
        raise command

    read._decoders["t"] = (interrupted, interrupted)
    with pytest.raises(command):
        read.convert([message(0, b"v")])
    counts = read._tolerance.counts
    assert (counts.record_failures, counts.record_errors, counts.retries) == (0, 0, 0)


HOIST = {"type": "HoistField$Value", "field": "f"}


@pytest.mark.parametrize("in_place", [True, False])
def test_a_record_that_can_be_reported_keeps_its_bytes_through_the_chain_and_pickling(in_place: bool) -> None:
    config = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false", "errors.log.enable": "true"}
    tolerance = RetryWithToleranceOperator(config)
    read = SinkRecordConverter(task_converters(config, WorkerConfig.of({})), tolerance, lambda _topic: None)
    batch = read.convert([message(7, b' "v" ', key=None, headers=[("h", b"1")])])
    batch.transform(chain(HOIST, in_place=in_place), tolerance)
    (record,) = batch.records
    assert record.value == {"f": "v"}
    for kept in (record, record.new_record(topic="u"), pickle.loads(pickle.dumps(record))):  # noqa: S301 (our own bytes)
        original = consumer_record_of(kept)
        assert (original.topic, original.offset, original.value, list(original.headers)) == ("t", 7, b' "v" ', [("h", b"1")])


class Remade(Transform):
    """Makes as many new records of each as the number that its value is."""

    def apply(self, record: Any) -> Any:
        return [SinkRecord("t", 0, 0, f"{record.value}.{number}") for number in range(int(record.value))]


def test_each_of_several_records_keeps_its_own_bytes() -> None:
    config = {"value.converter": "StringConverter", "errors.log.enable": "true"}
    tolerance = RetryWithToleranceOperator(config)
    read = SinkRecordConverter(task_converters(config, WorkerConfig.of({})), tolerance, lambda _topic: None)
    batch = read.convert([message(offset, value, key=None) for offset, value in ((7, b"2"), (8, b"0"), (9, b"1"))])
    batch.transform(chain({"type": f"{__name__}.Remade"}), tolerance)
    originals = [consumer_record_of(record) for record in batch.records]
    assert [record.value for record in batch.records] == ["2.0", "2.1", "1.0"]
    assert [(each.offset, each.value) for each in originals] == [(7, b"2"), (7, b"2"), (9, b"1")]


def test_records_that_cannot_be_reported_do_not_keep_their_bytes() -> None:
    (record,) = reader()[0].convert([message(7, None)]).records
    assert type(record) is SinkRecord
