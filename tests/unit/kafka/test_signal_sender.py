"""Signals to brokers that do not answer."""

from __future__ import annotations

import pytest

from sluiceway.errors import KafkaClientError
from sluiceway.kafka import signal_sender


def test_brokers_that_cannot_be_reached_are_an_error_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal_sender, "_SECONDS", 0.5)
    properties = {"bootstrap.servers": "127.0.0.1:1", "auto.offset.reset": "earliest", "interceptor.classes": "of.the.Consumer"}
    with pytest.raises(KafkaClientError, match="Cannot describe topic 'p-signal'"):
        signal_sender.send_signal(properties, "p-signal", b"p", b"{}")
