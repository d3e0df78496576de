"""The limit of a target system's outage."""

from __future__ import annotations

import pytest

from sluiceway.api.outage import Outage
from sluiceway.errors import ConnectError, RetriableError


def test_an_outage_fails_at_its_limit_and_starts_again_after_an_answer() -> None:
    now = [0.0]
    outage = Outage(60, lambda: now[0])
    away = RetriableError("Away.")
    outage.lasts(away)
    now[0] = 59.9
    outage.lasts(away)
    outage.ended()
    now[0] = 119.8
    outage.lasts(away)
    now[0] = 179.8
    with pytest.raises(ConnectError, match=r"Away\. \(for 60 s, more than sluiceway\.unreachable\.timeout\.ms allows") as caught:
        outage.lasts(away)
    assert caught.value.__cause__ is away


def test_an_unlimited_outage_never_fails() -> None:
    now = [0.0]
    outage = Outage(None, lambda: now[0])
    outage.lasts(RetriableError("away"))
    now[0] = 1e9
    outage.lasts(RetriableError("away"))
