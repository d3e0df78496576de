"""Hands the system's certificate authorities to a Java runtime that brings its own list."""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
from pathlib import Path

from sluiceway.folders import write_atomically

#: Protects the file against nothing: a trust store holds public certificates, but Java wants some password.
PASSWORD = "changeit"  # noqa: S105

_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2
_SALT = b"Mighty Aphrodite"  # part of Java's format
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def write_system_truststore(path: Path) -> int:
    """Write the certificate authorities that Python's ssl module trusts as a Java key store; return how many they are.

    Raises:
        OSError: the file cannot be written, or the certificates cannot be read.
    """
    certificates = _system_certificates()
    body = bytearray(struct.pack(">III", _MAGIC, _VERSION, len(certificates)))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", _TRUSTED) + _text(f"ca-{number}") + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    # Java's own check value for this format; not used as protection.
    digest = hashlib.sha1(PASSWORD.encode("utf-16-be") + _SALT + body, usedforsecurity=False).digest()
    write_atomically(path, bytes(body) + digest)
    return len(certificates)


def _system_certificates() -> list[bytes]:
    context = ssl.create_default_context()
    for bundle in (os.environ.get("SSL_CERT_FILE"), *_BUNDLES):
        if bundle and Path(bundle).is_file():
            context.load_verify_locations(cafile=bundle)
    return context.get_ca_certs(binary_form=True)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded
