"""Reads OpenTelemetry's standard variables, as far as its SDK does not read them itself."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway import __version__
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

log = logging.getLogger(__name__)

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"


class Signal(enum.Enum):
    """A kind of data that OpenTelemetry exports."""

    METRICS = "METRICS"
    TRACES = "TRACES"


def enabled(signal: Signal, environment: Mapping[str, str]) -> bool:
    """Return whether the environment asks for a signal by OTLP: it names an endpoint and does not turn it off. No I/O."""
    chosen = environment.get(f"OTEL_{signal.value}_EXPORTER", "")
    exporters = [name.strip() for name in chosen.split(",") if name.strip()]
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or (exporters and "otlp" not in exporters):
        return False
    return any(environment.get(name, "").strip() for name in _endpoints(signal))


def uses_grpc(signal: Signal, environment: Mapping[str, str]) -> bool:
    """Return whether the environment chooses OTLP over gRPC instead of HTTP. No I/O."""
    names = (f"OTEL_EXPORTER_OTLP_{signal.value}_PROTOCOL", _PROTOCOL)
    protocol = next((environment[name] for name in names if environment.get(name)), "")
    return protocol.strip() == "grpc"


def resource(instance: str) -> Resource:
    """Return the resource of ``OTEL_RESOURCE_ATTRIBUTES`` and ``OTEL_SERVICE_NAME``, completed by what this process knows.

    Args:
        instance: identifies this process, such as a driver's worker id.
    """
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = {"service.name": "sluiceway", "service.version": __version__, "service.instance.id": instance}
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})


def warn_missing(signal: Signal, error: ImportError, environment: Mapping[str, str]) -> None:
    """Log that the SDK is not installed where the environment asks for it."""
    kind = signal.value.lower()
    log.warning(
        "The environment asks for %s by OTLP, but %s is not installed. No %s are exported. "
        "Run: %s in the Python environment of drivers%s, or unset %s.",
        kind,
        error.name,
        kind,
        install_command("otel"),
        " and tasks" if signal is Signal.TRACES else "",
        " and ".join(name for name in _endpoints(signal) if name in environment),
    )


def _endpoints(signal: Signal) -> tuple[str, str]:
    return f"OTEL_EXPORTER_OTLP_{signal.value}_ENDPOINT", _ENDPOINT
