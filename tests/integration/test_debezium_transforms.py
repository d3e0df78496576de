"""Debezium's transforms beside the published classes: definitions, configs, and records one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from sluiceway.config.definition import ConfigDef
from sluiceway.discovery import transform_class
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.java_plugins.classes import plugin_class
from sluiceway.java_plugins.hosts import task_host
from sluiceway.runtime.java_chain import java_transform
from support.debezium_cases import CASES, records_for
from support.debezium_transforms import differences, java_plugin
from support.java_plugins import DEBEZIUM_POSTGRES, fetch_runtime, forget_plugins, plugin_folder

pytestmark = pytest.mark.long

_PACKAGE = "io.debezium.transforms."
_RECORDS = 80


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fetch_runtime()
    with task_host("debezium"):
        yield plugin_folder(tmp_path_factory.mktemp("plugins"), "debezium", DEBEZIUM_POSTGRES)


@pytest.mark.parametrize("name", CASES)
def test_records_and_errors_are_debeziums(name: str, location: Path) -> None:
    plugin = java_plugin(_PACKAGE + name, location)
    found = []
    for seed, config in enumerate(CASES[name]):
        found += differences(plugin, config, records_for(name, Random(seed), _RECORDS))  # noqa: S311
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:5])


@pytest.mark.parametrize("name", CASES)
def test_definitions_are_debeziums(name: str, location: Path) -> None:
    theirs = plugin_class(java_plugin(_PACKAGE + name, location))
    assert theirs is not None
    assert _attributes(transform_class(_PACKAGE + name).config_def()) == _attributes(theirs.config_def())  # type: ignore[attr-defined]


def _attributes(definition: ConfigDef) -> list[tuple[object, ...]]:
    """Return the attributes of each key but its documentation, which is in our words."""
    return [
        *((key.name, key.type, key.shown_default, key.importance, key.width, key.display_name) for key in definition),
        *((key.group, key.order_in_group, key.required, key.dependents, key.validator is not None) for key in definition),
    ]


@pytest.mark.parametrize(("choice", "java"), [("prefer", True), ("fallback", False), ("off", False)])
def test_plugin_java_chooses_between_the_jar_and_python(choice: str, java: bool, location: Path) -> None:
    try:
        use_plugin_path({"plugin.path": str(location.parent), "plugin.java": choice})
        found = transform_class(f"{_PACKAGE}ExtractNewRecordState")
        assert hasattr(found, "plugin") is java
        config = {"transforms.u.type": f"{_PACKAGE}ExtractNewRecordState"}
        # The chain of a Java connector stays in Java if the jar is there.
        in_java = java_transform("u", config)
        assert (in_java is None) is (choice == "off")
    finally:
        forget_plugins()
