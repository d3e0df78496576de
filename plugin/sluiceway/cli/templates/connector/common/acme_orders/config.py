"""Defines the keys of the connection. Each connector adds its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import Password
from sluiceway.config.validators import Check, Range
from sluiceway.errors import ConfigError

URL = "url"
TOKEN = "token"
TIMEOUT = "timeout.ms"

GROUP = "Connection"


def _check_url(name: str, value: ConfigValue) -> None:
    if value is None:
        return  # it is missing, which is an error of its own
    shown = None if "@" in str(value) else value  # a login must not be in a message
    try:
        parts = urlsplit(str(value))
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise ConfigError(name, shown, "must be the URL of the service, such as https://orders.example.com")
    if "@" in str(value) or parts.query or parts.fragment:
        raise ConfigError(name, None, f"must not have a login, ? or #. Set the service's token in {TOKEN}")


CONNECTION = ConfigDef(
    [
        ConfigKey(
            name=URL,
            type=Type.STRING,
            importance=Importance.HIGH,
            group=GROUP,
            validator=Check(_check_url, "the URL of the service"),
            doc="The URL of the service, such as https://orders.example.com.",
        ),
        ConfigKey(
            name=TOKEN,
            type=Type.PASSWORD,
            default=None,
            group=GROUP,
            doc="The token of the service; preferably a reference such as ${file:/run/secrets/orders:token}.",
        ),
        ConfigKey(
            name=TIMEOUT,
            type=Type.INT,
            default=5000,
            importance=Importance.LOW,
            group=GROUP,
            validator=Range(1),
            doc="Milliseconds to wait for a connection, and for data of an answer.",
        ),
    ]
)


@dataclass(frozen=True)
class Connection:
    """The address of the service, and the login. ``timeout`` is in seconds."""

    url: str
    token: Password | None
    timeout: float

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Connection:
        """Return the connection of parsed keys."""
        return cls(values[URL].rstrip("/"), values[TOKEN], values[TIMEOUT] / 1000)
