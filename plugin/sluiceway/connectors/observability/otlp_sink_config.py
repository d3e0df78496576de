"""Defines the keys of OtlpSink, and its options. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from sluiceway.api import BatchLimits
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, EnumText
from sluiceway.connectors.https import Tls, stores_of, tls_keys
from sluiceway.connectors.keys import text, unreachable_key, unreachable_seconds, whole
from sluiceway.errors import ConfigError

PREFIX = "otlp."
ENDPOINTS = "otlp.endpoints"
HEADERS = "otlp.headers"
TIMEOUT_MS = "otlp.timeout.ms"
COMPRESSION = "otlp.compression"
RESOURCE_LABELS = "otlp.resource.labels"
BATCH = "batch.size"

_GZIP, _NONE = "gzip", "none"
_REQUEST_BYTES = 3 * 1024 * 1024  # about, of points: OtlpSource takes requests of 4 MiB by default, a Collector larger ones
_CONNECTION, _REQUESTS, _POINTS = "Connection", "Requests", "Points"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x20-\x7e\t]*")


def _check_endpoints(name: str, value: ConfigValue) -> None:
    urls = value if isinstance(value, list) else []
    if not urls:
        raise ConfigError(name, None, "must have the URL of a receiver, such as http://collector:4318/v1/metrics")
    for url in urls:
        if "@" in url:
            raise ConfigError(name, None, f"must not have a login: set the header Authorization in {HEADERS}")
        try:
            parts = urlsplit(url)
            known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or True)
        except ValueError:
            known = False
        if not known or any(each.isspace() or not each.isprintable() for each in url):
            raise ConfigError(name, url, "must be a URL, such as http://collector:4318/v1/metrics")
        if parts.query or parts.fragment:
            raise ConfigError(name, None, f"must be without ? and #: set keys of access in {HEADERS}")
        if parts.path in ("", "/"):
            raise ConfigError(
                name, url, "needs the path too: /v1/metrics in most receivers, /api/v1/otlp/v1/metrics in Prometheus"
            )


OTLP_SINK = ConfigDef(
    [
        ConfigKey(
            name=ENDPOINTS,
            type=Type.LIST,
            importance=Importance.HIGH,
            group=_CONNECTION,
            validator=Check(_check_endpoints, "URLs of receivers"),
            doc="The URLs to send to, with their paths, such as http://collector:4318/v1/metrics or "
            "http://prometheus:9090/api/v1/otlp/v1/metrics. Of several, which must lead to the same system, another one is used "
            "when one does not answer.",
        ),
        ConfigKey(
            name=HEADERS,
            type=Type.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            group=_CONNECTION,
            doc="Headers of each request, as in OTEL_EXPORTER_OTLP_HEADERS: name=value, separated by commas, with the values "
            "encoded as in URLs, such as Authorization=Bearer%20token,X-Scope-OrgID=shop.",
        ),
        whole(TIMEOUT_MS, 10_000, 1, _CONNECTION, "Milliseconds to wait for an answer. A request without one is sent again."),
        text(
            name=COMPRESSION,
            default=_GZIP,
            validator=EnumText(_GZIP, _NONE),
            importance=Importance.LOW,
            group=_CONNECTION,
            doc="gzip: requests are compressed. none: they are not.",
        ),
        ConfigKey(
            name=RESOURCE_LABELS,
            type=Type.LIST,
            default=["service.name", "service.namespace", "service.instance.id"],
            importance=Importance.MEDIUM,
            group=_POINTS,
            doc="The labels that become attributes of the resource. Those that start with otel.scope. become the scope; all "
            "others become attributes of the point.",
        ),
        whole(BATCH, 1000, 1, _REQUESTS, "The most records of a request.", importance=Importance.MEDIUM),
        unreachable_key(_REQUESTS, "a receiver"),
        *tls_keys(PREFIX),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The values of a config. ``timeout`` is in seconds. The repr shows no header."""

    endpoints: tuple[str, ...]
    timeout: float
    compressed: bool
    resource_labels: frozenset[str]
    limits: BatchLimits
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: Tls = field(default_factory=Tls)


def sink_options(config: Mapping[str, str]) -> SinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = OTLP_SINK.parse(config)
    return SinkOptions(
        endpoints=tuple(_items(values[ENDPOINTS])),
        timeout=int(str(values[TIMEOUT_MS])) / 1000,
        compressed=str(values[COMPRESSION]).lower() == _GZIP,
        resource_labels=frozenset(_items(values[RESOURCE_LABELS])),
        limits=BatchLimits(int(str(values[BATCH])), size=_REQUEST_BYTES, unreachable=unreachable_seconds(values)),
        headers=headers_of(revealed(values[HEADERS]) or ""),
        tls=Tls(stores_of(values, PREFIX), PREFIX),
    )


def headers_of(given: str) -> dict[str, str]:
    """Return the headers of a text like ``OTEL_EXPORTER_OTLP_HEADERS``. Raises ConfigError, which shows none of it."""
    found: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in given.split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        value = unquote(value)
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ConfigError(HEADERS, None, "must be name=value, separated by commas; a comma in a value is %2C, a space %20")
        found[name] = value
    return found


def _items(value: ConfigValue) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []
