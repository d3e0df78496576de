"""Tests that what 0.1.0 stored in Airflow's database, settings and files still works.

``data/stored_by_0_1_0.json`` was written with the code of 0.1.0. Do not change it.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator
from sluiceway.operators.application import ApplicationOperator
from sluiceway.provider.driver.detached import DetachedDriver
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.settings import airflow_settings
from sluiceway.provider.triggers import ConditionTrigger
from sluiceway.provider.triggers.conditions import from_dict

STORED: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "stored_by_0_1_0.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("path", "arguments"), STORED["triggers"])
def test_a_stored_trigger_is_created_and_stored_again_unchanged(path: str, arguments: dict[str, Any]) -> None:
    trigger = resolve_name(path)(**arguments)
    assert json.loads(json.dumps(trigger.serialize())) == [path, arguments]


@pytest.mark.parametrize("arguments", [arguments for path, arguments in STORED["triggers"] if "condition" in arguments])
def test_a_stored_condition_has_the_same_fields(arguments: dict[str, Any]) -> None:
    trigger = ConditionTrigger.of(from_dict(arguments["condition"]), "/etc/worker.properties", "broker", 5.0)
    assert trigger.condition == arguments["condition"]


@pytest.mark.parametrize(("path", "method"), STORED["tasks"].items())
def test_a_deferred_task_resumes_in_the_stored_method(path: str, method: str) -> None:
    stored = {"event": STORED["event"], **(STORED["next_kwargs"] if "operators.connector" in path else {})}
    if method == "execute":
        stored = {}
    inspect.signature(getattr(resolve_name(path), method)).bind(None, context={}, **stored)


def test_the_stored_arguments_of_a_deferred_task_describe_its_driver() -> None:
    stored = STORED["next_kwargs"]["began"]
    assert DetachedDriver.from_dict(stored).to_dict() == {**stored, "restarts": 0, "since": None}


@pytest.mark.parametrize("bundle", STORED["bundles"][1:])
def test_the_bundle_in_airflows_settings_is_loaded(bundle: dict[str, Any]) -> None:
    loaded = resolve_name(bundle["classpath"])(name=bundle["name"], **bundle["kwargs"])
    assert loaded.refresh_interval == 30


def test_the_printed_settings_name_the_same_bundles() -> None:
    printed = airflow_settings(Path("/etc/worker.properties"))
    assert json.loads(printed["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"]) == STORED["bundles"]


@pytest.mark.parametrize(("name", "text"), STORED["stubs"].items())
def test_a_file_in_the_bundle_is_parsed_until_it_is_replaced(name: str, text: str) -> None:
    scope: dict[str, Any] = {}
    exec(compile(text, name, "exec"), scope)  # noqa: S102 (as Airflow does)
    dag = scope["dag"]
    assert isinstance(dag, DAG)
    [task] = dag.tasks
    assert isinstance(task, SinkConnectorOperator | ApplicationOperator)


def test_the_links_of_a_running_task_are_read_from_the_stored_xcoms() -> None:
    links = SinkConnectorOperator(task_id="run", connector="orders").operator_extra_links
    assert STORED["links"].items() <= {link.name: link.xcom_key for link in links}.items()


@pytest.mark.parametrize("path", STORED["documented"])
def test_a_path_that_its_documentation_named_can_be_imported(path: str) -> None:
    assert resolve_name(path)


def test_a_running_driver_is_recognized_by_its_file_name() -> None:
    submission = Submission("orders", Path("/etc/worker.properties"), "long-running", {})
    application, *arguments = STORED["driver"]
    assert Path(submission.application).name == Path(application).name
    assert submission.arguments(1) == arguments
