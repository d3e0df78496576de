"""The example DAGs example_hbase_copy, example_redis_latest, and example_search_copy."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pytest

from sluiceway.discovery import connector_class
from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator

_CLOSED = {
    "HBASE": "127.0.0.1:1",
    "REDIS": "redis://127.0.0.1:1/0",
    "SEARCH_FROM": "http://127.0.0.1:1",
    "SEARCH_TO": "http://127.0.0.1:1",
}


def valid_config(operator: Any) -> Mapping[str, str]:
    """Return the config of a micro-batch, whose server is away: tasks wait for it."""
    assert isinstance(operator, (SourceConnectorOperator, SinkConnectorOperator))
    config = operator.config
    assert isinstance(config, Mapping)
    assert config["airflow.mode"] == "micro-batch"
    assert not [value.errors for value in connector_class(config["connector.class"]).validate(config).values() if value.errors]
    return config


@pytest.mark.parametrize("name", ["example_hbase_copy", "example_redis_latest", "example_search_copy"])
def test_a_scheduled_source_and_then_a_sink_of_its_topic(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable, value in _CLOSED.items():
        monkeypatch.setenv(f"SLUICEWAY_EXAMPLE_{variable}", value)
    dag = importlib.reload(importlib.import_module(f"sluiceway.dags.{name}")).dag
    publish, copy = dag.tasks
    assert publish.downstream_list == [copy]
    source, sink = valid_config(publish), valid_config(copy)
    assert sink["topics"] == source.get("topic", f"{source.get('topic.prefix')}{source.get('index')}")
