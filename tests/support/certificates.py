"""Issues certificates for tests from a certificate authority in memory."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import struct

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


class Authority:
    """A certificate authority; ``pem`` is its own certificate."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = self._builder(self._name, self._key.public_key()).add_extension(constraints, critical=True)
        self.certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(self, name: str, *, host: str = "127.0.0.1", password: str | None = None) -> tuple[str, str]:
        """Return a certificate for a name and an address, and its key, as PEM."""
        certificate, key = self._issue(name, host)
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        return certificate.public_bytes(Encoding.PEM).decode(), private.decode()

    def keystore(self, name: str, password: str, *, host: str = "127.0.0.1") -> bytes:
        """Return certificate and key as a PKCS12 key store."""
        certificate, key = self._issue(name, host)
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"mine", key, certificate, [self.certificate], encryption)

    def jks_keystore(self, name: str, password: str, key_password: str) -> bytes:
        """Return certificate and key as a key store in Java's old format (JKS)."""
        certificate, key = self._issue(name, "127.0.0.1")
        chain = [each.public_bytes(Encoding.DER) for each in (certificate, self.certificate)]
        private = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        hidden = _hidden(private, key_password.encode("utf-16-be"))
        body = struct.pack(">IIIIH", 0xFEEDFEED, 2, 1, 1, 4) + b"mine" + struct.pack(">QI", 0, len(hidden)) + hidden
        body += struct.pack(">I", len(chain))
        body += b"".join(struct.pack(">H", 5) + b"X.509" + struct.pack(">I", len(each)) + each for each in chain)
        return body + _sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body)

    def java_truststore(self, password: str) -> bytes:
        """Return the authority's certificate as a PKCS12 trust store that Java reads."""
        entry = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        return pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))

    def _issue(self, name: str, host: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            address: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            address = x509.DNSName(host)
        names = x509.SubjectAlternativeName([address])
        builder = self._builder(_name(name), key.public_key()).add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256()), key

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )


def _hidden(key: bytes, password: bytes) -> bytes:
    """Encrypt a key as JKS does, and return it in JKS's DER structure."""
    salt = block = b"s" * 20
    stream = b""
    while len(stream) < len(key):
        block = _sha1(password + block)
        stream += block
    data = salt + bytes(one ^ other for one, other in zip(key, stream, strict=False)) + _sha1(password + key)
    algorithm = bytes.fromhex("300e060a2b060104012a021101010500")
    return _der(0x30, algorithm + _der(0x04, data))


def _der(tag: int, value: bytes) -> bytes:
    size = bytes([len(value)]) if len(value) < 0x80 else b"\x82" + struct.pack(">H", len(value))
    return bytes([tag]) + size + value


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
