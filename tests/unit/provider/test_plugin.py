"""Tests of the Airflow plugin."""

from __future__ import annotations

import sys

import pytest

from sluiceway.provider.plugin import SluicewayPlugin, external_views, root_middlewares


@pytest.mark.parametrize(("base_url", "prefix"), [("", ""), ("http://host:8080", ""), ("https://host/airflow/", "/airflow")])
def test_links_to_the_page_start_with_airflows_base_path(base_url: str, prefix: str) -> None:
    page, tab = external_views(base_url)
    assert page["href"] == f"{prefix}/sluiceway/ui/index.html"
    assert tab["href"] == f"{prefix}/sluiceway/ui/index.html?dag={{DAG_ID}}"
    assert (page["destination"], tab["destination"]) == ("nav", "dag")


@pytest.mark.parametrize(
    ("database", "base_url", "free"),
    [
        ("sqlite:////home/airflow.db?timeout=60", "http://host:8080", ["/sluiceway/"]),
        ("sqlite:////home/airflow.db", "https://host/airflow/", ["/airflow/sluiceway/"]),
        ("postgresql+psycopg2://host/airflow", "", []),
        ("", "", []),
    ],
)
def test_the_api_server_writes_one_at_a_time_to_sqlite_only(database: str, base_url: str, free: list[str]) -> None:
    assert [each["kwargs"]["free"] for each in root_middlewares(database, base_url)] == free


@pytest.mark.parametrize(
    ("arguments", "executor", "imported"),
    [
        (["airflow", "scheduler"], "LocalExecutor", True),
        (["airflow", "scheduler"], "CeleryExecutor,LocalExecutor", True),
        (["airflow", "scheduler"], "CeleryExecutor", False),
        (["airflow", "triggerer"], "LocalExecutor", False),
    ],
)
def test_the_scheduler_imports_the_operators_if_it_forks_the_tasks(
    arguments: list[str], executor: str, imported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    monkeypatch.setattr("sluiceway.provider.preload.importlib.import_module", found.append)
    [listener] = SluicewayPlugin.listeners
    listener.on_starting(None)
    assert found == (["sluiceway.operators.connector"] if imported else [])
