"""Java connectors as the driver and the REST API use them: definition, validation, task configs, errors and hanging calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway import discovery
from sluiceway.api import ConnectorTransactionBoundaries, ExactlyOnceSupport
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.validation import validate_config
from sluiceway.worker import worker_connector
from sluiceway.worker.worker_connector import Failed, Started, TaskConfigs
from support.engine import Offsets
from support.eventually import eventually
from support.java_plugins import (
    SCRIPTED,
    Driven,
    all_java_processes,
    compiled_plugin,
    fetch_runtime,
    forget_plugins,
    java_processes,
)

_CLASS = "test.ScriptedSource"


@pytest.fixture(scope="module", autouse=True)
def _plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    compiled_plugin(folder, "scripted", SCRIPTED)
    use_plugin_path({"plugin.path": str(folder)})
    yield
    forget_plugins()


def config(**more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"name": "c", "connector.class": _CLASS, "tasks.max": "1", **given}


def test_the_definition_and_validation_are_the_java_class_s() -> None:
    infos = validate_config({**config(limit="0"), "topic": "t"}, WorkerConfig.of({"bootstrap.servers": "localhost:1"}))
    found = {each["value"]["name"]: each for each in infos.to_json()["configs"]}
    assert found["limit"]["definition"]["documentation"] == "How many."
    assert found["limit"]["definition"]["default_value"] == "100"
    assert found["limit"]["value"]["errors"] == [
        "Invalid value 0 for configuration limit: Value must be at least 1",
    ]


def test_a_connector_answers_about_exactly_once_and_offsets() -> None:
    connector: Any = discovery.connector_class(_CLASS)()
    assert connector.exactly_once_support(config()) is ExactlyOnceSupport.SUPPORTED
    assert connector.can_define_transaction_boundaries(config()) is ConnectorTransactionBoundaries.SUPPORTED
    assert connector.alter_offsets(config(), [({"s": "1"}, {"n": 5}), ({"s": "2"}, None)])
    with pytest.raises(ConnectError, match=r"n: \{n=x\}"):
        connector.alter_offsets(config(), [({"s": "1"}, {"n": "x"})])


def test_a_driver_gets_task_configs_and_requests_for_new_ones_from_one_java_process() -> None:
    assert java_processes() == []
    driven = Driven(config(limit="7", reconfigure=""))
    driven.until(Started)
    [task] = driven.until(TaskConfigs).configs
    assert len(all_java_processes()) == 1, "the definition is asked for in the connector's own process"
    assert (task["limit"], task["task.class"]) == ("7", f"{_CLASS}$ScriptedTask")
    driven.connector.stop(30)
    assert java_processes() == []


@pytest.mark.long
def test_a_connector_reads_the_stored_offsets() -> None:
    offsets = Offsets()
    offsets.put("c", [({"s": "1"}, {"n": 5})])
    driven = Driven(config(read=""), offsets)
    [task] = driven.until(TaskConfigs).configs
    assert task["read"] == "{n=5} null"
    driven.connector.stop(30)
    assert java_processes() == []


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        pytest.param("raise", "from a thread", marks=pytest.mark.long),
        pytest.param("refuse", "no such database", marks=pytest.mark.long),
        ("exit", "ended unexpectedly with exit code 3"),
    ],
)
def test_a_connector_that_fails_is_failed_with_its_error(key: str, wanted: str) -> None:
    driven = Driven(config(**{key: ""}))
    assert wanted in str(driven.until(Failed).error)
    driven.connector.stop(30)
    assert java_processes() == []


def test_a_connector_whose_call_hangs_is_in_the_log_and_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_connector, "_LATE_SECONDS", 0.5)
    driven = Driven(config(hang=""))
    driven.until(Started)
    eventually(lambda: driven.connector.events() == [] and "taskConfigs() has not returned" in caplog.text)
    driven.connector.events()
    assert caplog.text.count("taskConfigs() has not returned") == 1
    driven.connector.stop(1)
    eventually(lambda: java_processes() == [])
