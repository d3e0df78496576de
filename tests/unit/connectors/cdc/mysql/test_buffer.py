from __future__ import annotations

import threading

import pytest

from sluiceway.api import EncodedRecords, SourceRecord
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer, StoppedError
from support.eventually import eventually


def _records(count: int) -> list[SourceRecord]:
    return [SourceRecord({}, {"n": number}, "t", number) for number in range(count)]


def _buffer(limit: int = 10, size: int = 1000) -> RecordBuffer:
    return RecordBuffer(limit, size, lambda: None)


def _values(taken: list[SourceRecord] | EncodedRecords) -> list[object]:
    assert isinstance(taken, list)
    return [record.value for record in taken]


def test_a_batch_is_taken_alone_with_its_offset() -> None:
    buffer = _buffer()
    batch = EncodedRecords(topic="t", keys=[b"1"], values=[b"2"], headers=(), source_partition={}, source_offset={"pos": 3})
    buffer.put(_records(1), offset={"pos": 1})
    buffer.put(batch)
    buffer.put(_records(1), offset={"pos": 4})

    assert _values(buffer.take(10)) == [0]
    assert buffer.take(10) is batch
    assert buffer.offset == {"pos": 3}
    assert _values(buffer.take(10)) == [0]


def test_records_come_in_order_with_the_offset_behind_them() -> None:
    buffer = _buffer()
    buffer.put(_records(2), offset={"pos": 1})
    buffer.put([], offset={"pos": 2})

    assert _values(buffer.take(1)) == [0, 1]
    assert buffer.offset == {"pos": 1}
    assert buffer.take(1) == []
    assert buffer.offset == {"pos": 2}


def test_within_a_transaction_the_offset_is_that_of_the_last_record() -> None:
    buffer = _buffer()
    buffer.put(_records(1), offset={"pos": 1})
    buffer.put(_records(3))

    buffer.take(4)
    assert buffer.offset == {"n": 2}


@pytest.mark.parametrize(("limit", "size"), [(2, 1000), (100, 5)])
def test_a_full_buffer_makes_the_reader_wait(limit: int, size: int) -> None:
    buffer = _buffer(limit, size)
    buffer.put(_records(2), 5)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (buffer.put(_records(1)), done.set()))
    thread.start()

    assert not done.wait(0.1)
    assert len(buffer.take(1)) == 2
    eventually(done.is_set)
    thread.join()


def test_a_quarter_of_the_bytes_is_taken_at_once() -> None:
    buffer = _buffer(100, 40)
    for _ in range(4):
        buffer.put(_records(1), 9)

    assert [len(buffer.take(50)) for _ in range(3)] == [2, 2, 0]


def test_an_error_follows_the_records_before_it() -> None:
    buffer = _buffer()
    buffer.put(_records(1))
    buffer.fail(ValueError("lost"))

    assert len(buffer.take(5)) == 1
    with pytest.raises(ValueError, match="lost"):
        buffer.take(5)


def test_a_stopped_buffer_ends_the_wait_of_the_reader() -> None:
    buffer = _buffer(limit=1)
    buffer.put(_records(1))
    ended = threading.Event()

    def put() -> None:
        with pytest.raises(StoppedError):
            buffer.put(_records(1))
        ended.set()

    thread = threading.Thread(target=put)
    thread.start()
    buffer.stop()
    eventually(ended.is_set)
    thread.join()
    assert buffer.wait_stopped(5)


def test_the_first_records_wake_the_task() -> None:
    woken: list[int] = []
    buffer = RecordBuffer(10, 1000, lambda: woken.append(1))

    buffer.put(_records(1))
    buffer.put(_records(1))

    assert woken == [1]
