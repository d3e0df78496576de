"""Tests of what OpenTelemetry's variables ask for."""

from __future__ import annotations

import pytest

from sluiceway.telemetry.environment import Signal, enabled, uses_grpc

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, False),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**ENDPOINT, "OTEL_METRICS_EXPORTER": "none"}, True),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_traces_are_off_unless_the_environment_names_an_endpoint(environment: dict[str, str], expected: bool) -> None:
    assert enabled(Signal.TRACES, environment) is expected


def test_the_protocol_of_a_signal_wins() -> None:
    environment = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
    assert uses_grpc(Signal.METRICS, environment)
    assert not uses_grpc(Signal.TRACES, environment)
