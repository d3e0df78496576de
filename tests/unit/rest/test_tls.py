"""https listeners."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from sluiceway.errors import ConfigError
from sluiceway.rest.client import ConnectClient, RestError
from sluiceway.rest.tls import server_context
from support.certificates import Authority
from unit.rest.servers import Start, status_of_connectors

PASSWORD = "hunter2-store"


class Certificate:
    """A self-signed certificate for this machine, as PEM file, PKCS12 store, and trusted by a client's context."""

    def __init__(self, folder: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        now = datetime.now(timezone.utc)
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now)
            .not_valid_after(now + timedelta(days=1))
            .add_extension(names, critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        encrypted = serialization.BestAvailableEncryption(PASSWORD.encode())
        self.chain = certificate.public_bytes(serialization.Encoding.PEM).decode()
        self.key = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encrypted).decode()
        self.pem, self.p12, self.jks = folder / "server.pem", folder / "server.p12", folder / "server.jks"
        self.pem.write_text(self.key + self.chain)
        self.p12.write_bytes(pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, encrypted))
        self.jks.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")  # damaged

    def client(self, *, own: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.chain)
        if own:
            context.load_cert_chain(self.pem, password=PASSWORD)
        return context


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("certificate"))


@pytest.mark.parametrize("prefix", ["", "listeners.https."])
@pytest.mark.parametrize("store", ["pem", "p12"])
def test_http_and_https_listen_side_by_side(start: Start, certificate: Certificate, store: str, prefix: str) -> None:
    keys = {"ssl.keystore.location": str(getattr(certificate, store)), "ssl.keystore.password": PASSWORD}
    keys |= {"ssl.key.password": PASSWORD} if store == "pem" else {"ssl.keystore.type": "PKCS12"}
    server = start(listeners="https://127.0.0.1:0,http://127.0.0.1:0", **{prefix + key: value for key, value in keys.items()})
    secure, plain = server.addresses
    assert secure.startswith("https://")
    assert plain.startswith("http://")
    assert status_of_connectors(secure, verify=certificate.client()) == 200
    assert status_of_connectors(plain) == 200
    with pytest.raises(httpx.ConnectError):
        status_of_connectors(secure)  # does not trust it


def test_a_client_that_does_not_speak_as_the_server_does_is_told_what_to_change(
    start: Start, certificate: Certificate, tmp_path: Path
) -> None:
    keys = {"ssl.keystore.location": str(certificate.pem), "ssl.keystore.password": PASSWORD, "ssl.key.password": PASSWORD}
    secure, plain = start(listeners="https://127.0.0.1:0,http://127.0.0.1:0", **keys).addresses
    (tmp_path / "ca.pem").write_text(certificate.chain)
    assert ConnectClient(secure, ca=str(tmp_path / "ca.pem")).connectors() == []
    for server, told in (
        (secure, r"\. Name the authority of its certificate: 'sluiceway contexts set NAME --server URL --ca FILE'\.$"),
        (secure.replace("https", "http"), r"response\. Is it a server with TLS, whose address begins with https://\?$"),
        (plain.replace("http", "https"), r"\. Is it a server without TLS, whose address begins with http://\?$"),
    ):
        with pytest.raises(RestError, match=told):
            ConnectClient(server).connectors()


def test_a_certificate_may_stand_in_the_worker_file_itself(start: Start, certificate: Certificate) -> None:
    server = start(
        listeners="https://127.0.0.1:0",
        ssl__keystore__type="PEM",
        ssl__keystore__key=certificate.key,
        ssl__keystore__certificate__chain=certificate.chain,
        ssl__key__password=PASSWORD,
    )
    assert status_of_connectors(server.addresses[0], verify=certificate.client()) == 200


def test_a_jks_store_will_do_too(start: Start, tmp_path: Path) -> None:
    authority, store = Authority("ca"), tmp_path / "server.jks"
    store.write_bytes(authority.jks_keystore("localhost", PASSWORD, "another"))
    server = start(
        listeners="https://127.0.0.1:0",
        ssl__keystore__location=str(store),
        ssl__keystore__password=PASSWORD,
        ssl__key__password="another",
    )
    assert status_of_connectors(server.addresses[0], verify=ssl.create_default_context(cadata=authority.pem)) == 200


