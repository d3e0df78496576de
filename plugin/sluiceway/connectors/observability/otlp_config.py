"""Defines the keys of OtlpSource, and its options. No I/O."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluiceway.config.definition import ConfigDef, ConfigValue, Importance
from sluiceway.config.password import revealed
from sluiceway.config.validators import OneOf
from sluiceway.connectors.listening import keys as listening
from sluiceway.connectors.listening.keys import Listening
from sluiceway.connectors.listening.login import basic_login, server_context
from sluiceway.errors import ConfigError

PROTOBUF, JSON = "application/x-protobuf", "application/json"
PREFIX = "otlp."
PORT = "otlp.port"
POINTS = "otlp.buffer.points"
BYTES = "otlp.buffer.bytes"
ACKNOWLEDGE = "otlp.acknowledge"
RECEIVED, DELIVERED = "received", "delivered"
TIMEOUT_MS = "otlp.acknowledge.timeout.ms"
BODY_BYTES = "otlp.max.body.bytes"
WITH_HELP = "metric.help"
TOKEN = "otlp.bearer.token"  # noqa: S105 (a key's name)
USER = "otlp.username"
PASSWORD = "otlp.password"  # noqa: S105
CERTIFICATE = "otlp.ssl.certificate.location"
KEY = "otlp.ssl.key.location"
KEY_PASSWORD = "otlp.ssl.key.password"  # noqa: S105

_DELIVERY, _SECURITY = "Delivery", "Security"

OTLP = ConfigDef(
    [
        *listening.listening_keys(PREFIX, 4318, "points", "clients are asked to send again: HTTP 503 with Retry-After"),
        listening.text(
            name=ACKNOWLEDGE,
            default=DELIVERED,
            importance=Importance.HIGH,
            group=_DELIVERY,
            validator=OneOf((RECEIVED, DELIVERED)),
            doc="When a request is answered with success. received: as soon as its points are in the buffer; those in there are "
            "lost if the task crashes. delivered: when Kafka has them; what is not answered so, clients send again.",
        ),
        listening.number(
            TIMEOUT_MS,
            8_000,
            1,
            _DELIVERY,
            "Milliseconds that a request waits for Kafka with delivered. Then the answer is HTTP 503, and the client sends it "
            "again. Set it below the client's own timeout, which is 10 seconds in most.",
        ),
        listening.number(
            BODY_BYTES, 4 * 1024 * 1024, 1, "Listening", "The most bytes of a request, packed and unpacked: else HTTP 413."
        ),
        listening.text(
            name=USER, default=None, group=_SECURITY, doc="The user that clients must give, with basic authentication."
        ),
        listening.secret(name=PASSWORD, group=_SECURITY, doc=f"The password of {USER}."),
        listening.secret(name=TOKEN, group=_SECURITY, doc="The token that clients must give, with bearer authentication."),
        listening.text(
            name=CERTIFICATE,
            default=None,
            group=_SECURITY,
            doc="A PEM file of the certificate, and its chain, for https. By default http, which shows tokens to the network.",
        ),
        listening.text(name=KEY, default=None, group=_SECURITY, doc=f"A PEM file of the key of {CERTIFICATE}."),
        listening.secret(name=KEY_PASSWORD, group=_SECURITY, doc=f"The password of {KEY}, if it has one."),
        listening.flag(
            name=WITH_HELP, default=False, group="Records", doc="Whether each record has the description of its metric, as help."
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class OtlpOptions:
    """The values of a config. ``timeout`` is in seconds. ``authorization`` is a scheme and its credentials; None for none."""

    listening: Listening
    delivered: bool
    timeout: float
    body_bytes: int
    with_help: bool
    authorization: tuple[str, str] | None = field(default=None, repr=False)
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)

    def tls(self) -> ssl.SSLContext | None:
        """Return the context of https; None for http. Reads the files. Raises ConfigError."""
        if self.certificate is None or self.key is None:
            return None
        return server_context((CERTIFICATE, self.certificate), (KEY, self.key), self.key_password)


def otlp_options(config: Mapping[str, str]) -> OtlpOptions:
    """Return the options of a config. Raises ConfigError."""
    values = OTLP.parse(config)
    for name, message in otlp_conflicts(values).items():
        raise ConfigError(name, None, message)
    return OtlpOptions(
        listening=listening.listening_of(values, PREFIX, "points"),
        delivered=values[ACKNOWLEDGE] == DELIVERED,
        timeout=listening.whole(values, TIMEOUT_MS) / 1000,
        body_bytes=listening.whole(values, BODY_BYTES),
        with_help=bool(values[WITH_HELP]),
        authorization=_authorization(values),
        certificate=revealed(values[CERTIFICATE]),
        key=revealed(values[KEY]),
        key_password=revealed(values[KEY_PASSWORD]),
    )


def otlp_conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    problems: dict[str, str] = {}
    for one, other in ((USER, PASSWORD), (CERTIFICATE, KEY)):
        if (values[one] is None) != (values[other] is None):
            problems[one if values[one] is None else other] = f"{one} and {other} belong together: set both, or neither"
    if values[USER] is not None and values[TOKEN] is not None:
        problems[TOKEN] = f"cannot be combined with {USER}"
    if values[USER] is not None and ":" in str(values[USER]):
        problems[USER] = "must not have a colon"
    return problems


def _authorization(values: Mapping[str, ConfigValue]) -> tuple[str, str] | None:
    token, user, password = (revealed(values[name]) for name in (TOKEN, USER, PASSWORD))
    if token is not None:
        return "bearer", token
    if user is not None:
        return basic_login(user, password)
    return None
