"""Tests of generated DAGs."""

from __future__ import annotations

import inspect
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk import AssetAll, AssetAny

from sluiceway import discovery
from sluiceway.discovery import load
from sluiceway.errors import ConfigError
from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator
from sluiceway.operators.application import ApplicationOperator
from sluiceway.provider.dag_bundle.connector_dag import application_dag, connector_dag
from sluiceway.provider.dag_bundle.stubs import stubs, write_stubs
from sluiceway.provider.lineage.assets import connector_alias
from sluiceway.provider.triggers.conditions import DriverEndedCondition, from_dict
from sluiceway.storage.model import ClusterState, ConnectorEntry
from support.java_classes import SINK as JAVA_SINK
from support.java_classes import SOURCE as JAVA_SOURCE
from support.java_classes import class_file, write_jar
from support.java_plugins import forget_plugins

SOURCE = {"connector.class": "FileStreamSource", "file": "/in", "topic": "t"}
SINK = {"connector.class": "FileStreamSink", "file": "/out", "topics": "t"}
BATCH = {"airflow.mode": "micro-batch"}


def _dag(config: dict[str, str]) -> Any:
    return connector_dag("c", config, source_operator=SourceConnectorOperator, sink_operator=SinkConnectorOperator)


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SLUICEWAY__WORKER_PROPERTIES", "/w.properties")
    monkeypatch.setenv("AIRFLOW__SLUICEWAY__CALLBACKS", "allowed.module, another")


TEMPLATES = (
    "{{ secret }}",
    "{{ 'orders' }}",
    "{% raw %}",
    "{# a #}",
    "${{secret}}",
    "{{ secret",
    "x.sql",
    "script.sh",
    "{{ 1/0 }}",
)
"""Texts that Jinja would change or refuse, and names of files that Airflow would read for a templated field."""


@pytest.mark.parametrize("text", TEMPLATES)
@pytest.mark.parametrize("config", [SOURCE, SINK, {**SOURCE, **BATCH}], ids=["source", "sink", "batch"])
def test_names_in_generated_dags_are_literal(text: str, config: dict[str, str]) -> None:
    dag: Any = connector_dag(text, config, source_operator=SourceConnectorOperator, sink_operator=SinkConnectorOperator)
    [task] = dag.tasks
    task.render_template_fields({"secret": "s3cret"}, dag.get_template_env())
    assert task.connector == text
    assert task.outlets == [connector_alias(text)]


@pytest.mark.parametrize("text", TEMPLATES)
def test_names_of_generated_applications_are_literal(text: str) -> None:
    dag: Any = application_dag(text, operator=ApplicationOperator)
    [task] = dag.tasks
    task.render_template_fields({"secret": "s3cret"}, dag.get_template_env())
    assert task.application_name == text


def test_the_page_links_to_rest_and_has_no_config() -> None:
    page = _dag({**SOURCE, "db.user": "hunter2"}).doc_md
    assert "hunter2" not in page
    assert "[status](/sluiceway/connectors/c/status)" in page


def test_assets_schedule_a_dag() -> None:
    every = _dag({**SOURCE, **BATCH, "airflow.schedule": "asset:s3://b/k,s3://b/l"})
    assert isinstance(every.timetable.asset_condition, AssetAll)
    either = _dag({**SOURCE, **BATCH, "airflow.schedule": "asset:s3://b/k|s3://b/l"})
    assert isinstance(either.timetable.asset_condition, AssetAny)


def test_a_lag_schedule_has_an_asset_watcher() -> None:
    dag = _dag({**SINK, **BATCH, "airflow.schedule": "lag:100"})
    [asset] = dag.timetable.asset_condition.objects
    [watcher] = asset.watchers
    assert (watcher.trigger.connector, watcher.trigger.at_least, watcher.trigger.worker_file) == ("c", 100, "/w.properties")


def test_a_source_that_is_watched_has_an_asset_watcher_without_its_config() -> None:
    dag = _dag({**SOURCE, **BATCH, "airflow.schedule": "on-change"})
    [asset] = dag.timetable.asset_condition.objects
    [watcher] = asset.watchers
    assert (asset.uri, watcher.name) == ("sluiceway://change/c", "change-c")
    fields = {"connector": "c", "worker_file": "/w.properties", "interval": 0.5, "patience": 600.0}
    assert watcher.trigger.serialize() == ("sluiceway.provider.triggers.ChangeTrigger", fields)
    assert "when its system has something new" in str(dag.doc_md)
    with pytest.raises(ConfigError, match="only sources are watched"):
        _dag({**SINK, **BATCH, "airflow.schedule": "on-change"})