def test_admin_listeners_may_have_a_certificate_of_their_own(start: Start, certificate: Certificate, tmp_path: Path) -> None:
    authority, store = Authority("ca"), tmp_path / "admin.p12"
    store.write_bytes(authority.keystore("admin", PASSWORD))
    own = {"location": str(store), "password": PASSWORD}
    server = start(
        listeners="https://127.0.0.1:0",
        admin__listeners="https://127.0.0.1:0",
        ssl__keystore__location=str(certificate.pem),
        ssl__key__password=PASSWORD,
        **{f"admin.listeners.https.ssl.keystore.{key}": value for key, value in own.items()},
    )
    trusting = ssl.create_default_context(cadata=authority.pem)
    assert httpx.get(f"{server.admin_addresses[0]}/admin/loggers/root", verify=trusting).status_code == 200
    assert status_of_connectors(server.addresses[0], verify=certificate.client()) == 200


def test_clients_can_be_asked_for_certificates(start: Start, certificate: Certificate) -> None:
    server = start(
        listeners="https://127.0.0.1:0",
        ssl__keystore__location=str(certificate.pem),
        ssl__key__password=PASSWORD,
        ssl__client__auth="required",
        ssl__truststore__certificates=certificate.chain,
    )
    assert status_of_connectors(server.addresses[0], verify=certificate.client(own=True)) == 200
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError, httpx.ConnectError)):
        status_of_connectors(server.addresses[0], verify=certificate.client())


def test_prefixed_keys_are_taken_instead_of_the_others_not_beside_them(certificate: Certificate) -> None:
    keys = {"ssl.keystore.location": str(certificate.pem), "ssl.key.password": PASSWORD}
    assert isinstance(server_context(keys), ssl.SSLContext)
    with pytest.raises(ConfigError, match="The certificate is missing"):
        server_context(keys | {"listeners.https.ssl.client.auth": "none"})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "The certificate is missing. Set ssl.keystore.location"),
        ({"ssl.keystore.location": "/nowhere.pem"}, "cannot be read on this machine: No such file"),
        ({"ssl.keystore.location": "{jks}"}, "The key store cannot be used"),
        ({"ssl.keystore.location": "{p12}", "ssl.keystore.password": "wrong-secret"}, "or ssl.key.password is wrong"),
        ({"ssl.keystore.location": "{pem}", "ssl.key.password": "wrong-secret"}, "Check their format and ssl.key.password"),
        ({"ssl.keystore.location": "{pem}"}, "Check their format and ssl.key.password"),
        ({"ssl.keystore.location": "{pem}", "ssl.key.password": PASSWORD, "ssl.client.auth": "required"}, "truststore.location"),
        ({"ssl.keystore.location": "{pem}", "ssl.key.password": PASSWORD, "ssl.client.auth": "maybe"}, "one of none, requested"),
        (
            {"ssl.keystore.location": "{pem}", "ssl.key.password": PASSWORD, "ssl.truststore.certificates": "x"},
            "no usable certificate",
        ),
        ({"ssl.keystore.location": "{pem}", "ssl.key.password": PASSWORD, "ssl.enabled.protocols": "SSLv3"}, "TLSv1.2, TLSv1.3"),
    ],
)
def test_what_cannot_be_used_is_told_without_passwords(certificate: Certificate, keys: dict[str, str], message: str) -> None:
    def filled(text: str) -> str:
        return text.format(pem=certificate.pem, p12=certificate.p12, jks=certificate.jks)

    with pytest.raises(ConfigError) as caught:
        server_context({key: filled(value) for key, value in keys.items()})
    assert filled(message) in str(caught.value)
    assert "wrong-secret" not in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_only_the_protocol_versions_that_are_enabled_are_spoken(certificate: Certificate) -> None:
    keys = {"ssl.keystore.location": str(certificate.pem), "ssl.key.password": PASSWORD}
    assert server_context(keys).minimum_version == ssl.TLSVersion.TLSv1_2
    assert server_context(keys | {"ssl.enabled.protocols": "TLSv1.3"}).minimum_version == ssl.TLSVersion.TLSv1_3
