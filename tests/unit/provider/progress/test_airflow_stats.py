"""Tests of connectors' metrics in Airflow's own: real StatsD packets, and tags for receivers that know them."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from sluiceway.provider.compat import Stats
from sluiceway.provider.progress import airflow_stats
from sluiceway.provider.progress.airflow_stats import report_no_progress, report_progress, report_run
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.run_summary import RunSummary


class _Conf:
    def __init__(self, **on: bool) -> None:
        self._on = on

    def getboolean(self, _section: str, key: str, fallback: bool) -> bool:
        return self._on.get(key, fallback)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    made: list[tuple[Any, ...]] = []
    for kind in ("incr", "gauge", "timing"):
        monkeypatch.setattr(Stats, kind, lambda name, value=1, *, tags=None, kind=kind: made.append((kind, name, value, tags)))
    return made


def test_receivers_that_know_tags_get_the_connector_as_one(monkeypatch: pytest.MonkeyPatch, calls: list[tuple[Any, ...]]) -> None:
    monkeypatch.setattr(airflow_stats, "conf", _Conf(otel_on=True))
    tags = {"connector": "my orders"}
    report_progress("my orders", ConnectorProgress(count=5), ConnectorProgress(count=12, lag=3, dead_letters=1))
    report_run("my orders", RunSummary(12, 1.5))
    report_no_progress("my orders")
    assert calls == [
        ("incr", "sluiceway.connector.records", 7, tags),
        ("gauge", "sluiceway.connector.lag", 3, tags),
        ("gauge", "sluiceway.connector.dead_letters", 1, tags),
        ("timing", "sluiceway.connector.run.duration", 1500, tags),
        ("incr", "sluiceway.connector.no_progress", 1, tags),
    ]


def test_what_is_not_known_is_not_reported(monkeypatch: pytest.MonkeyPatch, calls: list[tuple[Any, ...]]) -> None:
    monkeypatch.setattr(airflow_stats, "conf", _Conf())
    report_progress("c", None, ConnectorProgress(count=12))
    report_progress("c", ConnectorProgress(count=12), ConnectorProgress(count=10))
    assert not calls, "a topic that was created again is no progress"


def test_plain_statsd_gets_the_connectors_name_in_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    statsd = pytest.importorskip("statsd")
    logger = pytest.importorskip("airflow.sdk.observability.metrics.statsd_logger")

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        client = statsd.StatsClient("127.0.0.1", receiver.getsockname()[1], prefix="airflow")
        Stats.initialize(factory=lambda: logger.SafeStatsdLogger(client), export_legacy_names=False)
        try:
            monkeypatch.setattr(airflow_stats, "conf", _Conf(statsd_on=True))
            report_progress("my orders", None, ConnectorProgress(lag=3))
            assert receiver.recv(1024) == b"airflow.sluiceway.connector.my_orders.lag:3|g"
        finally:
            from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

            Stats.initialize(factory=NoStatsLogger, export_legacy_names=False)
