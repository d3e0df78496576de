"""Listeners with certificates, admin listeners, credentials, and headers of answers: servers on free ports of this machine."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.herder import Herder
from sluiceway.rest import cluster
from sluiceway.rest.credentials import Authenticator, jaas_users_file
from sluiceway.rest.server import RestServer
from sluiceway.rest.settings import HeaderRule, RestSettings
from sluiceway.rest.tls import server_context
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.certificates import Authority

EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
HERE = "http://127.0.0.1:0"
PASSWORD = "hunter2-store"

Start = Callable[..., RestServer]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(cluster, "_ask", lambda _worker: "some-cluster")
    servers: list[RestServer] = []

    def start(**properties: str) -> RestServer:
        worker = WorkerConfig.of({"listeners": HERE} | {key.replace("__", "."): value for key, value in properties.items()})
        herder = Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
        server = RestServer(worker, lambda: herder)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()


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


def connectors(address: str, **options: Any) -> int:
    return httpx.get(f"{address}/connectors", **options).status_code


# Certificates.


@pytest.mark.parametrize("prefix", ["", "listeners.https."])
@pytest.mark.parametrize("store", ["pem", "p12"])
def test_http_and_https_listen_side_by_side(start: Start, certificate: Certificate, store: str, prefix: str) -> None:
    keys = {"ssl.keystore.location": str(getattr(certificate, store)), "ssl.keystore.password": PASSWORD}
    keys |= {"ssl.key.password": PASSWORD} if store == "pem" else {"ssl.keystore.type": "PKCS12"}
    server = start(listeners="https://127.0.0.1:0,http://127.0.0.1:0", **{prefix + key: value for key, value in keys.items()})
    secure, plain = server.addresses
    assert secure.startswith("https://")
    assert plain.startswith("http://")
    assert connectors(secure, verify=certificate.client()) == 200
    assert connectors(plain) == 200
    with pytest.raises(httpx.ConnectError):
        connectors(secure)  # does not trust it


def test_a_certificate_may_stand_in_the_worker_file_itself(start: Start, certificate: Certificate) -> None:
    server = start(
        listeners="https://127.0.0.1:0",
        ssl__keystore__type="PEM",
        ssl__keystore__key=certificate.key,
        ssl__keystore__certificate__chain=certificate.chain,
        ssl__key__password=PASSWORD,
    )
    assert connectors(server.addresses[0], verify=certificate.client()) == 200


def test_a_jks_store_will_do_too(start: Start, tmp_path: Path) -> None:
    authority, store = Authority("ca"), tmp_path / "server.jks"
    store.write_bytes(authority.jks_keystore("localhost", PASSWORD, "another"))
    server = start(
        listeners="https://127.0.0.1:0",
        ssl__keystore__location=str(store),
        ssl__keystore__password=PASSWORD,
        ssl__key__password="another",
    )
    assert connectors(server.addresses[0], verify=ssl.create_default_context(cadata=authority.pem)) == 200


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
    assert connectors(server.addresses[0], verify=certificate.client()) == 200


def test_clients_can_be_asked_for_certificates(start: Start, certificate: Certificate) -> None:
    server = start(
        listeners="https://127.0.0.1:0",
        ssl__keystore__location=str(certificate.pem),
        ssl__key__password=PASSWORD,
        ssl__client__auth="required",
        ssl__truststore__certificates=certificate.chain,
    )
    assert connectors(server.addresses[0], verify=certificate.client(own=True)) == 200
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError, httpx.ConnectError)):
        connectors(server.addresses[0], verify=certificate.client())


def test_prefixed_keys_are_taken_instead_of_the_others_not_beside_them(certificate: Certificate) -> None:
    keys = {"ssl.keystore.location": str(certificate.pem), "ssl.key.password": PASSWORD}
    assert isinstance(server_context(keys), ssl.SSLContext)
    with pytest.raises(ConfigError, match="needs a certificate"):
        server_context(keys | {"listeners.https.ssl.client.auth": "none"})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "It needs a certificate: set ssl.keystore.location"),
        ({"ssl.keystore.location": "/nowhere.pem"}, "cannot be read on this machine: No such file"),
        ({"ssl.keystore.location": "{jks}"}, "The key store cannot be used"),
        ({"ssl.keystore.location": "{p12}", "ssl.keystore.password": "wrong-secret"}, "or ssl.key.password is wrong"),
        ({"ssl.keystore.location": "{pem}", "ssl.key.password": "wrong-secret"}, "ssl.key.password is wrong"),
        ({"ssl.keystore.location": "{pem}"}, "ssl.key.password is wrong"),
        ({"ssl.keystore.location": "{pem}", "ssl.key.password": PASSWORD, "ssl.client.auth": "required"}, "truststore.location"),
        ({"ssl.keystore.location": "{pem}", "ssl.key.password": PASSWORD, "ssl.client.auth": "maybe"}, "one of none, requested"),
        ({"ssl.keystore.location": "{pem}", "ssl.key.password": PASSWORD, "ssl.truststore.certificates": "x"}, "no certificates"),
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


# Listeners for /admin.


def test_admin_is_served_on_all_listeners_by_default(start: Start) -> None:
    assert httpx.get(f"{start().addresses[0]}/admin/loggers/root").status_code == 200


def test_admin_listeners_serve_admin_and_nothing_else_and_the_others_all_but_that(start: Start) -> None:
    server = start(admin__listeners=HERE)
    (main,), (admin,) = server.addresses, server.admin_addresses
    assert main != admin
    assert httpx.get(f"{admin}/admin/loggers/root").status_code == 200
    assert httpx.get(f"{admin}/connectors").json() == {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert httpx.get(f"{main}/admin/loggers/root").status_code == 404
    assert connectors(main) == 200


def test_no_admin_listeners_turn_admin_off(start: Start) -> None:
    server = start(admin__listeners="")
    assert server.admin_addresses == []
    assert httpx.get(f"{server.addresses[0]}/admin/loggers").status_code == 404
    assert connectors(server.addresses[0]) == 200


# Credentials.


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users.properties"
    file.write_text("alice: secret:x\nbob=pw\nempty=\n")
    return file


def jaas(folder: Path, users: Path) -> Path:
    file = folder / "jaas.conf"
    file.write_text(f"""
        // the workers' own
        KafkaClient {{ org.example.Other required; }};
        KafkaConnect {{
          org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required
          debug="true"
          file="{users}"; /* users */
        }};
    """)
    return file


@pytest.mark.parametrize("way", ["own key", "worker key", "KAFKA_OPTS"])
def test_users_are_found_where_kafka_connects_extension_finds_them(
    start: Start, users: Path, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = jaas(tmp_path, users)
    keys = {
        "own key": {"sluiceway.rest.basic.auth.file": str(users)},
        "worker key": {"rest.extension.classes": EXTENSION, "java.security.auth.login.config": str(config)},
        "KAFKA_OPTS": {"rest.extension.classes": EXTENSION},
    }[way]
    if way == "KAFKA_OPTS":
        monkeypatch.setitem(os.environ, "KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={config}")
    address = start(**keys).addresses[0]
    assert connectors(address, auth=("alice", "secret:x")) == 200
    assert connectors(address, auth=("bob", "pw")) == 200
    refused = httpx.get(f"{address}/connectors")
    assert refused.json() == {"error_code": 401, "message": "User cannot access the resource."}
    assert refused.headers["www-authenticate"] == 'Basic realm="Connect"'


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic x",
        "Basic ====",
        "Basic Ym9i",
        "Bearer y",
        "Basic Ym9iOm5v",
        "Basic ZW1wdHk6",
        "Basic Og==",
        "Basic bm9ib2R5OgA=",
        "Basic bm9ib2R5Og==",
        "Basic /////w==",
        "Digest x",
    ],
)
def test_wrong_credentials_are_refused_whatever_they_look_like(start: Start, users: Path, header: str | None) -> None:
    address = start(**{"sluiceway.rest.basic.auth.file": str(users)}).addresses[0]
    assert connectors(address, headers={} if header is None else {"authorization": header}) == 401


@pytest.mark.parametrize(
    "path", ["/", "/health", "/connectors", "/admin/loggers", "/docs", "/openapi.json", "/nope", "/connectors/a%2Fb"]
)
def test_nothing_is_answered_without_credentials(start: Start, users: Path, path: str) -> None:
    address = start(**{"sluiceway.rest.basic.auth.file": str(users)}).addresses[0]
    for method in ("GET", "PUT", "OPTIONS"):
        assert httpx.request(method, address + path).status_code == 401


def test_admin_listeners_ask_for_credentials_too(start: Start, users: Path) -> None:
    server = start(admin__listeners=HERE, **{"sluiceway.rest.basic.auth.file": str(users)})
    assert httpx.get(f"{server.admin_addresses[0]}/admin/loggers").status_code == 401


def test_tokens_are_taken_beside_passwords_and_a_changed_file_counts_at_once(start: Start, users: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.properties"
    tokens.write_text("ci=token-1\nnobody=\n")
    address = start(**{"sluiceway.rest.basic.auth.file": str(users), "sluiceway.rest.bearer.token.file": str(tokens)}).addresses[
        0
    ]

    def with_token(token: str) -> int:
        return connectors(address, headers={"authorization": f"Bearer {token}"})

    assert [with_token("token-1"), with_token("token-2"), with_token("ci"), with_token("nobody")] == [200, 401, 401, 401]
    assert connectors(address, auth=("bob", "pw")) == 200
    tokens.write_text("ci=token-22\n")
    assert [with_token("token-1"), with_token("token-22")] == [401, 200]
    tokens.unlink()
    assert with_token("token-22") == 500


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"rest.extension.classes": "org.example.Other"}, "Java extensions cannot be loaded"),
        ({"rest.extension.classes": EXTENSION}, "sluiceway.rest.basic.auth.file"),
        ({"rest.extension.classes": EXTENSION, "java.security.auth.login.config": "/nowhere"}, "Cannot read it"),
        ({"sluiceway.rest.basic.auth.file": "/nowhere"}, "Cannot read the credentials"),
        ({"sluiceway.rest.bearer.token.file": "/nowhere"}, "Cannot read the credentials"),
    ],
)
def test_credentials_that_cannot_be_read_stop_the_start(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Authenticator.of(keys, {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "KafkaClient { a.PropertyFileLoginModule required file=x; };",
        "KafkaConnect { a.Other required file=x; };",
        "KafkaConnect { a.PropertyFileLoginModule required; };",
    ],
)
def test_a_jaas_file_without_the_users_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(text)
    with pytest.raises(ConfigError, match="KafkaConnect"):
        jaas_users_file(file)


@pytest.mark.parametrize(
    ("option", "expected"), [("file=/a/b", "/a/b"), ('file="/a b"', "/a b"), (r'file="/a\"b\\c"', '/a"b\\c')]
)
def test_a_jaas_option_may_be_quoted(tmp_path: Path, option: str, expected: str) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f"KafkaConnect {{ x.PropertyFileLoginModule required {option}; }};")
    assert jaas_users_file(file) == expected


# Headers.


def test_pages_of_allowed_origins_may_call(start: Start) -> None:
    address = start(
        access__control__allow__origin="http://a.com,http://b.com", access__control__allow__methods="GET,PUT"
    ).addresses[0]
    answer = httpx.get(f"{address}/connectors", headers={"origin": "http://b.com"})
    assert answer.headers["access-control-allow-origin"] == "http://b.com"
    assert answer.headers["vary"] == "Origin"
    for origin in ({}, {"origin": "http://c.com"}):
        assert "access-control-allow-origin" not in httpx.get(f"{address}/connectors", headers=origin).headers
    asked = {"origin": "http://a.com", "access-control-request-method": "PUT", "access-control-request-headers": "content-type"}
    preflight = httpx.options(f"{address}/connectors/x/pause", headers=asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-methods"] == "GET,PUT"
    assert preflight.headers["access-control-allow-headers"] == "content-type"
    assert (
        "access-control-allow-origin"
        not in httpx.options(f"{address}/connectors", headers=asked | {"origin": "http://c.com"}).headers
    )


def test_any_origin_may_be_allowed_and_a_browsers_question_needs_no_credentials(start: Start, users: Path) -> None:
    address = start(access__control__allow__origin="*", **{"sluiceway.rest.basic.auth.file": str(users)}).addresses[0]
    asked = {"origin": "http://any.com", "access-control-request-method": "GET"}
    preflight = httpx.options(f"{address}/connectors", headers=asked)
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, "http://any.com")
    refused = httpx.get(f"{address}/connectors", headers={"origin": "http://any.com"})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "http://any.com")


def test_pages_may_not_call_by_default(start: Start) -> None:
    answer = httpx.get(f"{start().addresses[0]}/connectors", headers={"origin": "http://a.com"})
    assert "access-control-allow-origin" not in answer.headers


def test_answers_get_the_headers_that_are_configured(start: Start) -> None:
    rules = 'set X-A: 1, "add Cache-Control: no-cache, no-store",add X-A:2, setDate X-Now:ignored'
    address = start(response__http__headers__config=rules).addresses[0]
    for path in ("/connectors", "/nope"):
        headers = httpx.get(address + path).headers
        assert headers.get_list("x-a") == ["1", "2"]
        assert headers["cache-control"] == "no-cache, no-store"
        assert headers["x-now"].endswith(" GMT")


def test_header_rules_are_read_as_connect_writes_them() -> None:
    worker = WorkerConfig.of({"response.http.headers.config": '"add X-B: a, b", set C:d'})
    assert RestSettings.of(worker).headers == (HeaderRule("X-B", "a, b", replaces=False), HeaderRule("C", "d", replaces=True))


@pytest.mark.parametrize("rule", ["x", "drop A: b", "add A", "add : b", "add A b: c"])
def test_a_header_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"response\.http\.headers\.config"):
        RestSettings.of(WorkerConfig.of({"response.http.headers.config": rule}))
