"""Writes the system's certificate authorities as a Java trust store, for Java runtimes that come with a list of their own."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from sluiceway.folders import write_atomically
from sluiceway.java.jks import write_truststore

#: Java requires a password. It protects nothing, because a trust store holds only public certificates.
PASSWORD = "changeit"  # noqa: S105

_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def write_system_truststore(path: Path) -> int:
    """Write the certificate authorities that Python's ssl module trusts to a JKS file; return their number.

    Raises:
        OSError: the file cannot be written, or the certificates cannot be read.
    """
    certificates = _system_certificates()
    by_alias = {f"ca-{number}": certificate for number, certificate in enumerate(certificates)}
    write_atomically(path, write_truststore(by_alias, PASSWORD))
    return len(certificates)


def _system_certificates() -> list[bytes]:
    context = ssl.create_default_context()
    for bundle in (os.environ.get("SSL_CERT_FILE"), *_BUNDLES):
        if bundle and Path(bundle).is_file():
            context.load_verify_locations(cafile=bundle)
    return context.get_ca_certs(binary_form=True)
