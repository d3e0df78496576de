"""Exactly-once delivery with a simulated producer, whose errors a real broker rarely returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError, FencedError, KafkaClientError
from sluiceway.kafka.producer_transactions import ProducerTransactions
from sluiceway.runtime.source.exactly_once_delivery import ExactlyOnceDelivery, TransactionLostError, deferred
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.record_sender import RecordSender
from sluiceway.runtime.source.submitted_records import SubmittedRecords
from sluiceway.runtime.source.transaction_boundary import CommitAction, IntervalBoundary
from support.engine import Offsets

RECORDS = [SourceRecord({"p": 0}, {"n": number}, "t", number) for number in range(3)]


class Sender:
    """Records the calls of ``send``, or fails."""

    def __init__(self, offsets: OffsetStorageWriter, calls: list[str]) -> None:
        self._offsets = offsets
        self._calls = calls
        self.failure: ConnectError | None = None
        self.error: Exception | None = None
        self.reported: ConnectError | None = None

    def with_advice(self, error: ConnectError) -> ConnectError:
        return error

    def await_failure(self, _seconds: float) -> None:
        """Take the failure from a report that comes now."""
        self.failure = self.failure or self.reported

    def send(self, batch: SubmittedRecords) -> None:
        self._calls.append(f"send {len(batch.records)}")
        if self.error is not None:
            raise self.error
        self._offsets.add_all(batch.sources)


class Transactions:
    def __init__(self, calls: list[str]) -> None:
        self.open = False
        self._calls = calls
        self.errors: dict[str, ConnectError] = {}
        self.silent: ConnectError | None = None

    def _did(self, what: str, *, open_after: bool) -> None:
        self._calls.append(what)
        if what in self.errors:
            raise self.errors[what]
        self.open = open_after

    def begin(self) -> None:
        if not self.open:
            self._did("begin", open_after=True)

    def send(self, records: Any, _check: Any) -> None:
        self._calls.append(f"offsets {[value for _, _, value in records]}")

    def commit(self, _check: Any) -> None:
        self._did("commit", open_after=False)

    def await_delivery(self) -> None:
        self._calls.append("await delivery")

    def abort(self, _check: Any) -> None:
        self._did("abort", open_after=False)

    def error(self, error: ConnectError) -> ConnectError:
        return self.silent or error


class Store:
    def for_transaction(self, _connector: str, offsets: Any) -> Any:
        return [("o", b"", offset["n"]) for _, offset in offsets]

    def committed(self, _connector: str, offsets: Any) -> None: ...


class Made:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.acknowledged: list[Any] = []
        offsets = OffsetStorageWriter(Offsets(), "c")
        self.sender = Sender(offsets, self.calls)
        self.transactions = Transactions(self.calls)
        self.settled = [True]
        pending: list[Callable[[], None]] = []
        self.acknowledge = deferred(lambda *what: self.acknowledged.append(what), pending)
        self.delivery = ExactlyOnceDelivery(
            cast(RecordSender, self.sender),
            offsets,
            Store(),
            cast(ProducerTransactions, self.transactions),
            IntervalBoundary(1000),
            acknowledgements=pending,
            flush_dead_letter_queue=lambda *_: self.settled.pop(0),
            check=lambda: None,
        )


@pytest.fixture
def made() -> Made:
    return Made()


def test_records_and_offsets_share_a_transaction_and_are_acknowledged_after_it(made: Made) -> None:
    made.delivery.send(SubmittedRecords.of(RECORDS[:1]))
    made.delivery.send(SubmittedRecords.of(RECORDS[1:2]))
    made.acknowledge(RECORDS[0], 0, 5)
    assert made.acknowledged == []
    assert made.delivery.apply(CommitAction.COMMIT)
    assert made.calls == ["begin", "send 1", "send 1", "offsets [1]", "commit"]
    assert made.acknowledged == [(RECORDS[0], 0, 5)]


def test_no_transaction_is_opened_without_records_and_offsets(made: Made) -> None:
    assert not made.delivery.apply(CommitAction.COMMIT)
    assert not made.delivery.finish()
    assert made.calls == []


def test_offsets_of_filtered_records_are_committed_without_records(made: Made) -> None:
    made.delivery.send(SubmittedRecords([], RECORDS, []))
    assert made.delivery.apply(CommitAction.COMMIT)
    assert made.calls == ["send 0", "begin", "offsets [2]", "commit"]


def test_an_abort_drops_records_keeps_offsets_and_acknowledges_nothing(made: Made) -> None:
    made.delivery.send(SubmittedRecords.of(RECORDS))
    made.acknowledge(RECORDS[0], 0, 5)
    assert made.delivery.apply(CommitAction.ABORT)
    assert made.calls == ["begin", "send 3", "await delivery", "abort", "begin", "offsets [2]", "commit"]
    assert made.acknowledged == []


def test_offsets_wait_for_dead_letter_queue_records(made: Made) -> None:
    made.settled = [False, False, True]
    made.delivery.send(SubmittedRecords.of(RECORDS))
    made.delivery.apply(CommitAction.COMMIT)
    assert made.settled == []
    assert made.calls[-1] == "commit"


def test_a_stop_in_the_middle_of_a_batch_rolls_back(made: Made) -> None:
    made.sender.error = RuntimeError("stopped")
    with pytest.raises(RuntimeError):
        made.delivery.send(SubmittedRecords.of(RECORDS))
    assert not made.delivery.finish()
    assert made.calls == ["begin", "send 3", "abort"]


def test_batches_before_a_failed_one_are_committed_without_it(made: Made) -> None:
    made.delivery.send(SubmittedRecords.of(RECORDS[:1]))
    made.delivery.send_before_failure(SubmittedRecords.of(RECORDS[1:]))
    assert made.calls == ["begin", "send 1", "offsets [0]", "commit"]


def test_a_failed_task_rolls_back_and_a_fenced_one_does_nothing(made: Made) -> None:
    made.delivery.send(SubmittedRecords.of(RECORDS))
    assert not made.delivery.fail(FencedError("x"))
    assert made.calls[-1] == "send 3"
    assert not made.delivery.fail(ValueError("x"))
    assert made.calls[-1] == "abort"
    assert not made.delivery.apply(CommitAction.COMMIT), "offsets of dropped records would be stored"


def send_failure(cause: ConnectError) -> ConnectError:
    error = ConnectError(f"sending failed: {cause}")
    error.__cause__ = cause
    return error


FENCED = FencedError("taken over")
TOO_LARGE = send_failure(KafkaClientError("too large", "MSG_SIZE_TOO_LARGE"))


@pytest.mark.parametrize(
    ("error", "failure", "silent", "kind"),
    [
        (FENCED, None, None, FencedError),
        (KafkaClientError("gave up", "_MSG_TIMED_OUT"), None, None, TransactionLostError),
        (KafkaClientError("x", "_STATE"), send_failure(KafkaClientError("x", "_MSG_TIMED_OUT")), None, TransactionLostError),
        (KafkaClientError("x", "_FATAL"), None, FENCED, FencedError),
        (send_failure(KafkaClientError("x", "_FATAL")), None, FENCED, FencedError),
        (KafkaClientError("x", "_FATAL"), send_failure(FENCED), None, FencedError),
        (KafkaClientError("x", "_STATE"), None, KafkaClientError("gave up", "_TIMED_OUT"), TransactionLostError),
        (KafkaClientError("x", "TOPIC_AUTHORIZATION_FAILED"), None, None, KafkaClientError),
    ],
)
def test_errors_of_the_producer_are_mapped_to_their_cause(
    made: Made, error: ConnectError, failure: ConnectError | None, silent: ConnectError | None, kind: type
) -> None:
    made.delivery.send(SubmittedRecords.of(RECORDS))
    made.transactions.errors["commit"] = error
    made.sender.failure, made.transactions.silent = failure, silent
    with pytest.raises(ConnectError) as raised:
        made.delivery.apply(CommitAction.COMMIT)
    assert type(raised.value) is kind


def test_the_error_of_a_rejected_record_precedes_that_of_its_transaction(made: Made) -> None:
    made.delivery.send(SubmittedRecords.of(RECORDS))
    made.transactions.errors["commit"] = KafkaClientError("must be aborted", "MSG_SIZE_TOO_LARGE")
    made.sender.failure = TOO_LARGE
    with pytest.raises(ConnectError) as raised:
        made.delivery.apply(CommitAction.COMMIT)
    assert raised.value is TOO_LARGE


def test_the_report_of_a_rejected_record_is_awaited_when_the_producer_only_says_that_it_cannot_continue(made: Made) -> None:
    made.sender.error, made.sender.reported = send_failure(KafkaClientError("x", "_STATE")), TOO_LARGE
    with pytest.raises(ConnectError) as raised:
        made.delivery.send(SubmittedRecords.of(RECORDS))
    assert raised.value is TOO_LARGE
