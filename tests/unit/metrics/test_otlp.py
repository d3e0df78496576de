"""Metrics by OTLP, received by a server that decodes OpenTelemetry's protocol."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from sluiceway.installation import install_command
from sluiceway.metrics import otlp
from sluiceway.metrics.beans import CONNECT, OWN, Bean
from sluiceway.metrics.otlp import export_of
from sluiceway.telemetry.environment import Signal, enabled
from support.eventually import eventually
from support.otlp import OtlpReceiver, attributes

TASK = {"connector": "lines", "task": "0"}
BEANS = [
    Bean(CONNECT, "sink-task-metrics", TASK, {"sink-record-read-total": 12.0, "put-batch-max-time-ms": float("nan")}),
    Bean(CONNECT, "connector-task-metrics", TASK, {"status": "running", "running-ratio": 0.5}),
    Bean(OWN, "task-metrics", TASK, {"cpu-seconds-total": 1.5}),
]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    made = OtlpReceiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    yield made
    made.close()


def metrics_of(request: ExportMetricsServiceRequest) -> dict[str, Any]:
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def test_metrics_have_the_names_values_and_labels_of_prometheus(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.version=7")
    export = export_of(lambda: BEANS, "w:1")
    assert export is not None
    eventually(lambda: len(receiver.requests) >= 2, what="two exports")
    export.close()
    found = metrics_of(receiver.requests[-1])
    assert set(found) == {
        "kafka_connect_sink_task_sink_record_read_total",
        "kafka_connect_connector_task_status",
        "kafka_connect_connector_status",
        "kafka_connect_connector_task_running_ratio",
        "sluiceway_task_cpu_seconds_total",
    }, "a value that is not known is left out"
    total = found["kafka_connect_sink_task_sink_record_read_total"]
    (point,) = total.sum.data_points
    assert (total.sum.is_monotonic, point.as_double, attributes(point)) == (True, 12.0, TASK)
    assert total.description == "Records read from Kafka, before transforms"
    (status,) = found["kafka_connect_connector_task_status"].gauge.data_points
    assert (status.as_double, attributes(status)) == (1.0, {**TASK, "status": "running"})
    resource = attributes(receiver.requests[0].resource_metrics[0].resource)
    assert (resource["service.name"], resource["service.instance.id"]) == ("sluiceway", "w:1")
    assert (resource["service.version"], resource["deployment.environment"]) == ("7", "test")
    assert (receiver.headers[0]["path"], receiver.headers[0]["api-key"]) == ("/v1/metrics", "secret")


def test_the_last_values_are_exported_at_the_end(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000")
    export = export_of(lambda: BEANS, "w:1")
    assert export is not None
    export.close()
    assert len(receiver.requests) == 1


def test_a_receiver_that_is_down_does_not_keep_a_driver_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(otlp, "_CLOSE_SECONDS", 0.1)
    export = export_of(lambda: BEANS, "w:1")
    assert export is not None
    export.close()


def test_an_error_does_not_end_the_export(receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([RuntimeError("no status")])

    def beans() -> list[Bean]:
        for error in answers:
            raise error
        return BEANS

    export = export_of(beans, "w:1")
    assert export is not None
    eventually(lambda: receiver.requests, what="an export after the error")
    export.close()
    assert "Cannot export metrics by OTLP" in caplog.text


def test_an_interval_that_is_no_number_is_the_default(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "often")
    export = export_of(lambda: BEANS, "w:1")
    assert export is not None
    export.close()
    assert "OTEL_METRIC_EXPORT_INTERVAL=often is not a number of milliseconds; using 60000" in caplog.text


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "console, otlp"}, True),
    ],
)
def test_export_is_off_unless_the_environment_names_an_endpoint(environment: dict[str, str], expected: bool) -> None:
    assert enabled(Signal.METRICS, environment) is expected


def test_without_opentelemetry_a_warning_says_what_to_install(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with caplog.at_level(logging.WARNING):
        assert export_of(lambda: BEANS, "w:1") is None
    assert (
        f"Run: {install_command('otel')} in the Python environment of drivers, or unset OTEL_EXPORTER_OTLP_ENDPOINT."
        in caplog.text
    )
