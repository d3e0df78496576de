"""A form offers the values that a plugin's definition allows."""

from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.source.keys import MODES
from sluiceway.provider.ui.routes import choices_of


@pytest.mark.parametrize("plugin", ["", "org.example.NotHere"])
def test_own_keys_have_choices_without_a_plugin(plugin: str) -> None:
    found = choices_of(plugin)
    assert found["airflow.mode"] == ["long-running", "micro-batch"]
    assert "mode" not in found
    assert "airflow.schedule" not in found, "it may be any cron expression"


def test_a_plugin_has_those_of_its_keys_and_of_connects() -> None:
    found = choices_of("io.confluent.connect.jdbc.JdbcSourceConnector")
    assert found["mode"] == list(MODES), "without the empty value"
    assert found["errors.tolerance"] == ["none", "all"]
    assert all(values and "" not in values for values in found.values())
