"""Tests of the metadata for Airflow's provider manager."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import jsonschema

import airflow
from sluiceway.operators import ConnectorOperator
from sluiceway.provider.provider_info import get_provider_info
from sluiceway.provider.settings import OPTIONS


def test_the_metadata_matches_airflows_schema() -> None:
    schema = json.loads(Path(airflow.__path__[0], "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_every_named_module_and_class_exists() -> None:
    info = get_provider_info()
    for kind in ("operators", "sensors", "triggers", "hooks", "bundles"):
        for group in info[kind]:
            for module in group["python-modules"]:
                import_module(module)
    for plugin in info["plugins"]:
        module, _, name = plugin["plugin-class"].rpartition(".")
        assert getattr(import_module(module), name).name == plugin["name"]
    [connection] = info["connection-types"]
    hook = _named(connection["hook-class-name"])
    assert (hook.conn_type, hook.hook_name) == (connection["connection-type"], connection["hook-name"])
    assert {_named(name) for name in info["extra-links"]} == {type(link) for link in ConnectorOperator.operator_extra_links}
    assert [callable(_named(name)) for name in info["cli"]] == [True]


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def test_every_option_is_described_with_its_default() -> None:
    options = get_provider_info()["config"]["sluiceway"]["options"]
    assert {name: option["default"] for name, option in options.items()} == {option.name: option.default for option in OPTIONS}


def test_entry_points_name_provider_and_plugin() -> None:
    [provider] = [each for each in entry_points(group="apache_airflow_provider") if each.value.startswith("sluiceway.")]
    [plugin] = [each for each in entry_points(group="airflow.plugins") if each.value.startswith("sluiceway.")]
    assert provider.load() is get_provider_info
    assert plugin.load().name == "sluiceway"


def test_modules_that_every_airflow_process_imports_load_no_large_packages() -> None:
    """Scheduler, DAG processor, triggerer and each task import the plugin."""
    check = (
        "import sys, airflow.plugins_manager; before = set(sys.modules);"
        "import sluiceway.provider.plugin, sluiceway.provider.provider_info;"
        "print(sorted(m for m in set(sys.modules) - before if m.split('.')[0] in"
        " ('fastapi', 'confluent_kafka', 'pyspark', 'uvicorn') or m.startswith(('airflow.models', 'airflow.api_fastapi'))))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
