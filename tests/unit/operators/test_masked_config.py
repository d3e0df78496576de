"""Literal secrets of a config that a DAG passes are masked before Airflow stores the rendered fields."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator
from sluiceway.operators.control import CreateConnectorOperator

PLUGIN = """
from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.connectors.mock.source import MockSourceConnector

class Source(MockSourceConnector):
    @classmethod
    def config_def(cls):
        return ConfigDef([ConfigKey(name="phrase", type=Type.PASSWORD)])
"""
CONFIG = {
    "name": "c",
    "connector.class": "AzureBlobStorageSink",
    "topics": "t",
    "azblob.account.key": "hunter2-by-type",
    "my.password": "{{ 'hunter2-rendered' }}",
    "store.url": "https://me:hunter2-in-url@host",
    "other.password": "${env:CONNECTOR_P}",
    "errors.log.enable": True,
}


@pytest.mark.parametrize("operator", [SourceConnectorOperator, SinkConnectorOperator, CreateConnectorOperator])
def test_what_is_rendered_is_masked(operator: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda secret, name=None: masked.append(secret))
    dag = DAG("d", schedule=None)
    task = operator(task_id="t", config=CONFIG, dag=dag)
    task.render_template_fields({}, dag.get_template_env())
    assert sorted(masked) == ["hunter2-by-type", "hunter2-rendered", "me:hunter2-in-url"]
    assert task.config["my.password"] == "hunter2-rendered"


def test_what_is_rendered_for_a_mapped_task_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda secret, name=None: masked.append(secret))
    dag = DAG("d", schedule=None)
    mapped = SinkConnectorOperator.partial(task_id="t", dag=dag).expand(config=[CONFIG])
    mapped.render_template_fields(
        {"ti": SimpleNamespace(map_index=0), "expanded_ti_count": 1, "dag": dag, "dag_run": SimpleNamespace(conf={})},  # type: ignore[typeddict-item]
        dag.get_template_env(),
    )
    assert sorted(masked) == ["hunter2-by-type", "hunter2-rendered", "me:hunter2-in-url"]


def test_the_types_of_keys_of_plugins_in_plugin_path_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda secret, name=None: masked.append(secret))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "masked_plugin.py").write_text(PLUGIN)
    (tmp_path / "worker.properties").write_text(f"plugin.path={tmp_path}/plugins\n")
    config = {"name": "c", "connector.class": "masked_plugin.Source", "phrase": "hunter2-by-type"}
    dag = DAG("d", schedule=None)
    for file, found in ((tmp_path / "missing", []), (tmp_path / "worker.properties", ["hunter2-by-type"])):
        task = SourceConnectorOperator(task_id=f"t{len(dag.tasks)}", config=config, worker_properties=str(file), dag=dag)
        task.render_template_fields({}, dag.get_template_env())
        assert masked == found


def test_a_file_has_nothing_to_mask_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda *_: pytest.fail("nothing is known yet"))
    dag = DAG("d", schedule=None)
    SinkConnectorOperator(task_id="t", connector="c", config="/c.json", dag=dag).render_template_fields(
        {}, dag.get_template_env()
    )
