"""The certificate and trust of https listeners, from Kafka's ``ssl.*`` keys; ``listeners.https.`` before them wins over all.

Python reads PEM. PKCS12 stores are read by the ``cryptography`` package; a Java keystore in Java's own old format is refused
with the command that converts it.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sluiceway.errors import ConfigError

PREFIX = "listeners.https."
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


@dataclass(frozen=True, slots=True)
class _Store:
    """PEM texts, which may be secret."""

    key: str = field(default="", repr=False)
    chain: str = ""


def server_context(raw: Mapping[str, str]) -> ssl.SSLContext:
    """Return what https listeners need. Reads the stores; raises ConfigError, which holds no password."""
    prefixed = {key[len(PREFIX) :]: value for key, value in raw.items() if key.startswith(f"{PREFIX}ssl.")}
    keys = prefixed or {key: value for key, value in raw.items() if key.startswith("ssl.")}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, keys)
    _load_key(context, _key_store(keys), keys.get("ssl.key.password") or keys.get("ssl.keystore.password"))
    trusted = _trust_store(keys)
    if trusted:
        _trust(context, trusted, keys.get("ssl.truststore.location", "ssl.truststore.certificates"))
    auth = keys.get("ssl.client.auth", "none").lower()
    if auth not in _CLIENT_AUTH:
        raise ConfigError("ssl.client.auth", auth, f"Expected one of {', '.join(_CLIENT_AUTH)}")
    if auth != "none" and not trusted:
        raise ConfigError("ssl.client.auth", auth, "Certificates of clients need ssl.truststore.location to be checked against")
    context.verify_mode = _CLIENT_AUTH[auth]
    return context


def _restrict(context: ssl.SSLContext, keys: Mapping[str, str]) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    names = [each.strip() for each in keys.get("ssl.enabled.protocols", "").split(",") if each.strip()]
    versions = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if names and not versions:
        raise ConfigError("ssl.enabled.protocols", ",".join(names), f"Supported are {', '.join(_VERSIONS)}")
    if versions:
        context.minimum_version, context.maximum_version = min(versions), max(versions)


def _key_store(keys: Mapping[str, str]) -> _Store:
    chain, key = keys.get("ssl.keystore.certificate.chain"), keys.get("ssl.keystore.key")
    if chain and key:
        return _Store(key, chain)
    location = keys.get("ssl.keystore.location")
    if not location:
        raise ConfigError(
            "listeners", "https", "It needs a certificate: set ssl.keystore.location, with ssl.keystore.type=PEM for a PEM file"
        )
    data = _read("ssl.keystore.location", location)
    if _is_pem(data):
        text = data.decode()
        return _Store(text, text)
    return _from_pkcs12("ssl.keystore", location, data, keys.get("ssl.keystore.password"))


def _trust_store(keys: Mapping[str, str]) -> str:
    inline = keys.get("ssl.truststore.certificates")
    if inline:
        return inline
    location = keys.get("ssl.truststore.location")
    if not location:
        return ""
    data = _read("ssl.truststore.location", location)
    return (
        data.decode()
        if _is_pem(data)
        else _from_pkcs12("ssl.truststore", location, data, keys.get("ssl.truststore.password")).chain
    )


def _is_pem(data: bytes) -> bool:
    return b"-----BEGIN" in data


def _from_pkcs12(prefix: str, location: str, data: bytes, password: str | None) -> _Store:
    """Read a PKCS12 store, whatever its declared type: Java itself tells them apart by content."""
    if data.startswith(_JKS_MAGIC):
        raise ConfigError(
            f"{prefix}.location", location,
            f"This is a keystore in Java's old format. Convert it: keytool -importkeystore -srckeystore {location} "
            f"-destkeystore {location}.p12 -deststoretype PKCS12; then set {prefix}.location to that and {prefix}.type=PKCS12",
        )  # fmt: skip
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise ConfigError(
            f"{prefix}.location", location, "PKCS12 stores need 'pip install cryptography'; PEM does not"
        ) from error
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise ConfigError(f"{prefix}.location", location, f"Not a PKCS12 store, or {prefix}.password is wrong") from error
    pem = serialization.Encoding.PEM
    certificates = [store.cert, *store.additional_certs]
    chain = b"".join(each.certificate.public_bytes(pem) for each in certificates if each is not None)
    key = b"" if store.key is None else store.key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip
    return _Store(key.decode(), chain.decode())


def _load_key(context: ssl.SSLContext, store: _Store, password: str | None) -> None:
    """Hand key and chain over through a file, which is all that Python's ssl module takes; it is gone at once."""
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(store.key if store.key == store.chain else f"{store.key}\n{store.chain}")
        # An empty text keeps OpenSSL from asking at the terminal.
        context.load_cert_chain(name, password=password or "")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"The key and certificate of ssl.keystore.* cannot be used, or ssl.key.password is wrong: {error}"
        ) from error
    finally:
        with suppress(OSError):
            Path(name).unlink()


def _trust(context: ssl.SSLContext, certificates: str, where: str) -> None:
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError("ssl.truststore.location", where, "There are no certificates in it that can be used") from error


def _read(key: str, location: str) -> bytes:
    try:
        return Path(location).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(key, location, f"Cannot read it: {error.strerror}") from error
