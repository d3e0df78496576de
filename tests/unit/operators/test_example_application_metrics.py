"""The example DAG example_application_metrics."""

from __future__ import annotations

import importlib

import pytest

from sluiceway.connectors.observability import PrometheusSourceConnector
from sluiceway.operators import SourceConnectorOperator


def test_application_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEWAY_EXAMPLE_TARGETS", "shop:8000,https://stock/metrics")
    from sluiceway.dags import example_application_metrics as example

    [operator] = importlib.reload(example).dag.tasks
    assert isinstance(operator, SourceConnectorOperator)
    config = operator.config
    assert isinstance(config, dict)
    found = PrometheusSourceConnector.validate(config)
    assert found["targets"].value == ["shop:8000", "https://stock/metrics"]
    assert not [value.errors for value in found.values() if value.errors]
