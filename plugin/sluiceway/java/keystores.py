"""Converts JKS and PKCS12 key stores and trust stores to PEM, because librdkafka and Python's ``ssl`` cannot read them."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
import textwrap
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sluiceway.errors import ConfigError
from sluiceway.java.jks import MAGIC, read_jks

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

StoreType = Literal["PEM", "JKS", "PKCS12"]

_DER_SEQUENCE = b"\x30"


@dataclass(frozen=True, slots=True)
class Identity:
    """An unencrypted private key and its certificate chain as PEM, the key's own certificate first."""

    key: str = field(repr=False)
    chain: str


def read_store(path: str, key: str) -> bytes:
    """Return a store's bytes. Raises ConfigError about ``key``, the property that names the file, if it cannot be read."""
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(key, path, f"The file cannot be read on this machine: {error.strerror}.") from error


def store_type(content: bytes) -> StoreType | None:
    """Return a store's type by its content: since Java 9 keytool writes PKCS12 whatever the file is called."""
    if content.startswith(MAGIC):
        return "JKS"
    if content.startswith(_DER_SEQUENCE):
        return "PKCS12"
    return "PEM" if b"-----BEGIN " in content else None


def trust_store(path: str, password: str | None, prefix: str = "") -> str:
    """Return the certificates of a trust store as PEM. Raises ConfigError, whose names of keys begin with ``prefix``."""
    content = read_store(path, f"{prefix}ssl.truststore.location")
    if store_type(content) == "PEM":
        return content.decode("utf-8", "replace")
    return trusted_certificates(content, password, path, prefix)


def load_identity(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Load a key and its chain through a temporary file, since Python's ssl module accepts files only.

    Raises ``ssl.SSLError`` and ValueError.
    """
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(pem)
        # An empty password keeps OpenSSL from prompting at the terminal.
        context.load_cert_chain(name, password=password or "")
    finally:
        with suppress(OSError):
            Path(name).unlink()


def trusted_certificates(content: bytes, password: str | None, path: str, prefix: str = "") -> str:
    """Return the certificates of a JKS or PKCS12 trust store as PEM. Raises ConfigError, which names ``path``."""
    try:
        found = read_jks(content, password).trusted if store_type(content) == "JKS" else _trusted_of_pkcs12(content, password)
    except (ValueError, IndexError) as error:
        raise _refused_trust(path, f"it is damaged, or {prefix}ssl.truststore.password is not its password", prefix) from error
    if not found:
        raise _refused_trust(path, "no certificate is in it", prefix)
    return "".join(map(ssl.DER_cert_to_PEM_cert, found))


def private_identity(content: bytes, password: str | None, key_password: str | None, path: str, prefix: str = "") -> Identity:
    """Return the only private key of a JKS or PKCS12 store; ``key_password`` defaults to ``password``. Raises ConfigError."""
    try:
        if store_type(content) == "JKS":
            return _identity_of_jks(content, password, key_password)
        return _identity_of_pkcs12(content, password)
    except (ValueError, IndexError) as error:
        raise ConfigError(
            f"{prefix}ssl.keystore.location",
            path,
            f"The key store cannot be used: it is damaged, has not exactly one private key, or {prefix}ssl.keystore.password or "
            f"{prefix}ssl.key.password is wrong.",
        ) from error


def _identity_of_jks(content: bytes, password: str | None, key_password: str | None) -> Identity:
    [entry] = read_jks(content, password).keys
    key = entry.private_key(key_password or password or "")
    body = "\n".join(textwrap.wrap(base64.b64encode(key).decode(), 64))
    pem = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    return Identity(pem, "".join(map(ssl.DER_cert_to_PEM_cert, entry.chain)))


def _identity_of_pkcs12(content: bytes, password: str | None) -> Identity:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    store = _pkcs12(content, password)
    if store.key is None:
        raise ValueError("no key")
    certificates = [each.certificate for each in (store.cert, *store.additional_certs) if each is not None]
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Identity(key.decode(), b"".join(each.public_bytes(Encoding.PEM) for each in certificates).decode())


def _trusted_of_pkcs12(content: bytes, password: str | None) -> list[bytes]:
    from cryptography.hazmat.primitives.serialization import Encoding

    store = _pkcs12(content, password)
    certificates = [store.cert, *store.additional_certs] if store.key is None else store.additional_certs
    return [each.certificate.public_bytes(Encoding.DER) for each in certificates if each is not None]


def _pkcs12(content: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise ConfigError("Reading a PKCS12 store needs the Python package cryptography; install it, or use PEM.") from error
    return pkcs12.load_pkcs12(content, None if password is None else password.encode())


def _refused_trust(path: str, why: str, prefix: str) -> ConfigError:
    return ConfigError(
        f"{prefix}ssl.truststore.location",
        path,
        f"The trust store cannot be used: {why}. As PEM it can be: keytool -exportcert -rfc -keystore {path} -alias ALIAS "
        f"-file ca.pem, then {prefix}ssl.truststore.type=PEM and {prefix}ssl.truststore.location=ca.pem.",
    )
