"""Certificates in Java's key stores, which librdkafka does not read."""

from __future__ import annotations

import hashlib
import ssl
import struct
from pathlib import Path
from typing import Literal

from sluiceway.errors import ConfigError

StoreType = Literal["PEM", "JKS", "PKCS12"]

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_DER_SEQUENCE = b"\x30"
_SALT = b"Mighty Aphrodite"  # part of the format
_DIGEST_BYTES = 20
_PRIVATE_KEY, _TRUSTED = 1, 2


def read_store(path: str, key: str) -> bytes:
    """Return a store's bytes; ``key`` is the property that names it, for the error (ConfigError)."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(key, path, f"The file cannot be read on this machine: {error.strerror}.") from error


def store_type(content: bytes) -> StoreType | None:
    """Tell what a store is by what is in it: since Java 9, keytool writes PKCS12 whatever the file is called."""
    if content.startswith(_JKS_MAGIC):
        return "JKS"
    if content.startswith(_DER_SEQUENCE):
        return "PKCS12"
    return "PEM" if b"-----BEGIN " in content else None


def trusted_certificates(content: bytes, password: str | None, path: str) -> str:
    """Return the certificates of a JKS or PKCS12 trust store as PEM; ``path`` names it in errors (ConfigError)."""
    try:
        found = _of_jks(content, password) if store_type(content) == "JKS" else _of_pkcs12(content, password)
    except (ValueError, struct.error, IndexError) as error:
        raise _refused(path, "it is damaged, or ssl.truststore.password is not its password") from error
    if not found:
        raise _refused(path, "no certificate is in it")
    return "".join(map(ssl.DER_cert_to_PEM_cert, found))


def _of_jks(content: bytes, password: str | None) -> list[bytes]:
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(password.encode("utf-16-be") + _SALT + body, usedforsecurity=False).digest()
        if expected != digest:
            raise ValueError("digest")
    reader = _Reader(body)
    _magic, version, count = reader.number(), reader.number(), reader.number()
    found: list[bytes] = []
    for _ in range(count):
        tag = reader.number()
        reader.text()  # alias
        reader.take(8)  # time of creation
        if tag == _TRUSTED:
            found.append(reader.certificate(version))
        elif tag == _PRIVATE_KEY:
            reader.take(reader.number())
            for _ in range(reader.number()):
                reader.certificate(version)
        else:
            raise ValueError("tag")
    return found


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._content[self._at : self._at + count]
        if len(taken) < count:
            raise ValueError("end")
        self._at += count
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def text(self) -> bytes:
        return self.take(int.from_bytes(self.take(2), "big"))

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()  # its type, which is X.509
        return self.take(self.number())


def _of_pkcs12(content: bytes, password: str | None) -> list[bytes]:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
    except ImportError as error:
        raise ConfigError(
            "Reading a PKCS12 trust store needs the Python package cryptography; install it, or convert it to PEM."
        ) from error
    store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    certificates = [store.cert, *store.additional_certs] if store.key is None else store.additional_certs
    return [each.certificate.public_bytes(Encoding.DER) for each in certificates if each is not None]


def _refused(path: str, why: str) -> ConfigError:
    return ConfigError(
        "ssl.truststore.location", path,
        f"The trust store cannot be used: {why}. As PEM it can be: keytool -exportcert -rfc -keystore {path} -alias ALIAS "
        "-file ca.pem, then ssl.truststore.type=PEM and ssl.truststore.location=ca.pem.",
    )  # fmt: skip
