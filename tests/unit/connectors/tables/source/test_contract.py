"""The contract of source connectors, what the config's validation finds, and how tables are divided among tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.connectors.delta import DeltaSourceConnector
from sluiceway.connectors.iceberg import IcebergSourceConnector
from sluiceway.errors import ConnectError
from sluiceway.testing import SourceConnectorContract
from support.table_source import SourceLake, numbers


class _Contract(SourceConnectorContract):
    format = ""

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        lake = SourceLake(self.format, tmp_path)
        lake.append(numbers(0, 3))
        return lake.config()


class TestIcebergSource(_Contract):
    connector_class = IcebergSourceConnector
    format = "iceberg"


class TestDeltaSource(_Contract):
    connector_class = DeltaSourceConnector
    format = "delta"


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> SourceLake:
    lake = SourceLake(request.param, tmp_path)
    lake.append(numbers(0, 1))
    return lake


def test_tables_are_divided_among_tasks(lake: SourceLake) -> None:
    connector = lake.connector()
    connector.start(lake.config(tables="a.x,a.y,a.z"))
    key = f"{lake.format}.tables"
    assert [config[key] for config in connector.task_configs(2)] == ["a.x,a.z", "a.y"]
    assert [config[key] for config in connector.task_configs(9)] == ["a.x", "a.y", "a.z"]


def test_validation_tries_the_tables(lake: SourceLake) -> None:
    def errors(**more: str) -> dict[str, list[str]]:
        found = lake.connector.validate({**lake.config(), **more})
        return {name: each.errors for name, each in found.items() if each.errors}

    key = f"{lake.format}.tables"
    assert errors(**lake.ids(), columns="id,name") == {}
    assert errors(**{key: "db.t,db.missing"}) == {key: ["Table db.missing does not exist."]}
    assert set(errors(**lake.ids("nothing"))) == {f"{key}.default-id-columns"}
    assert set(errors(**{"start.position": "soon"})) == {"start.position"}
    assert set(errors(**{"topic": "a", "topic.prefix": "b"})) == {"topic.prefix"}
    assert "lacks a column" in str(errors(columns="id,nothing"))


def test_an_address_without_a_catalog_is_an_error_of_its_key(tmp_path: Path) -> None:
    lake = SourceLake("iceberg", tmp_path)
    found = lake.connector.validate({**lake.config(), "iceberg.catalog.uri": "nonsense://catalog"})
    assert {name for name, each in found.items() if each.errors} == {"iceberg.catalog.uri"}


def test_offsets_are_validated(lake: SourceLake) -> None:
    connector, config = lake.connector(), lake.config()
    assert connector.alter_offsets(config, [({"table": "db.t"}, {"snapshot": 3}), ({"table": "db.u"}, None)])
    with pytest.raises(ConnectError, match=r"db\.u"):
        connector.alter_offsets(config, [({"table": "db.u"}, {"snapshot": 3})])