def test_catch_up_starts_at_the_start_date_and_requires_a_schedule() -> None:
    late = {**SOURCE, **BATCH, "airflow.catchup": "true", "airflow.start.date": "2024-05-01"}
    dag = _dag({**late, "airflow.schedule": "@daily"})
    assert (dag.catchup, dag.start_date.isoformat()) == (True, "2024-05-01T00:00:00+00:00")
    with pytest.raises(ConfigError, match=r"airflow\.catchup"):
        _dag(late)


def test_callbacks_must_be_in_allowed_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("allowed.module")
    module.on_failure = lambda context: None
    monkeypatch.setitem(sys.modules, "allowed.module", module)
    dag = _dag({**SOURCE, "airflow.on.failure.callback": "allowed.module.on_failure"})
    assert list(dag.task_dict["run"].on_failure_callback) == [module.on_failure]
    with pytest.raises(ConfigError, match=r"not among those in Airflow's \[sluiceway\] callbacks"):
        _dag({**SOURCE, "airflow.on.failure.callback": "os.abort"})
    with pytest.raises(ConfigError, match="cannot be imported"):
        _dag({**SOURCE, "airflow.on.failure.callback": "allowed.module.f"})


def test_a_shared_application_has_a_continuous_dag() -> None:
    dag = application_dag("small", operator=ApplicationOperator)
    assert (dag.dag_id, dag.max_active_runs) == ("application_x7Esmall", 1)
    task = dag.task_dict["run"]
    assert isinstance(task, ApplicationOperator)
    assert task.application_name == "small"


def test_a_task_that_only_waits_for_a_shared_application_starts_in_the_triggerer() -> None:
    def task(config: dict[str, str], application: str | None) -> Any:
        dag = connector_dag(
            "c",
            config,
            source_operator=SourceConnectorOperator,
            sink_operator=SinkConnectorOperator,
            application=application,
        )
        return dag.task_dict["run"]

    waits = task(SOURCE, "small")
    assert waits.start_from_trigger
    start = waits.start_trigger_args
    trigger = load(start.trigger_cls)(**start.trigger_kwargs)
    assert from_dict(trigger.condition) == DriverEndedCondition("c", hosted=True)
    assert trigger.worker_file == "/w.properties"
    assert set(start.next_kwargs) <= set(inspect.signature(getattr(waits, start.next_method)).parameters)
    assert not task(SOURCE, None).start_from_trigger
    assert not task({**SOURCE, **BATCH}, "small").start_from_trigger


def test_a_thousand_connectors_are_written_and_parsed_in_time(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(1000)]
    state = ClusterState({name: ConnectorEntry(name, {**SOURCE, "name": name}) for name in names})
    began = time.perf_counter()
    write_stubs(tmp_path, stubs(state))
    written = time.perf_counter()
    assert write_stubs(tmp_path, stubs(state)) == []
    unchanged = time.perf_counter()
    for path in sorted(tmp_path.iterdir())[:50]:
        exec(compile(path.read_text(), str(path), "exec"), {})  # noqa: S102 (as Airflow does)
    parsed = (time.perf_counter() - unchanged) / 50
    print(
        f"1,000 stubs: written {written - began:.2f} s, unchanged {unchanged - written:.2f} s, parsed {1000 * parsed:.1f} ms each"
    )
    assert parsed < 0.25  # some 5 ms on a quiet machine


@pytest.mark.parametrize(("parent", "operator"), [(JAVA_SOURCE, SourceConnectorOperator), (JAVA_SINK, SinkConnectorOperator)])
def test_a_java_class_with_topics_is_what_its_jar_says(
    parent: str, operator: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Camel's sources have topics."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_jar(tmp_path / "plugins" / "a.jar", {"a.TimerConnector": class_file("a.TimerConnector", parent)})
    (tmp_path / "worker.properties").write_text(f"plugin.path={tmp_path}/plugins\n")
    monkeypatch.setenv("AIRFLOW__SLUICEWAY__WORKER_PROPERTIES", str(tmp_path / "worker.properties"))
    try:
        assert type(_dag({"connector.class": "a.TimerConnector", "topics": "t"}).task_dict["run"]) is operator
    finally:
        forget_plugins()
    assert discovery.plugin_named("sluiceway.connectors", "a.TimerConnector") is None


def test_a_class_that_is_not_installed_counts_as_a_sink() -> None:
    assert type(_dag({"connector.class": "a.Unknown", "topics": "t"}).task_dict["run"]) is SinkConnectorOperator
