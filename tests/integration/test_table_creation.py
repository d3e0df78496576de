"""Tasks that create a table, its namespace, and the catalog's own tables at the same moment."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest

from support.database import DatabaseForTest
from support.table_sink import Lake

_TASKS, _ROUNDS = 4, 5
_COLUMNS = pa.schema([pa.field("id", pa.int64())])


@pytest.fixture(params=["delta", "sqlite", "postgresql", "mariadb"])
def configs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The configs of sinks, each with a catalog that has no tables yet."""
    return _configs(request, tmp_path)


def _configs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    for number in range(_ROUNDS):
        lake = Lake("delta" if request.param == "delta" else "iceberg", tmp_path / str(number))
        lake.folder.mkdir()
        config = lake.config()
        if request.param in ("postgresql", "mariadb"):
            database: DatabaseForTest = request.getfixturevalue(request.param)
            for table in ("iceberg_tables", "iceberg_namespace_properties"):
                database.execute(f"drop table if exists {table}")
            config["iceberg.catalog.uri"] = database.jdbc_url.replace("mariadb", "mysql")
            config["iceberg.catalog.jdbc.user"], config["iceberg.catalog.jdbc.password"] = database.user, database.password
        yield config


def test_all_tasks_have_the_same_table(configs: Iterator[dict[str, str]]) -> None:
    for config in configs:
        together = Barrier(_TASKS)

        def create(_: int, config: dict[str, str] = config, together: Barrier = together) -> str:
            with closing(_store(config)) as store:
                together.wait()
                table = store.table("db.t") or store.create("db.t", _COLUMNS, [], [])
                metadata = table._table.metadata
                return str(metadata().id if callable(metadata) else metadata.table_uuid)

        with ThreadPoolExecutor(_TASKS) as pool:
            assert len(set(pool.map(create, range(_TASKS)))) == 1


def _store(config: dict[str, str]) -> Any:
    connector = Lake("delta" if "delta.path" in config else "iceberg", Path()).connector
    return connector.store_of(connector.options_of(config))
