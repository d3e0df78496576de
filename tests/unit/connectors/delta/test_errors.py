"""Waits for delta-rs, which has no limit of its own."""

from __future__ import annotations

import threading

import pytest

from sluiceway.connectors.delta.errors import answered, reaching
from sluiceway.connectors.tables.store import UnreachableError


def test_a_request_without_an_answer_is_an_outage() -> None:
    never = threading.Event()
    expected = "Loading table t: the storage does not answer: no answer within 0.05 s"
    with pytest.raises(UnreachableError, match=expected), reaching("Loading table t"):
        answered(never.wait, 0.05)
    never.set()


def test_answers_and_errors_are_passed_on() -> None:
    assert answered(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        answered(lambda: 1 // 0)
    with pytest.raises(TimeoutError, match="its own"):
        answered(_late)


def _late() -> None:
    raise TimeoutError("its own")
