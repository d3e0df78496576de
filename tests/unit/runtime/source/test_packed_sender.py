from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.java_plugins.acknowledgements import Acknowledgements, SentRecords
from sluiceway.java_plugins.packed import PackedPart
from sluiceway.runtime.source.packed_sender import PackedSender
from sluiceway.runtime.source.submitted_records import SubmittedPacked

NONE = -(1 << 63)
_UNSET: Any = object()


def places(made: Acknowledgements) -> list[tuple[int, ...]]:
    """Return index, partition and offset of the records that the task learns of."""
    return [place[1:] for place in struct.iter_unpack("<qqqq", made.take())]


def part_of(*origins: int, size: int) -> PackedPart:
    """Return a part with the values b"0", b"1", ... from these of the batch's records."""
    count = len(origins)
    columns = [origins, [0] * count, [-1] * count, [-1] * count, [1] * count, [0] * count]
    body = b"".join(struct.pack(f"<{count}i", *column) for column in columns) + struct.pack(f"<{count}q", *[NONE] * count)
    header = {"batch": 1, "size": size, "start": 0, "end": size, "count": count, "topics": ["t"], "offsets": [], "action": None}
    return PackedPart.of(header, body + b"".join(b"%d" % number for number in range(count)))


class Message:
    def __init__(self, partition: int, offset: int) -> None:
        self.partition = lambda: partition
        self.offset = lambda: offset


class Client:
    """A producer that keeps the delivery reports, and refuses some values as often as ``refused`` says.

    ``callback`` wins over ``on_delivery`` even if it is None, as in the real client.
    """

    def __init__(self) -> None:
        self.produced: list[bytes] = []
        self.reports: list[Callable[[Any, Any], None] | None] = []
        self.refused: dict[bytes, int] = {}

    def produce(
        self,
        topic: str,
        value: bytes,
        key: bytes | None = None,
        partition: int = -1,
        callback: Callable[[Any, Any], None] | None = _UNSET,
        on_delivery: Callable[[Any, Any], None] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        if self.refused.get(value, 0):
            self.refused[value] -= 1
            raise BufferError
        self.produced.append(value)
        self.reports.append(on_delivery if callback is _UNSET else callback)

    def produce_one(self, topic: str, value: bytes | None, key: bytes | None, options: Any) -> None:
        try:
            self.produce(topic, value or b"", key, **options)
        except BufferError:
            cause = KafkaClientError("too large", code="MSG_SIZE_TOO_LARGE")
            raise ConnectError("refused") from cause


class FailedSends:
    def __init__(self) -> None:
        self.skipped: list[Any] = []

    def skip(self, record: Any, submitted: Any, error: ConnectError) -> None:
        self.skipped.append(record.value)
        if submitted is not None:
            submitted.acknowledged(-1, -1)


class Sending:
    def __init__(self, *, tolerant: bool = False) -> None:
        self.client = Client()
        self.rejected: list[Any] = []
        self.failed = FailedSends()
        failed: Any = self.failed if tolerant else None
        self.offsets: list[Any] = []
        self.sender = PackedSender(
            self.client.produce,
            lambda _: None,
            self.client.produce_one,
            self._reject,
            failed,
            SentRecords.release,
            lambda *offset: self.offsets.append(offset),
        )

    def _reject(self, record: Any, waiting: Any, error: Any, message: Any) -> None:
        self.rejected.append((record.value, waiting, error))


def test_each_record_is_acknowledged_when_it_has_a_place_and_filtered_ones_at_once() -> None:
    sending, made = Sending(), Acknowledgements()
    sending.sender.send(SubmittedPacked(part_of(0, 2, size=3), made.of(1)))
    assert sending.client.produced == [b"0", b"1"]
    assert places(made) == [(1, -1, -1)], "the filtered record"
    first, second = sending.client.reports
    assert first is not None
    assert second is not None
    second(None, Message(4, 11))
    assert places(made) == [(2, 4, 11)]
    first(None, Message(3, 10))
    assert places(made) == [(0, 3, 10)]


def test_a_part_also_leaves_out_the_records_that_were_skipped_before_it() -> None:
    sending, made = Sending(), Acknowledgements()
    sending.sender.send(SubmittedPacked(part_of(3, size=4), made.of(1), start=2))
    assert places(made) == [(2, -1, -1)]


def test_a_part_without_records_is_acknowledged_at_once() -> None:
    sending, made = Sending(), Acknowledgements()
    sending.sender.send(SubmittedPacked(part_of(size=2), made.of(1)))
    assert places(made) == [(0, -1, -1), (1, -1, -1)]


def test_records_that_need_no_report_have_none() -> None:
    sending = Sending()
    sending.sender.send(SubmittedPacked(part_of(0, 1, size=2), None))
    assert sending.client.reports == [None, None]


def test_a_full_buffer_is_waited_for_and_the_rest_produced_in_order() -> None:
    sending = Sending()
    sending.client.refused = {b"1": 1}
    sending.sender.send(SubmittedPacked(part_of(0, 1, 2, size=3), None))
    assert sending.client.produced == [b"0", b"1", b"2"]


@pytest.mark.parametrize("tolerant", [True, False])
def test_a_record_that_the_client_refuses_is_skipped_or_fails_the_task(tolerant: bool) -> None:
    sending, made = Sending(tolerant=tolerant), Acknowledgements()
    sending.client.refused = {b"1": 2}
    part, offsets = part_of(1, 3, 4, size=5), lambda index: [({"s": 1}, {"before": index})]
    submitted = SubmittedPacked(part, made.of(1), offsets_before=offsets)
    if not tolerant:
        with pytest.raises(ConnectError, match="refused"):
            sending.sender.send(submitted)
        assert sending.offsets == [({"s": 1}, {"before": 3})], "those of the records before it"
        return
    sending.sender.send(submitted)
    assert (sending.client.produced, sending.failed.skipped) == ([b"0", b"2"], [b"1"])
    for offset, report in enumerate(sending.client.reports):
        assert report is not None
        report(None, Message(0, offset))
    assert places(made) == [(0, -1, -1), (2, -1, -1), (3, -1, -1), (1, 0, 0), (4, 0, 1)]
    assert sending.offsets == []


def test_a_rejected_record_is_acknowledged_by_its_second_attempt() -> None:
    sending, made = Sending(tolerant=True), Acknowledgements()
    sending.sender.send(SubmittedPacked(part_of(0, size=1), made.of(1)))
    [report] = sending.client.reports
    assert report is not None
    report("INVALID_RECORD", Message(-1, -1))
    [(value, waiting, error)] = sending.rejected
    assert (value, error) == (b"0", "INVALID_RECORD")
    assert places(made) == []
    waiting.acknowledged(2, 9)
    assert places(made) == [(0, 2, 9)]
