"""The keys that published classes define are those that ``tests/conformance`` compares Python's implementations with.

``RECORD=1`` records them anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import config_keys
from sluiceway.discovery import java_name, language_of
from sluiceway.herder.plugin_classes import KINDS, installed_classes
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.validation import plugin_config
from sluiceway.java_plugins import finder
from support.java_plugins import (
    CONNECT_FILE,
    DEBEZIUM_JDBC,
    DEBEZIUM_MARIADB,
    DEBEZIUM_MYSQL,
    DEBEZIUM_POSTGRES,
    fetch_runtime,
    forget_plugins,
    plugin_folder,
)
from support.published_plugins import MIRROR, iceberg_folder

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_JARS = {
    "file": CONNECT_FILE,
    "mirror": MIRROR,
    "debezium-jdbc": DEBEZIUM_JDBC,
    "debezium-mariadb": DEBEZIUM_MARIADB,
    "debezium-mysql": DEBEZIUM_MYSQL,
    "debezium-postgres": DEBEZIUM_POSTGRES,
}


@pytest.fixture
def implemented(tmp_path: Path) -> Iterator[list[str]]:
    """Return the classes in published jars that Python implements."""
    python = {java_name(cls) for kind in KINDS for cls in installed_classes(kind) if language_of(cls) == "python"}
    fetch_runtime()
    finder._folders.clear()
    for name, coordinates in _JARS.items():
        plugin_folder(tmp_path, name, coordinates)
    iceberg_folder(tmp_path)
    use_plugin_path({"plugin.path": str(tmp_path), "plugin.java": "prefer"})
    java = {java_name(cls) for kind in KINDS for cls in installed_classes(kind) if language_of(cls) == "java"}
    yield sorted(name for name in python & java if not name.startswith(finder._OF_RUNTIME))
    forget_plugins()


def test_the_recorded_keys_are_those_of_the_jars(implemented: list[str]) -> None:
    found = {name: sorted(key.name for key in plugin_config(name)) for name in implemented}
    if os.environ.get("RECORD"):
        config_keys.record(found)
    assert found == config_keys.recorded()
