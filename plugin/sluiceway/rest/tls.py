"""Creates the TLS context of https listeners from Kafka's ``ssl.*`` keys.

If keys with the prefix ``listeners.https.`` (``admin.listeners.https.`` for admin listeners) exist, only these are used.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluiceway.config.parsing import parse_list
from sluiceway.errors import ConfigError
from sluiceway.java.keystores import load_identity, private_identity, read_store, store_type, trust_store
from sluiceway.kafka.ssl_properties import KEYSTORE, TRUSTSTORE, pem_lines

PREFIX = "listeners.https."
ADMIN_PREFIX = "admin.listeners.https."
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


@dataclass(frozen=True, slots=True)
class _Store:
    """A private key and its certificates as PEM, and the password of an encrypted key."""

    pem: str = field(repr=False)
    password: str | None = field(default=None, repr=False)


def server_context(raw: Mapping[str, str], prefix: str = PREFIX) -> ssl.SSLContext:
    """Return the TLS context of https listeners. Reads the key stores. Raises ConfigError, without any password."""
    prefixed = {key[len(prefix) :]: value for key, value in raw.items() if key.startswith(f"{prefix}ssl.")}
    keys = prefixed or {key: value for key, value in raw.items() if key.startswith("ssl.")}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, keys)
    _load_key(context, _key_store(keys))
    trusted = _trust_store(keys)
    if trusted:
        _trust(context, trusted, keys.get("ssl.truststore.location", "ssl.truststore.certificates"))
    auth = keys.get("ssl.client.auth", "none").lower()
    if auth not in _CLIENT_AUTH:
        raise ConfigError("ssl.client.auth", auth, f"Expected one of {', '.join(_CLIENT_AUTH)}")
    if auth != "none" and not trusted:
        raise ConfigError("ssl.client.auth", auth, "Client certificates cannot be checked. Set ssl.truststore.location")
    context.verify_mode = _CLIENT_AUTH[auth]
    return context


def _restrict(context: ssl.SSLContext, keys: Mapping[str, str]) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    names = parse_list(keys.get("ssl.enabled.protocols"))
    versions = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if names and not versions:
        raise ConfigError("ssl.enabled.protocols", ",".join(names), f"None is supported. Supported are {', '.join(_VERSIONS)}")
    if versions:
        context.minimum_version, context.maximum_version = min(versions), max(versions)


def _key_store(keys: Mapping[str, str]) -> _Store:
    chain, key = keys.get("ssl.keystore.certificate.chain"), keys.get("ssl.keystore.key")
    if chain and key:
        return _Store(pem_lines(f"{key}\n{chain}"), keys.get("ssl.key.password"))
    location = keys.get(KEYSTORE)
    if not location:
        raise ConfigError(
            "listeners",
            "https",
            "The certificate is missing. Set ssl.keystore.location (ssl.keystore.type=PEM for a PEM file)",
        )
    content = read_store(location, KEYSTORE)
    key_password, password = keys.get("ssl.key.password"), keys.get("ssl.keystore.password")
    if store_type(content) == "PEM":
        return _Store(content.decode(), key_password or password)
    found = private_identity(content, password, key_password, location)
    return _Store(f"{found.key}\n{found.chain}")


def _trust_store(keys: Mapping[str, str]) -> str:
    inline, location = keys.get("ssl.truststore.certificates"), keys.get(TRUSTSTORE)
    if inline:
        return pem_lines(inline)
    if not location:
        return ""
    return trust_store(location, keys.get("ssl.truststore.password"))


def _load_key(context: ssl.SSLContext, store: _Store) -> None:
    try:
        load_identity(context, store.pem, store.password)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"Cannot use the key and certificate of ssl.keystore.*: {error}. Check their format and ssl.key.password."
        ) from error


def _trust(context: ssl.SSLContext, certificates: str, where: str) -> None:
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError("ssl.truststore.location", where, "The file has no usable certificate") from error
