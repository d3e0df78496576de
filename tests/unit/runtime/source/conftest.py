from __future__ import annotations

import pytest

from sluiceway.runtime.source import record_sender
from unit.runtime.fake_clients import FakeProducer


@pytest.fixture(autouse=True)
def producers(monkeypatch: pytest.MonkeyPatch) -> list[FakeProducer]:
    FakeProducer.made.clear()
    monkeypatch.setattr(record_sender, "producer", FakeProducer)
    return FakeProducer.made
