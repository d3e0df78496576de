from __future__ import annotations

import pytest

from sluiceway.runtime.source import record_sender
from support.engine import RunningTask
from support.engine_connectors import SOURCE, script
from unit.runtime.fake_clients import FakeProducer


def test_a_store_without_transactions_runs_at_least_once_unless_exactly_once_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_sender, "producer", FakeProducer)
    config = {"name": "src", "connector.class": SOURCE}
    for support, failed in (("requested", False), ("required", True)):
        script("src")
        properties = {"exactly.once.source.support": "enabled"}
        with RunningTask({**config, "exactly.once.support": support}, properties, bounded=True) as task:
            assert task.join().failed is failed
