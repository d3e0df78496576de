"""Keys of trust and key stores, the context of https, and the pauses that answers ask for, of connectors that speak HTTP."""

from __future__ import annotations

import functools
import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import revealed
from sluiceway.errors import ConfigError
from sluiceway.java.keystores import load_identity, private_identity, read_store, store_type, trust_store

_LONGEST_PAUSE = 300.0


@dataclass(frozen=True, slots=True)
class Tls:
    """Trust and key stores of https connections, by the keys below a prefix, such as ``ssl.truststore.location``."""

    keys: Mapping[str, str | None] = field(repr=False, default_factory=dict)
    prefix: str = ""
    trust_all: bool = False


def stores_of(values: Mapping[str, ConfigValue], prefix: str) -> dict[str, str | None]:
    """Return the parsed values of ``tls_keys``, without the prefix."""
    return {name.removeprefix(prefix): revealed(value) for name, value in values.items() if name.startswith(f"{prefix}ssl.")}


def tls_keys(prefix: str, group: str = "Security") -> list[ConfigKey]:
    """Return the keys of trust and key stores below a prefix."""
    key, trust = f"{prefix}ssl.keystore.", f"{prefix}ssl.truststore."
    options = functools.partial(ConfigKey, type=Type.STRING, default=None, importance=Importance.MEDIUM, group=group)
    secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, importance=Importance.MEDIUM, group=group)
    return [
        options(name=f"{trust}location", doc="A file of trusted certificates: PEM, JKS, or PKCS12. By default the system's."),
        secret(name=f"{trust}password", doc="The password of the trust store."),
        options(name=f"{trust}type", doc="The trust store's type; it is known by its content.", internal=True),
        options(name=f"{key}location", doc="A file of the client's key and certificate: PEM, JKS, or PKCS12."),
        secret(name=f"{key}password", doc="The password of the key store."),
        options(name=f"{key}type", doc="The key store's type; it is known by its content.", internal=True),
        secret(name=f"{prefix}ssl.key.password", doc="The password of the key in the key store; by default that of the store."),
        ConfigKey(
            type=Type.STRING,
            name=f"{prefix}ssl.endpoint.identification.algorithm",
            default="https",
            importance=Importance.LOW,
            group=group,
            doc="https: the server's certificate must be of its host. Empty: it may be of another one.",
        ),
    ]


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of https connections; trust and key stores may be PEM, JKS, or PKCS12. Raises ConfigError."""
    keys = {name: value for name, value in tls.keys.items() if value}
    location, pem = keys.get("ssl.truststore.location"), None
    if location is not None:
        pem = trust_store(location, keys.get("ssl.truststore.password"), tls.prefix)
    try:
        context = ssl.create_default_context(cadata=pem)  # None: the system's
    except ssl.SSLError as error:
        raise ConfigError(f"{tls.prefix}ssl.truststore.location", location, f"No certificate can be read: {error}") from error
    if tls.trust_all:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif (tls.keys.get("ssl.endpoint.identification.algorithm", "https") or "").lower() != "https":
        context.check_hostname = False
    if "ssl.keystore.location" in keys:
        _load_identity(context, keys, tls.prefix)
    return context


def lasting_failure(error: BaseException, location: str, urls: str) -> str | None:
    """Return what to do about a failed request that waiting does not help; None if it may help.

    ``location`` is the key of the trust store, ``urls`` that of the addresses.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"Name its authority's certificates with {location}, and a host in {urls} that its certificate has."
    if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
        return f"It does not speak TLS. Begin its URL in {urls} with http:// if that is meant."
    return None


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """Return the seconds of ``Retry-After``, which may be a number or a date; 0 without it, and at most five minutes."""
    given = headers.get("Retry-After", "").strip()
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(given) - datetime.now(timezone.utc)).total_seconds()
        except (TypeError, ValueError):
            return 0.0
    return min(max(seconds, 0.0), _LONGEST_PAUSE) if math.isfinite(seconds) else 0.0


def _load_identity(context: ssl.SSLContext, keys: dict[str, str], prefix: str) -> None:
    location, password = keys["ssl.keystore.location"], keys.get("ssl.key.password")
    content = read_store(location, f"{prefix}ssl.keystore.location")
    if store_type(content) == "PEM":
        pem = content.decode("utf-8", "replace")
    else:
        identity = private_identity(content, keys.get("ssl.keystore.password"), password, location, prefix)
        pem, password = f"{identity.key}{identity.chain}", None
    try:
        load_identity(context, pem, password)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{prefix}ssl.keystore.location", location, f"The key cannot be used: {error}") from error
