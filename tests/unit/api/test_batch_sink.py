"""The base class of batch sinks: what is written again, in which order, and what ends a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import DONE, BatchLimits, BatchSinkTask, Outcome, SinkRecord, TopicPartition, WriteResult
from sluiceway.errors import ConnectError, DataError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext

BUSY, BAD = WriteResult(Outcome.RETRY, "full"), WriteResult(Outcome.REFUSED, "no number")
AWAY = OSError("refused")


class Sink(BatchSinkTask[SinkRecord]):
    """Writes to a list what the script allows; ``script`` has the outcome of each further item, or an error."""

    def __init__(self, script: Sequence[WriteResult | OSError] = (), limits: BatchLimits | None = None) -> None:
        self.limits = limits or BatchLimits()
        self.script = list(script)
        self.written: list[int] = []
        self.requests: list[list[int]] = []

    def start(self, config: object) -> None: ...

    def prepare(self, record: SinkRecord) -> SinkRecord | None:
        if record.value == "skip":
            return None
        if record.value == "bad":
            raise DataError("no document")
        return record

    def order_key(self, item: SinkRecord) -> object:
        return item.key

    def size_of(self, item: SinkRecord) -> int:
        return len(str(item.value))

    def write(self, items: Sequence[SinkRecord]) -> Sequence[WriteResult]:
        self.requests.append([each.kafka_offset for each in items])
        if self.script and isinstance(self.script[0], OSError):
            raise self.script.pop(0)
        results = [self.script.pop(0) if self.script and isinstance(self.script[0], WriteResult) else DONE for _ in items]
        self.written += [each.kafka_offset for each, result in zip(items, results, strict=True) if result == DONE]
        return results  # type: ignore[return-value]


def started(sink: Sink, *, reports: bool = False) -> MemorySinkContext:
    context = MemorySinkContext(reports=reports)
    sink.initialize(context)
    return context


def reported(context: MemorySinkContext) -> list[int]:
    return [record.kafka_offset for record, _error in context.reported]


def records(*values: object, key: object = None, partition: int = 0) -> list[SinkRecord]:
    return [SinkRecord("t", partition, offset, value, key=key) for offset, value in enumerate(values)]


def put_until_done(sink: Sink, batch: Sequence[SinkRecord], most: int = 200) -> int:
    """Put as the runtime does, and return how often."""
    for number in range(1, most + 1):
        try:
            sink.put(batch)
        except RetriableError:
            continue
        return number
    raise AssertionError("the batch does not end")


def test_a_request_has_as_many_records_and_bytes_as_it_may() -> None:
    sink = Sink(limits=BatchLimits(records=3, size=10))
    started(sink)
    sink.put(records("a", "b", "c", "d", "longer than ten", "e", "12345678", "90"))
    assert sink.requests == [[0, 1, 2], [3], [4], [5, 6], [7]]


def test_what_is_done_is_not_written_again() -> None:
    sink = Sink([DONE, BUSY, DONE])
    context = started(sink)
    batch = records(*"abc")
    with pytest.raises(RetriableError, match="takes 1 of 3 records later: full"):
        sink.put(batch)
    sink.put(batch)
    assert sink.requests == [[0, 1, 2], [1]]
    assert context.timeouts == [100]
    sink.put(batch)  # after a rewind, they are other deliveries
    assert sink.requests[-1] == [0, 1, 2]


def test_records_of_one_key_keep_their_order() -> None:
    sink = Sink([BUSY, DONE, DONE])
    started(sink)
    batch = [*records("a", key="x"), SinkRecord("t", 0, 1, "b", key="y"), SinkRecord("t", 0, 2, "c", key="x")]
    put_until_done(sink, batch)
    assert sink.requests == [[0, 1, 2], [0, 2]]
    assert sink.written == [1, 2, 0, 2]


def test_bad_records_are_reported_and_the_others_written() -> None:
    sink = Sink([DONE, BAD, DONE])
    context = started(sink, reports=True)
    sink.put(records("a", "bad", "skip", "b", "c"))
    assert sink.written == [0, 4]
    assert reported(context) == [1, 3] or reported(context) == [3, 1]
    errors = [error for _record, error in context.reported]
    assert {type(each) for each in errors} == {DataError, ConnectError}
    assert "t-0 at offset 3 was refused: no number" in " ".join(map(str, errors))


@pytest.mark.parametrize(("value", "script"), [("bad", []), ("a", [BAD])])
def test_without_a_reporter_a_bad_record_fails_the_task(value: str, script: list[WriteResult]) -> None:
    sink = Sink(script)
    started(sink)
    with pytest.raises(ConnectError) as caught:
        sink.put(records(value))
    assert not isinstance(caught.value, RetriableError)


def test_a_record_is_reported_once_although_others_are_written_again() -> None:
    sink = Sink([BAD, BUSY, BUSY])
    context = started(sink, reports=True)
    put_until_done(sink, records("a", "b", "bad"))
    assert sorted(reported(context)) == [0, 2]


def test_pauses_grow_until_something_is_taken() -> None:
    sink = Sink([BUSY] * 3 + [DONE, BUSY], BatchLimits(backoff=1, longest_backoff=3, records=1))
    context = started(sink)
    put_until_done(sink, records("a", "b"))
    assert context.timeouts == [1000, 2000, 3000, 1000]
    assert sink.metrics() == {"sink-throttled-ms": 7000}


def test_pauses_are_as_long_as_the_system_asks_for() -> None:
    class Asking(Sink):
        def least_pause(self) -> float:
            return 1.5

    sink = Asking([BUSY, AWAY, BUSY], BatchLimits(backoff=1, longest_backoff=5))
    context = started(sink)
    put_until_done(sink, records("a"))
    assert context.timeouts == [1500, 2000, 4000]


def test_a_system_that_takes_nothing_ends_the_task_after_the_retries() -> None:
    sink = Sink([BUSY] * 9, BatchLimits(retries=2))
    started(sink)
    for _ in range(2):
        with pytest.raises(RetriableError):
            sink.put(records("a"))
    with pytest.raises(ConnectError, match="after 3 attempts without progress") as caught:
        sink.put(records("a"))
    assert not isinstance(caught.value, RetriableError)


def test_a_system_that_takes_some_is_no_failure() -> None:
    sink = Sink([DONE, BUSY, BUSY, BUSY, DONE, BUSY], BatchLimits(retries=1))
    started(sink)
    assert put_until_done(sink, records(*"abc")) == 4


def test_a_system_that_is_away_is_waited_for_and_then_given_up() -> None:
    sink = Sink([AWAY, AWAY, DONE], BatchLimits(unreachable=3600, retries=0))
    context = started(sink)
    assert put_until_done(sink, records("a")) == 3
    assert context.timeouts == [100, 200]
    given_up = Sink([AWAY], BatchLimits(unreachable=0))
    started(given_up)
    with pytest.raises(ConnectError, match=r"refused \(for 0 s, more than sluiceway\.unreachable\.timeout\.ms"):
        given_up.put(records("a"))


def test_lost_partitions_are_forgotten() -> None:
    sink = Sink([DONE, BUSY])
    started(sink)
    with pytest.raises(RetriableError):
        sink.put(records("a", "b"))
    sink.close([TopicPartition("t", 0)])
    sink.put(records("a", "b"))
    assert sink.requests[-1] == [0, 1]


def test_an_author_learns_of_a_missing_result() -> None:
    class Short(Sink):
        def write(self, items: Sequence[SinkRecord]) -> Sequence[WriteResult]:
            return [DONE]

    sink = Short()
    started(sink)
    with pytest.raises(
        ConnectError, match=r"Short\.write\(\) must return a WriteResult for each of 2 items, but returned 1 results"
    ):
        sink.put(records("a", "b"))


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("script", [[], [DONE, BUSY, DONE, BUSY], [BAD, DONE, BAD]])
def test_the_records_that_a_transform_made_of_one_message_are_all_written(size: int, script: list[WriteResult]) -> None:
    sink = Sink(script, BatchLimits(records=size))
    context = started(sink, reports=True)
    siblings = [SinkRecord("t", 0, offset, f"{offset}/{n}") for offset in range(3) for n in range(3)]
    put_until_done(sink, siblings)
    assert len(sink.written) + len(reported(context)) == len(siblings)


@pytest.mark.parametrize("returned", [None, 3, (each for each in [DONE]), [Outcome.DONE], "d"])
def test_what_is_no_list_of_results_is_named(returned: Any) -> None:
    class Wrong(Sink):
        def write(self, items: Sequence[SinkRecord]) -> Sequence[WriteResult]:
            return cast("Sequence[WriteResult]", returned)

    sink = Wrong()
    started(sink)
    if isinstance(returned, Iterator):
        sink.put(records("a"))
    else:
        with pytest.raises(ConnectError, match=r"Wrong\.write\(\) must return a WriteResult"):
            sink.put(records("a"))


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_missing_file_or_right_is_no_outage(error: type[OSError]) -> None:
    sink = Sink([error("a.pem")])
    started(sink)
    with pytest.raises(error):
        sink.put(records("a"))


OUTCOMES = st.lists(st.sampled_from([DONE, DONE, BUSY, BAD]), max_size=60)


@given(keys=st.lists(st.sampled_from([None, "x", "y", "z"]), min_size=1, max_size=20), script=OUTCOMES, size=st.integers(1, 8))
def test_every_record_ends_written_or_reported_and_keys_keep_their_order(
    keys: list[str | None], script: list[WriteResult], size: int
) -> None:
    sink = Sink(script, BatchLimits(records=size))
    context = started(sink, reports=True)
    batch = [SinkRecord("t", 0, offset, "v", key=key) for offset, key in enumerate(keys)]
    put_until_done(sink, batch)
    assert set(sink.written) | set(reported(context)) == set(range(len(keys)))
    for each in {"x", "y", "z"}.intersection(keys):
        of_key = [offset for offset in sink.written if keys[offset] == each and offset not in reported(context)]
        if of_key:  # the system holds the newest record that it did not refuse, also at a second time
            assert of_key[-1] == max(of_key)
    for offset, key in enumerate(keys):
        if key is None:
            assert sink.written.count(offset) + reported(context).count(offset) == 1
