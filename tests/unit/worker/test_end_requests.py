"""Tests of the requests that end a driver."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.end_requests import EndRequests

A, B = b"sluiceway-host-end-a", b"sluiceway-host-end-b"


class _Status(KafkaStatusBackingStore):
    """A fake store that delivers what it is given."""

    def __init__(self) -> None:
        self.deliver: Callable[[bytes, bytes | None], None] = lambda key, value: None

    def on_message(self, listener: Callable[[bytes, bytes | None], None]) -> None:
        self.deliver = listener


@pytest.mark.parametrize(
    ("messages", "ends", "told"),
    [
        ([], False, 0),
        ([(A, b"host:1")], True, 1),
        ([(A, b"host:2")], False, 1),
        ([(A, b"host:1"), (A, b"host:2")], False, 2),
        ([(A, b"host:1"), (A, None)], False, 2),
        ([(B, b"host:1")], False, 1),
        ([(b"sluiceway-host-times-a", b"host:1")], False, 0),
    ],
)
def test_only_the_driver_that_is_named_last_ends(messages: list[tuple[bytes, bytes | None]], ends: bool, told: int) -> None:
    status, requests, changes = _Status(), EndRequests(), []
    requests.follow(status, lambda: changes.append(1))
    for key, value in messages:
        status.deliver(key, value)
    assert requests.concern("a", "host:1") is ends
    assert len(changes) == told
