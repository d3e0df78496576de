"""Tests of Airflow's section [sluiceway]."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluiceway.errors import ConfigError
from sluiceway.provider.settings import BUNDLE_CLASS, OPTIONS, Settings, airflow_settings, read_settings


def test_an_empty_section_gives_the_defaults() -> None:
    assert Settings.parse({}) == Settings()
    assert Settings.parse({option.name: option.default for option in OPTIONS}) == Settings()


def test_values_are_typed() -> None:
    settings = Settings.parse({"mirror_interval": "2", "mirror_enabled": "false", "worker_properties": "/etc/w.properties"})
    assert (settings.mirror_interval, settings.mirror_enabled) == (2.0, False)
    assert settings.worker_properties == Path("/etc/w.properties")


@pytest.mark.parametrize(
    ("name", "text"),
    [("mirror_interval", "often"), ("drain_timeout", "0"), ("pause_poll_interval", "nan"), ("mirror_enabled", "maybe")],
)
def test_an_invalid_value_is_rejected_with_its_option(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=rf"Invalid value {text} for configuration \[sluiceway\] {name}"):
        Settings.parse({name: text})


def test_without_a_worker_file_the_error_names_the_option() -> None:
    with pytest.raises(ConfigError, match="AIRFLOW__SLUICEWAY__WORKER_PROPERTIES"):
        Settings().worker_file()


def test_an_operators_worker_file_overrides_the_setting(tmp_path: Path) -> None:
    (tmp_path / "own.properties").write_text("group.id=own\n")
    settings = Settings(worker_properties=tmp_path / "other.properties")
    assert settings.worker(str(tmp_path / "own.properties")).group_id == "own"


def test_the_printed_settings_keep_the_dags_folder_and_add_the_bundle() -> None:
    printed = airflow_settings(Path("/etc/w.properties"))
    bundles = json.loads(printed["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"])
    assert [bundle["name"] for bundle in bundles] == ["dags-folder", "connectors"]
    assert bundles[1]["classpath"] == BUNDLE_CLASS
    assert printed["AIRFLOW__SLUICEWAY__WORKER_PROPERTIES"] == "/etc/w.properties"


def test_settle_time_is_derived_from_airflows_heartbeat_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "30")
    monkeypatch.setenv("AIRFLOW__SLUICEWAY__SPARK_CONN_ID", "my_spark")
    settings = read_settings()
    assert (settings.settle_time, settings.spark_conn_id) == (35.0, "my_spark")
