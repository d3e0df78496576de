"""Retries of the sink's task."""

from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.sink.session import WriteError
from sluiceway.connectors.jdbc.sink.task import SinkRetries
from sluiceway.errors import ConnectError


def test_rollbacks_are_counted_and_an_unreachable_database_is_timed() -> None:
    now = [0.0]
    retries = SinkRetries(2, 60, lambda: now[0])
    again, away = WriteError("deadlock"), WriteError("refused", unreachable=True)
    for _ in range(2):
        retries.failed(again)
    with pytest.raises(ConnectError, match=r"deadlock \(after 3 attempts; max\.retries=2\)"):
        retries.failed(again)
    retries.succeeded()
    for now[0] in (0, 30, 59):
        retries.failed(away)
    now[0] = 60
    with pytest.raises(ConnectError, match=r"for 60 s, more than sluiceway\.unreachable\.timeout\.ms"):
        retries.failed(away)
    endless = SinkRetries(None, None, lambda: now[0])
    for now[0] in range(1000):
        endless.failed(again)
        endless.failed(away)
