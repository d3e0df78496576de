from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.definition import ConfigDef
from sluiceway.herder.reconcile import desired_task_configs
from sluiceway.java_plugins import connector as connector_module
from sluiceway.java_plugins.connector import JavaSourceConnector
from sluiceway.java_plugins.source_task import JavaSourceTask


class _Plugin:
    class_name = "test.Source"
    location: Path | None = None
    jars = ()


class _Slot:
    """Stands for a Java process with a connector whose task class is in its config."""

    context = ""

    def __init__(self, *_: object) -> None: ...

    def host(self) -> Any:
        return self

    def new(self, *_: object, **__: object) -> Any:
        return self

    def call(self, method: str, args: Any) -> Any:
        return args["config"]["kind"] if method == "start" else [{}]


class _Source(JavaSourceConnector):
    plugin = _Plugin()
    task_class = JavaSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()


class _Context:
    def raise_error(self, error: BaseException) -> None: ...


def test_connectors_of_one_class_whose_configs_choose_the_task_class_keep_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_module, "current_slot", _Slot)
    configs = [{"name": kind, "kind": f"test.{kind}"} for kind in ("One", "Other")]
    made = []
    for config in configs:
        connector = _Source()
        connector.initialize(_Context())  # type: ignore[arg-type]  # as much as start() needs
        connector.start(config)
        made.append(connector)
    tasks = [desired_task_configs(*each)[0] for each in zip(made, configs, strict=True)]
    assert [task["task.class"] for task in tasks] == ["test.One", "test.Other"]
