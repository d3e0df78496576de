"""Defines the keys of connections to search servers, in Confluent's and in Aiven's form, and their values.

The sink and the source of a system have the same ones.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, EnumText, Range
from sluiceway.connectors.https import Tls, stores_of, tls_keys
from sluiceway.errors import ConfigError

URL = "connection.url"
USER = "connection.username"
PASSWORD = "connection.password"  # noqa: S105 (a key's name)
CONNECTION, SECURITY, REQUESTS = "Connection", "Security", "Requests"

_ELASTIC_TLS, _AIVEN_TLS = "elastic.https.", "connection."
_SECURITY_PROTOCOL = "elastic.security.protocol"
_TRUST_ALL = "connection.trust.all.certificates"
_KERBEROS = "kerberos."
_SCHEMES = ("http", "https")
_MOST = 2**31 - 1

text = functools.partial(ConfigKey, type=Type.STRING)
flag = functools.partial(ConfigKey, type=Type.BOOLEAN)
names = functools.partial(ConfigKey, type=Type.LIST)
_secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None)
_high, _medium, _low = Importance.HIGH, Importance.MEDIUM, Importance.LOW


@dataclass(frozen=True, slots=True)
class Server:
    """The servers' addresses and login; times in seconds. The repr shows no password."""

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    connect_timeout: float = 1.0
    read_timeout: float = 3.0
    compressed: bool = False
    proxy: str | None = field(default=None, repr=False)
    tls: Tls = field(default_factory=Tls)


def whole(name: str, default: int, low: int, group: str, doc: str) -> ConfigKey:
    """Return a key of a whole number from ``low`` on."""
    return ConfigKey(
        name=name, type=Type.LONG, default=default, validator=Range(low, _MOST), importance=_low, group=group, doc=doc
    )


UNREACHABLE = whole(
    UNREACHABLE_MS,
    3_600_000,
    -1,
    REQUESTS,
    "Milliseconds to wait for a server that does not answer or is not ready before the task fails; -1 is unlimited.",
)


def _check_urls(name: str, value: ConfigValue) -> None:
    if not value:
        raise ConfigError(name, None, "needs the URL of a search server, such as https://search:9200")
    for url in value if isinstance(value, list) else []:
        told = None if "@" in url else url  # it may be a password
        try:
            parts = urlsplit(_with_scheme(url))
            known = parts.scheme in _SCHEMES and parts.hostname and (parts.port or True)
        except ValueError:
            known = False
        if not known:
            raise ConfigError(name, told, "is not the URL of a search server, such as https://search:9200")
        if "@" in url:
            raise ConfigError(name, None, f"must not have a login: set {USER} and {PASSWORD}")
        if parts.query or parts.fragment:
            raise ConfigError(name, url, "must be the URL of a server, without ? and #")


def _with_scheme(url: str, scheme: str = "http") -> str:
    given, separator, rest = url.partition("://")
    return f"{given.lower()}://{rest}" if separator else f"{scheme}://{url}"


def _check_host(name: str, value: ConfigValue) -> None:
    if any(each in str(value) for each in "/@?#"):
        raise ConfigError(name, None, "must be the name or the address of a host, without a scheme or a login")


def _common(read_timeout: int) -> list[ConfigKey]:
    return [
        names(
            name=URL,
            importance=_high,
            group=CONNECTION,
            validator=Check(_check_urls, "URLs of search servers"),
            doc="The URLs of one cluster's servers, separated by commas, such as https://search-1:9200,https://search-2:9200. "
            "Another one is used when one does not answer.",
        ),
        text(name=USER, default=None, importance=_medium, group=CONNECTION, doc="The user, with basic authentication."),
        _secret(
            name=PASSWORD,
            importance=_medium,
            group=CONNECTION,
            doc="The user's password; preferably a reference such as ${file:/run/secrets/search:password}.",
        ),
        whole("connection.timeout.ms", 1000, 1, CONNECTION, "Milliseconds to wait for a connection."),
        whole(
            "read.timeout.ms",
            read_timeout,
            1,
            CONNECTION,
            "Milliseconds to wait for data of an answer. A request without one is sent again: set more than a request takes.",
        ),
    ]


