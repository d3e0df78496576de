from __future__ import annotations

import logging

import pytest

from sluiceway.connectors.mock.memory import resident_bytes
from unit.connectors.mock.tasks import source


def test_records_and_memory_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert 2**20 < resident_bytes() < 2**40
    task = source(batch_size="3", id="4")
    task.poll()
    with caplog.at_level(logging.INFO):
        task.commit()
    assert "Mock task 4: records=3 resident=" in caplog.text
