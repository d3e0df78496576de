"""The endpoints ``/`` and ``/health``."""

from __future__ import annotations

import pytest

from support.rest_replay import Connect


def test_health_is_that_of_the_way_to_kafka(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    from sluiceway.errors import ConnectError

    def fail(_timeout: float) -> None:
        raise ConnectError("away")

    assert connect.http.get("/health").json()["status"] == "healthy"
    monkeypatch.setattr(connect.config, "refresh", fail)
    answer = connect.http.get("/health")
    assert (answer.status_code, answer.json()["status"]) == (500, "unhealthy")
