"""Both ends of a connector under OpenLineage's names, and what an operator tells OpenLineage."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator
from sluiceway.provider.lineage.datasets import DataSet, lineage
from sluiceway.provider.settings import Settings
from sluiceway.storage.model import ConnectorEntry, TargetState

BOOTSTRAP = "broker:9092,other:9092"
FILE_SOURCE = {"connector.class": "FileStreamSource", "file": "/var/log/app.log", "topic": "log"}
PG = {"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "connection.url": "jdbc:postgresql://db/shop"}


def _kafka(topic: str) -> DataSet:
    return DataSet("kafka://broker:9092", topic)


@pytest.mark.parametrize(
    ("config", "inputs", "topics"),
    [
        (FILE_SOURCE, ["file /var/log/app.log"], ["log"]),
        ({**FILE_SOURCE, "file": "relative.txt"}, [], ["log"]),
        ({**FILE_SOURCE, "file": "${env:LOG}"}, [], ["log"]),
        ({"input.path": "/landing", "topic": "t"}, ["file /landing"], ["t"]),
        (
            {**PG, "table.whitelist": 'orders,stock."items"', "topic.prefix": "shop-"},
            ["postgres://db:5432 shop.public.orders", "postgres://db:5432 shop.stock.items"],
            ["shop-orders", "shop-items"],
        ),
        (
            {"connection.url": "jdbc:mysql://me:hidden@db:3307/shop?password=hidden", "table.whitelist": "orders"},
            ["mysql://db:3307 shop.orders"],
            ["orders"],
        ),
        ({"connection.url": "${file:/db:url}", "table.whitelist": "orders"}, [], ["orders"]),
        ({"connection.url": "jdbc:postgresql://db/${env:DB}", "table.whitelist": "orders"}, [], ["orders"]),
        ({"connection.url": "jdbc:postgresql://db:port/shop", "table.whitelist": "orders"}, [], ["orders"]),
        (
            {"source.cluster.bootstrap.servers": "there:9092", "source.cluster.alias": "a", "topics": "one,two.*"},
            ["kafka://there:9092 one"],
            ["a.one"],
        ),
        ({"connector.class": "VerifiableSource"}, [], []),
    ],
)
def test_a_source_reads_from_outside_and_writes_topics(config: dict[str, str], inputs: list[str], topics: list[str]) -> None:
    found = lineage(config, bootstrap=BOOTSTRAP, sink=False)
    assert [" ".join(each) for each in found.inputs] == inputs
    assert list(found.outputs) == [_kafka(topic) for topic in topics]


@pytest.mark.parametrize(
    ("config", "outputs"),
    [
        ({"file": "/out.txt"}, ["file /out.txt"]),
        ({**PG, "table.name.format": "raw.${topic}"}, ["postgres://db:5432 shop.raw.a", "postgres://db:5432 shop.raw.b"]),
        (PG, ["postgres://db:5432 shop.public.a", "postgres://db:5432 shop.public.b"]),
    ],
)
def test_a_sink_reads_topics_and_writes_outside(config: dict[str, str], outputs: list[str]) -> None:
    found = lineage({**config, "topics": "a, b"}, bootstrap=BOOTSTRAP, sink=True)
    assert list(found.inputs) == [_kafka("a"), _kafka("b")]
    assert [" ".join(each) for each in found.outputs] == outputs


def test_topics_that_are_found_by_a_pattern_are_not_named() -> None:
    assert lineage({"topics.regex": "a.*", "file": "/out"}, bootstrap=BOOTSTRAP, sink=True).inputs == ()


@dataclass
class _OperatorLineage:
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)


@pytest.fixture
def openlineage(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenLineage's provider and client, as far as an operator sees of them."""
    extractors: Any = ModuleType("airflow.providers.openlineage.extractors")
    extractors.OperatorLineage = _OperatorLineage
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", ModuleType("airflow.providers.openlineage"))
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", extractors)
    facet = "airflow.providers.common.compat.openlineage.facet.Dataset"
    monkeypatch.setattr(facet, lambda namespace, name: DataSet(namespace, name))


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
def test_an_operator_names_both_ends_before_it_runs_and_after() -> None:
    operator = _with(SourceConnectorOperator(task_id="t", config={"name": "c", **FILE_SOURCE}), None)
    both = _OperatorLineage([DataSet("file", "/var/log/app.log")], [_kafka("log")])
    assert operator.get_openlineage_facets_on_start() == both
    assert operator.get_openlineage_facets_on_complete(None) == both
    assert operator.get_openlineage_facets_on_failure(None) == both


@pytest.mark.usefixtures("openlineage")
def test_a_generated_dags_operator_asks_the_config_topic() -> None:
    config = {"connector.class": "FileStreamSink", "file": "/out", "topics": "log"}
    found = _with(SinkConnectorOperator(task_id="t", connector="c"), _Topics(config)).get_openlineage_facets_on_start()
    assert found == _OperatorLineage([_kafka("log")], [DataSet("file", "/out")])


@pytest.mark.usefixtures("openlineage")
def test_what_is_not_known_is_not_told_and_fails_nothing() -> None:
    class _Away:
        def entry(self, name: str) -> None:
            raise ConnectError("Kafka is away")

    for link in (_Topics(None), _Away()):
        assert _with(SinkConnectorOperator(task_id="t", connector="c"), link).get_openlineage_facets_on_start() is None


def test_without_openlineage_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", None)
    operator = _with(SourceConnectorOperator(task_id="t", config={"name": "c", **FILE_SOURCE}), None)
    assert operator.get_openlineage_facets_on_start() is None
