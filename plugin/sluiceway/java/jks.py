"""Reads and writes Java's own key store format, JKS, which keytool wrote by default up to Java 8. No I/O.

The format has big-endian numbers, a SHA-1 digest at the end, and private keys XORed with a stream of SHA-1 digests of the
password. That protection is weak; do not rely on it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAGIC = b"\xfe\xed\xfe\xed"
_SALT = b"Mighty Aphrodite"  # part of the format
_DIGEST_BYTES = 20
_PRIVATE_KEY, _TRUSTED = 1, 2
_VERSION = 2
_SEQUENCE, _OCTETS = 0x30, 0x04


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key as the store encrypts it, and its certificate chain (DER), the key's own certificate first."""

    hidden: bytes = field(repr=False)
    chain: tuple[bytes, ...]

    def private_key(self, password: str) -> bytes:
        """Return the key as PKCS #8 (DER). Raises ValueError for a wrong password."""
        _algorithm, data = list(_elements(_value(self.hidden, _SEQUENCE)))
        body = _value(data, _OCTETS)
        before, hidden, check = body[:_DIGEST_BYTES], body[_DIGEST_BYTES:-_DIGEST_BYTES], body[-_DIGEST_BYTES:]
        secret, stream = password.encode("utf-16-be"), b""
        while len(stream) < len(hidden):
            before = _sha1(secret + before)
            stream += before
        key = bytes(one ^ other for one, other in zip(hidden, stream, strict=False))
        if _sha1(secret + key) != check:
            raise ValueError("password")
        return key


@dataclass(frozen=True, slots=True)
class Jks:
    """A store's trusted certificates (DER) and private keys."""

    trusted: tuple[bytes, ...]
    keys: tuple[KeyEntry, ...]


def read_jks(content: bytes, password: str | None) -> Jks:
    """Read a store. ``password`` None skips the digest check. Raises ValueError for a damaged store or a wrong password."""
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if password is not None and _digest(body, password) != digest:
        raise ValueError("digest")
    reader = _Reader(body)
    _magic, version, count = reader.number(), reader.number(), reader.number()
    trusted: list[bytes] = []
    keys: list[KeyEntry] = []
    for _ in range(count):
        tag = reader.number()
        reader.text()  # alias
        reader.take(8)  # time of creation
        if tag == _TRUSTED:
            trusted.append(reader.certificate(version))
        elif tag == _PRIVATE_KEY:
            hidden = reader.take(reader.number())
            keys.append(KeyEntry(hidden, tuple(reader.certificate(version) for _ in range(reader.number()))))
        else:
            raise ValueError("tag")
    return Jks(tuple(trusted), tuple(keys))


def write_truststore(certificates: Mapping[str, bytes], password: str) -> bytes:
    """Return a store of trusted certificates (DER) by alias (ASCII). Creation times are 0."""
    body = bytearray(MAGIC + struct.pack(">II", _VERSION, len(certificates)))
    for alias, certificate in certificates.items():
        body += struct.pack(">I", _TRUSTED) + _text(alias) + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    return bytes(body) + _digest(bytes(body), password)


def _text(value: str) -> bytes:
    encoded = value.encode("ascii")
    return struct.pack(">H", len(encoded)) + encoded


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
            self.text()  # the certificate type, always X.509
        return self.take(self.number())


def _digest(body: bytes, password: str) -> bytes:
    return _sha1(password.encode("utf-16-be") + _SALT + body)


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _elements(content: bytes) -> Iterator[bytes]:
    """Yield consecutive DER elements."""
    while content:
        start, length = _header(content)
        yield content[: start + length]
        content = content[start + length :]


def _value(element: bytes, tag: int) -> bytes:
    if not element or element[0] != tag:
        raise ValueError("key")
    start, length = _header(element)
    return element[start : start + length]


def _header(element: bytes) -> tuple[int, int]:
    """Return the offset and the length of a DER element's value."""
    length = element[1]
    if length < 0x80:
        return 2, length
    size = length & 0x7F
    return 2 + size, int.from_bytes(element[2 : 2 + size], "big")
