"""Tests of references to Airflow, and of passing their values to a driver without Airflow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluiceway.config.environment import HANDED_OVER
from sluiceway.config.variables import resolver
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.provider.config_provider import AirflowConfigProvider, environment

PROPERTIES = {
    "config.providers": "env,airflow",
    "config.providers.env.class": "EnvVarConfigProvider",
    "config.providers.airflow.class": "AirflowConfigProvider",
}


@pytest.fixture
def masked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the masked values; Airflow has a connection ``db`` and a variable ``CODE``."""
    hidden: list[str] = []
    monkeypatch.setenv(
        "AIRFLOW_CONN_DB",
        json.dumps(
            {
                "conn_type": "postgres",
                "host": "h",
                "login": "u",
                "password": "hunter2",
                "port": 5432,
                "schema": "s",
                "extra": {"sslmode": "require", "n": 1},
            }
        ),
    )
    monkeypatch.setenv("AIRFLOW_VAR_CODE", "4711")
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda value, *_: hidden.append(value))
    return hidden


def looked_up(text: str) -> str:
    return resolver(WorkerConfig.of(PROPERTIES)).resolve({"x": text})["x"]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("db:login", "u"),
        ("db:password", "hunter2"),
        ("db:host", "h"),
        ("db:port", "5432"),
        ("db:schema", "s"),
        ("db:conn_type", "postgres"),
        ("db:extra.sslmode", "require"),
        ("db:extra.n", "1"),
        ("variable:CODE", "4711"),
        ("db:extra.none", "${airflow:db:extra.none}"),
    ],
)
@pytest.mark.usefixtures("masked")
def test_a_reference_is_resolved_from_a_connection_or_a_variable(reference: str, expected: str) -> None:
    assert looked_up(f"${{airflow:{reference}}}") == expected


@pytest.mark.usefixtures("masked")
def test_the_field_uri_has_the_whole_connection() -> None:
    assert looked_up("${airflow:db:uri}").startswith("postgres://u:hunter2@h:5432/s")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${airflow:db:pasword}", "has no field 'pasword'"),
        ("${airflow:none:password}", "^Airflow has no connection 'none'"),
        ("${airflow:variable:NONE}", "^Airflow has no variable 'NONE'"),
        ("${airflow:password}", "must be \\$\\{airflow:<connection id>:<field>\\}"),
    ],
)
@pytest.mark.usefixtures("masked")
def test_an_invalid_reference_is_rejected(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        looked_up(text)


def test_a_task_passes_on_the_values_of_both_configs_and_masks_them(masked: list[str]) -> None:
    config = {"a": "x${airflow:db:password}", "b": "${env:HOME}", "c": "${airflow:variable:CODE}"}
    found = environment(PROPERTIES | {"sasl.jaas.config": "${airflow:db:login}"}, config)
    assert list(found) == [HANDED_OVER]
    assert json.loads(found[HANDED_OVER]) == {
        "airflow:db:login": "u",
        "airflow:db:password": "hunter2",
        "airflow:variable:CODE": "4711",
    }
    assert {"4711", "hunter2", "u"} <= {value for value in masked if isinstance(value, str)}  # Airflow masks the extras too


def test_a_driver_uses_the_passed_values_without_airflow(monkeypatch: pytest.MonkeyPatch, masked: list[str]) -> None:
    config = {"a": "${airflow:db:password}"}
    for name, value in environment(PROPERTIES, config).items():
        monkeypatch.setenv(name, value)

    def no_airflow(*_: Any) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(AirflowConfigProvider, "get", no_airflow)
    assert resolver(WorkerConfig.of(PROPERTIES)).resolve(config) == {"a": "hunter2"}


def test_nothing_is_passed_without_references_to_airflow() -> None:
    assert environment(PROPERTIES, {"a": "${env:HOME}", "b": "${other:db:password}"}) == {}
    assert environment({}, {"a": "${airflow:db:password}"}) == {}
