"""Tests of the extra links of a connector's task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from sluiceway.operators import SinkConnectorOperator
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.provider.links import ConnectorPageLink, ConnectorRestLink, SparkUiLink, publish


class _TaskInstance:
    def __init__(self) -> None:
        self.xcoms: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[key] = value


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://air.example/flow/")
    monkeypatch.setenv("AIRFLOW__SLUICEWAY__SPARK_UI_URL", "https://spark.example")
    return SinkConnectorOperator(task_id="t", connector="right: of/way")


def test_links_are_stored_at_the_start_and_updated_with_the_spark_uis_address(operator: Any) -> None:
    ti = _TaskInstance()
    publish(operator, ti)
    rest, spark = ConnectorRestLink().xcom_key, SparkUiLink().xcom_key
    assert ti.xcoms[rest] == "https://air.example/flow/sluiceway/connectors/right%3A%20of%2Fway/status"
    assert ti.xcoms[spark] == "https://spark.example"
    assert ti.xcoms[ConnectorPageLink().xcom_key] == "https://air.example/flow/plugin/connectors#right%3A%20of%2Fway"
    operator._submit_hook = type("Hook", (), {"ui_url": "http://driver:4040"})()
    publish(operator, ti)
    assert ti.xcoms[spark] == "http://driver:4040"


def test_a_link_that_cannot_be_stored_is_only_logged(operator: Any, caplog: pytest.LogCaptureFixture) -> None:
    class _Refusing(_TaskInstance):
        def xcom_push(self, key: str, value: Any) -> None:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR))

    publish(operator, _Refusing())
    assert "is missing until the task ends" in caplog.text


def test_the_hook_reads_the_spark_uis_address_from_the_drivers_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_A", '{"conn_type": "spark", "host": "spark://master", "port": 7077}')
    monkeypatch.setattr("socket.gethostname", lambda: "driver")
    hook = ConnectorSubmitHook(Submission("c", Path("/w.properties"), "long-running", {}), conn_id="spark_a")
    seen: list[str | None] = []
    hook.on_ui = lambda: seen.append(hook.ui_url)
    hook._read_line("26/01/05 INFO SparkContext: hello")
    hook._read_line("26/01/05 INFO Utils: Successfully started service 'SparkUI' on port 4041.")
    assert seen == ["http://driver:4041"]
