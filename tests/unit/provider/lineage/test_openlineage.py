"""Tests of the lineage that a connector's operator reports to OpenLineage."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator
from sluiceway.provider.lineage import observed
from sluiceway.provider.lineage import openlineage as openlineage_module
from sluiceway.provider.lineage.datasets import DataSet
from sluiceway.provider.settings import Settings
from sluiceway.storage.model import ConnectorEntry, TargetState

BOOTSTRAP = "broker:9092,other:9092"
FILE_SOURCE = {"connector.class": "FileStreamSource", "file": "/var/log/app.log", "topic": "log"}


def _kafka(topic: str) -> DataSet:
    return DataSet("kafka://broker:9092", topic)


@dataclass
class _OperatorLineage:
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)


@pytest.fixture
def openlineage(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenLineage's provider and client, as far as an operator uses them."""
    extractors: Any = ModuleType("airflow.providers.openlineage.extractors")
    extractors.OperatorLineage = _OperatorLineage
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", ModuleType("airflow.providers.openlineage"))
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", extractors)
    monkeypatch.setattr(openlineage_module, "_input", lambda found, known: found)
    monkeypatch.setattr(openlineage_module, "_output", lambda found, known: found)
    monkeypatch.setattr(observed, "read_shapes", lambda *_: {})


class _Topics:
    def __init__(self, config: dict[str, str] | None) -> None:
        self.config = config

    def entry(self, name: str) -> ConnectorEntry | None:
        return None if self.config is None else SimpleNamespace(config=self.config, target_state=TargetState.STARTED)  # type: ignore[return-value]


def _with(operator: Any, link: Any) -> Any:
    class _Settings(Settings):
        def worker(self, override: Any = None, more: Any = None) -> WorkerConfig:
            return WorkerConfig.of({"bootstrap.servers": BOOTSTRAP})

    operator._settings = _Settings
    operator._internal_topics = lambda worker: link
    return operator


@pytest.mark.usefixtures("openlineage")
def test_an_operator_reports_inputs_and_outputs_before_and_after_it_runs() -> None:
    operator = _with(SourceConnectorOperator(task_id="t", config={"name": "c", **FILE_SOURCE}), None)
    both = _OperatorLineage([DataSet("file", "/var/log/app.log")], [_kafka("log")])
    assert operator.get_openlineage_facets_on_start() == both
    assert operator.get_openlineage_facets_on_complete(None) == both
    assert operator.get_openlineage_facets_on_failure(None) == both


@pytest.mark.usefixtures("openlineage")
def test_the_operator_of_a_generated_dag_reads_the_config_topic() -> None:
    config = {"connector.class": "FileStreamSink", "file": "/out", "topics": "log"}
    found = _with(SinkConnectorOperator(task_id="t", connector="c"), _Topics(config)).get_openlineage_facets_on_start()
    assert found == _OperatorLineage([_kafka("log")], [DataSet("file", "/out")])


@pytest.mark.usefixtures("openlineage")
def test_unknown_lineage_is_not_reported_and_fails_no_task() -> None:
    class _Away:
        def entry(self, name: str) -> None:
            raise ConnectError("Kafka is away")

    for link in (_Topics(None), _Away()):
        assert _with(SinkConnectorOperator(task_id="t", connector="c"), link).get_openlineage_facets_on_start() is None


def test_without_openlineages_provider_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", None)
    operator = _with(SourceConnectorOperator(task_id="t", config={"name": "c", **FILE_SOURCE}), None)
    assert operator.get_openlineage_facets_on_start() is None


@pytest.mark.usefixtures("openlineage")
def test_a_source_whose_config_names_no_topic_reports_those_that_it_has_used() -> None:
    class _Used(_Topics):
        def topics(self, name: str) -> list[str]:
            return ["shop.public.orders"]

    config = {"name": "c", "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": "shop"}
    found = _with(SourceConnectorOperator(task_id="t", config=config), _Used(config)).get_openlineage_facets_on_start()
    assert found == _OperatorLineage([], [_kafka("shop.public.orders")])