def confluent_connection(read_timeout: int = 3000) -> list[ConfigKey]:
    """Return the keys of a connection in Confluent's form; the default of ``read.timeout.ms`` is in milliseconds."""
    return [
        *_common(read_timeout),
        flag(
            name="connection.compression",
            default=False,
            importance=_low,
            group=CONNECTION,
            doc="Whether requests are compressed with gzip; the server needs http.compression.",
        ),
        text(
            name="proxy.host",
            default="",
            validator=Check(_check_host, "a host"),
            importance=_low,
            group=CONNECTION,
            doc="The HTTP proxy to connect by.",
        ),
        ConfigKey(
            name="proxy.port",
            type=Type.INT,
            default=8080,
            validator=Range(1, 65535),
            importance=_low,
            group=CONNECTION,
            doc="The proxy's port.",
        ),
        text(name="proxy.username", default="", importance=_low, group=CONNECTION, doc="The user at the proxy."),
        _secret(name="proxy.password", importance=_low, group=CONNECTION, doc="The password at the proxy."),
        text(
            name=_SECURITY_PROTOCOL,
            default="PLAINTEXT",
            validator=EnumText("PLAINTEXT", "SSL"),
            importance=_medium,
            group=SECURITY,
            doc="SSL: URLs without a scheme are https, and the keys below elastic.https. are used.",
        ),
        *tls_keys(_ELASTIC_TLS, SECURITY),
    ]


def aiven_connection(read_timeout: int = 3000) -> list[ConfigKey]:
    """Return the keys of a connection in Aiven's form; the default of ``read.timeout.ms`` is in milliseconds."""
    return [
        *_common(read_timeout),
        flag(
            name=_TRUST_ALL,
            default=False,
            importance=_low,
            group=SECURITY,
            doc="Whether any certificate of a server is trusted. Not for production.",
        ),
        *tls_keys(_AIVEN_TLS, SECURITY),
    ]


def connection_problems(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of keys of a connection that conflict, by the key to change."""
    problems = {}
    if (values[USER] is None) != (values[PASSWORD] is None):
        problems[USER if values[USER] is None else PASSWORD] = f"{USER} and {PASSWORD} are a login together: set both, or neither"
    if _SECURITY_PROTOCOL not in values:
        return problems
    stores = [
        name for name in values if name.startswith(_ELASTIC_TLS) and name.endswith((".location", ".password")) and values[name]
    ]
    if stores and str(values[_SECURITY_PROTOCOL]).upper() != "SSL":
        problems[_SECURITY_PROTOCOL] = f"must be SSL, since {stores[0]} is set"
    if values["proxy.username"] and not values["proxy.host"]:
        problems["proxy.host"] = "is missing, but proxy.username is set"
    if (values["proxy.password"] is None) != (not values["proxy.username"]):
        problems["proxy.password"] = "and proxy.username are a login together: set both, or neither"
    for name in config:
        if name.startswith(_KERBEROS):
            problems[USER] = f"Kerberos is not supported. Remove {name}, and use {USER} and {PASSWORD}"
    return problems


def raise_first(problems: Mapping[str, str], values: Mapping[str, ConfigValue]) -> None:
    """Raise a ConfigError for the first of some errors of keys."""
    for name, message in problems.items():
        raise ConfigError(name, values[name], message)


def server_of(values: Mapping[str, ConfigValue]) -> Server:
    """Return the servers of parsed values in either form."""
    confluent = _SECURITY_PROTOCOL in values
    prefix = _ELASTIC_TLS if confluent else _AIVEN_TLS
    secure = confluent and str(values[_SECURITY_PROTOCOL]).upper() == "SSL"
    tls = stores_of(values, prefix)
    return Server(
        tuple(_with_scheme(url, "https" if secure else "http").rstrip("/") for url in items(values[URL])),
        revealed(values[USER]),
        revealed(values[PASSWORD]),
        number(values, "connection.timeout.ms") / 1000,
        number(values, "read.timeout.ms") / 1000,
        compressed=confluent and bool(values["connection.compression"]),
        proxy=_proxy(values) if confluent else None,
        tls=Tls({} if confluent and not secure else tls, prefix, not confluent and bool(values[_TRUST_ALL])),
    )


def _proxy(values: Mapping[str, ConfigValue]) -> str | None:
    if not values["proxy.host"]:
        return None
    login, user = "", str(values["proxy.username"])
    if user:
        login = f"{quote(user, safe='')}:{quote(revealed(values['proxy.password']) or '', safe='')}@"
    host = str(values["proxy.host"])
    return f"http://{login}{f'[{host}]' if ':' in host else host}:{values['proxy.port']}"


def items(value: ConfigValue) -> list[str]:
    """Return the items of a list."""
    return value if isinstance(value, list) else []


def number(values: Mapping[str, ConfigValue], name: str) -> int:
    """Return the value of a key of a whole number."""
    value = values[name]
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value
