"""How records are produced: every kind the fast way, and the slow one for errors and a full buffer."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from sluiceway.api import SourceRecord
from sluiceway.config.worker import WorkerConfig
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Header
from sluiceway.errors import ConnectError, DataError
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.record_encoder import RecordEncoder
from sluiceway.runtime.source.record_sender import RecordSender
from sluiceway.runtime.source.submitted_records import SubmittedRecords
from sluiceway.runtime.task_converters import task_converters
from support.engine import Offsets
from unit.runtime.fake_clients import FakeProducer
from unit.runtime.source.test_worker_source_task import config, worker

HEADERS = (Header("h", "1", STRING_SCHEMA),)
KINDS = list(itertools.product(("t", "u"), (None, 3), (None, 1_700_000_000_000), ((), HEADERS), (STRING_SCHEMA, INT32_SCHEMA)))


class Unreadable:
    def __str__(self) -> str:
        raise DataError("no text")


def made(number: int, kind: tuple[Any, ...]) -> SourceRecord:
    topic, partition, timestamp, headers, schema = kind
    value = str(number) if schema is STRING_SCHEMA else number
    return SourceRecord({"p": 1}, {"o": number}, topic, value, schema, f"k{number}", STRING_SCHEMA, partition, timestamp, headers)


def sender(acknowledged: list[Any] | None = None, *, tolerant: bool = False) -> RecordSender:
    return RecordSender(
        {},
        task_converters(config(), WorkerConfig.of(worker())),
        OffsetStorageWriter(Offsets(), "src"),
        RetryWithToleranceOperator({"errors.tolerance": "all"} if tolerant else {}),
        interrupt=lambda: None,
        new_topic=lambda _topic: None,
        acknowledge=None if acknowledged is None else lambda record, *place: acknowledged.append((record, *place)),
        tolerant=tolerant,
    )


def test_an_error_of_sending_at_once_is_raised_by_the_next_call() -> None:
    sending = sender()
    client = FakeProducer.made[-1]
    client.unresponsive, client.error = True, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    sending.send(SubmittedRecords.of([made(1, KINDS[0])]))
    client.unresponsive = False
    sending.send_now()
    assert not client.waiting
    with pytest.raises(ConnectError, match="write to topic t"):
        sending.poll_deliveries()


@pytest.mark.parametrize("wants", [False, True], ids=["no acknowledgements", "acknowledgements"])
@pytest.mark.parametrize("tolerant", [False, True], ids=["strict", "tolerant"])
def test_each_kind_of_record_is_produced_by_the_fast_way(monkeypatch: pytest.MonkeyPatch, wants: bool, tolerant: bool) -> None:
    acknowledged: list[Any] = []
    sending = sender(acknowledged if wants else None, tolerant=tolerant)
    monkeypatch.setattr(sending, "_send_one", lambda *_: pytest.fail("the slow way"))
    records = [made(number, kind) for number, kind in enumerate(KINDS)]
    sending.send(SubmittedRecords.of(records))
    assert sending.flush(5.0, lambda: None)
    expected = [
        (topic, str(number).encode(), f"k{number}".encode(), partition, timestamp, [("h", b"1")] if headers else None)
        for number, (topic, partition, timestamp, headers, _) in enumerate(KINDS)
    ]
    assert [(*record, *map(more.get, ("partition", "timestamp", "headers"))) for *record, more in FakeProducer.made[-1].sent] == [
        tuple(each) for each in expected
    ]
    assert acknowledged == ([(record, 0, number) for number, record in enumerate(records)] if wants else [])


@pytest.mark.parametrize("tolerant", [False, True], ids=["strict", "tolerant"])
@pytest.mark.parametrize("wants", [False, True], ids=["no acknowledgements", "acknowledgements"])
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-2]], ids=["plain", "all"])
def test_a_record_that_cannot_be_converted_fails_or_is_skipped_and_a_full_buffer_is_waited_for(
    wants: bool, tolerant: bool, kind: tuple[Any, ...]
) -> None:
    acknowledged: list[Any] = []
    sending = sender(acknowledged if wants else None, tolerant=tolerant)
    client = FakeProducer.made[-1]
    client.room = 2
    good = [made(number, kind) for number in range(6)]
    bad = made(9, kind).new_record(value=Unreadable())
    if not tolerant:
        with pytest.raises(ConnectError):
            sending.send(SubmittedRecords.of([*good[:3], bad, *good[3:]]))
        assert [value for _, value, _, _ in client.sent] == [b"0", b"1", b"2"]
        return
    sending.send(SubmittedRecords.of([*good[:3], bad, *good[3:]]))
    assert sending.flush(5.0, lambda: None)
    assert [value for _, value, _, _ in client.sent] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    if wants:
        assert {record.source_offset["o"]: place for record, *place in acknowledged if record.source_offset} == {
            **{number: [0, number] for number in range(6)},
            9: [-1, -1],
        }


def test_encoders_are_those_of_the_records_topic_and_schemas() -> None:
    class Converter:
        def encoder(self, topic: str, schema: Any) -> Any:
            return lambda _value: (topic, schema)

    given: Any = SimpleNamespace(key=Converter(), value=Converter())
    encoder = RecordEncoder(given, RetryWithToleranceOperator({}))
    for kind in (*KINDS, *reversed(KINDS)):
        found: list[Any] = [encode(None) for encode in encoder.encoders_of(made(1, kind))]
        assert found == [(kind[0], STRING_SCHEMA), (kind[0], kind[-1])]
