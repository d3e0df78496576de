"""Tests of the records about micro-batches in a shared application."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.errors import DataError
from sluiceway.storage.memory import MemoryStatusBackingStore
from sluiceway.worker import batch_messages
from sluiceway.worker.batch_messages import (
    BatchMessages,
    BatchReport,
    BatchState,
    cancellation_key,
    decode_report,
    encode_report,
    report_key,
    request_key,
)


class Store:
    """A fake status store that delivers messages."""

    def __init__(self) -> None:
        self.deliver: Any = None

    def on_message(self, listener: Any) -> None:
        self.deliver = listener


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(batch_messages, "KafkaStatusBackingStore", Store)
    return Store()


def test_a_report_is_unchanged_after_encoding() -> None:
    report = BatchReport("1", BatchState.FAILED, [({"p": 1}, {"o": 2}), (None, None)], 3, 1.5, "why")
    assert decode_report(encode_report(report)) == report
    running = BatchReport("1", BatchState.RUNNING)
    assert decode_report(encode_report(running)) == running


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b'{"id": 1, "state": "odd", "before": null}'])
def test_an_unreadable_report_is_a_data_error(value: bytes) -> None:
    with pytest.raises(DataError):
        decode_report(value)


def test_a_batch_is_open_until_its_report_cancellation_or_a_later_request(store: Store) -> None:
    changes = []
    messages = BatchMessages(store, lambda: changes.append(1))  # type: ignore[arg-type]
    assert not messages.is_open("c", "1")
    store.deliver(request_key("c"), b"1")
    assert (messages.requested(), messages.request("c"), messages.is_open("c", "1")) == ({"c": "1"}, "1", True)
    store.deliver(report_key("c"), encode_report(BatchReport("1", BatchState.RUNNING)))
    assert messages.is_open("c", "1")
    store.deliver(cancellation_key("c"), b"0")
    assert messages.is_open("c", "1"), "the cancellation is of an earlier batch"
    store.deliver(report_key("c"), encode_report(BatchReport("1", BatchState.DONE)))
    assert not messages.is_open("c", "1")
    store.deliver(request_key("c"), b"2")
    assert messages.is_open("c", "2")
    store.deliver(cancellation_key("c"), b"2")
    assert not messages.is_open("c", "2")
    assert len(changes) == 6


def test_tombstones_other_messages_and_unreadable_reports(store: Store) -> None:
    messages = BatchMessages(store)  # type: ignore[arg-type]
    store.deliver(request_key("c"), b"1")
    store.deliver(request_key("c"), None)
    store.deliver(report_key("c"), b"?")
    store.deliver(b"sluiceway-host-orders-x", b"{}")
    assert (messages.requested(), messages.report("c")) == ({}, None)


def test_standalone_mode_has_no_messages() -> None:
    assert BatchMessages(MemoryStatusBackingStore()).requested() == {}
