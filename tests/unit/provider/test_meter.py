"""How many connections to Kafka it takes to look at many connectors."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.meter import Admins, Meter


def test_connectors_share_an_admin_client_unless_they_log_in_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, str]] = []

    def admin_client(worker: object, own: Mapping[str, str]) -> object:
        made.append(dict(own))
        return object()

    monkeypatch.setattr("sluiceway.kafka.clients.admin_client", admin_client)
    worker = WorkerConfig.of({})
    admins = Admins(worker)
    for number in range(100):
        Meter(worker, f"c{number}", {"topics": "t"}, admins)
    for number in range(2):
        Meter(worker, f"d{number}", {"topics": "t", "admin.override.client.id": "other"}, admins)
    admins.client({})
    assert made == [{}, {"client.id": "other"}]
