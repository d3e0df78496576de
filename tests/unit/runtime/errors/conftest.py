from __future__ import annotations

import pytest

from sluiceway.runtime.errors import dead_letter_queue
from unit.runtime.fake_clients import FakeProducer


@pytest.fixture(autouse=True)
def producers(monkeypatch: pytest.MonkeyPatch) -> list[FakeProducer]:
    FakeProducer.made.clear()
    monkeypatch.setattr(dead_letter_queue, "producer", FakeProducer)
    return FakeProducer.made
