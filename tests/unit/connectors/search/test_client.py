"""The client of search servers: logins, certificates, and servers that are none or not ready."""

from __future__ import annotations

import ssl
from contextlib import closing
from pathlib import Path

import pytest

from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.search.client import RefusedError, SearchClient
from sluiceway.connectors.search.connection import Server
from sluiceway.connectors.search.sink import ElasticsearchSinkConnector, OpenSearchSinkConnector
from sluiceway.connectors.search.sink.config import aiven_options, confluent_options
from sluiceway.errors import ConfigError
from support.certificates import Authority
from support.eventually import LIMIT
from support.search.scripted import serving

LOGIN = {"connection.username": "me", "connection.password": "hush"}
PATIENT = {"connection.timeout.ms": str(int(LIMIT * 1000)), "read.timeout.ms": str(int(LIMIT * 1000))}


def about(server: Server) -> object:
    with closing(SearchClient(server)) as client:
        return client.about()


def options(url: str, **config: str) -> Server:
    return confluent_options({"connection.url": url, **PATIENT, **config}).server


def test_a_login_is_sent() -> None:
    with serving(login="me:hush") as url:
        assert about(options(url, **LOGIN)) == {"version": {"number": "2.19.6"}}
        with pytest.raises(RefusedError, match=r"HTTP 401: no such user\. Check connection\.username") as caught:
            about(options(url, **{**LOGIN, "connection.password": "wrong"}))
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("sink", [ElasticsearchSinkConnector, OpenSearchSinkConnector])
def test_validation_names_the_keys_of_a_wrong_login(sink: type[ElasticsearchSinkConnector]) -> None:
    with serving(login="me:hush") as url:
        found = sink.validate({"connection.url": url, **PATIENT})
    assert [name for name, each in found.items() if each.errors] == ["connection.username", "connection.password"]


def test_a_user_without_the_right_is_told() -> None:
    body = b'{"error": {"type": "security_exception", "reason": "no permissions"}}'
    with serving(403, body) as url, pytest.raises(RefusedError, match=r"security_exception: no permissions.*needs the right"):
        about(options(url))


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"<html> hello", "is no search server: <html> hello"),
        (200, b"[]", "is no search server"),
        (301, b"", "HTTP 301"),
        (404, b"not here", "HTTP 404: not here"),
    ],
)
def test_what_is_no_search_server_is_named(status: int, body: bytes, message: str) -> None:
    with serving(status, body) as url:
        with pytest.raises(RefusedError, match=message):
            about(options(url))
        errors = ElasticsearchSinkConnector.validate({"connection.url": url, **PATIENT})["connection.url"].errors
        assert message in errors[0]


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_server_that_is_not_ready_is_waited_for(status: int) -> None:
    with serving(status, b'{"error": "starting"}') as url:
        with pytest.raises(UnreachableError, match=f"is not ready: HTTP {status} starting"):
            about(options(url))
        assert not any(each.errors for each in ElasticsearchSinkConnector.validate({"connection.url": url, **PATIENT}).values())


def test_the_next_server_is_asked() -> None:
    with serving() as url, closing(SearchClient(options(f"http://127.0.0.1:1,{url}"))) as client:
        assert client.about() == client.about()
    with pytest.raises(UnreachableError, match=r"No answer from http://127\.0\.0\.1:1, http://127\.0\.0\.1:2"):
        about(options("http://127.0.0.1:2,http://127.0.0.1:1"))


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("CA")


def server_context(authority: Authority, folder: Path, *, host: str = "127.0.0.1", asks: bool = False) -> ssl.SSLContext:
    certificate, key = authority.issue("search", host=host)
    (folder / "server.pem").write_text(key + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem)
    return context


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_a_trust_store_has_the_servers_authority(authority: Authority, tmp_path: Path, kind: str) -> None:
    store = tmp_path / "trust"
    store.write_bytes(authority.pem.encode() if kind == "PEM" else authority.java_truststore("hush"))
    trust = {"ssl.truststore.location": str(store), "ssl.truststore.password": "hush"}
    with serving(tls=server_context(authority, tmp_path)) as url:
        config = {f"elastic.https.{key}": value for key, value in trust.items()}
        assert about(options(url, **config, **{"elastic.security.protocol": "SSL"}))
        config = {f"connection.{key}": value for key, value in trust.items()}
        assert about(aiven_options({"connection.url": url, **PATIENT, **config}).server)
        with pytest.raises(RefusedError, match=r"cannot be used.*elastic\.https\.ssl\.truststore\.location"):
            about(options(url))


def test_a_certificate_of_another_host(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(authority.pem)
    trust = {"elastic.https.ssl.truststore.location": str(tmp_path / "ca.pem"), "elastic.security.protocol": "SSL"}
    with serving(tls=server_context(authority, tmp_path, host="search.example")) as url:
        with pytest.raises(RefusedError, match="cannot be used"):
            about(options(url, **trust))
        assert about(options(url, **trust, **{"elastic.https.ssl.endpoint.identification.algorithm": ""}))
        trusting = {"connection.url": url, **PATIENT, "connection.trust.all.certificates": "true"}
        assert about(aiven_options(trusting).server)


@pytest.mark.parametrize("kind", ["PEM", "PEM with a password", "PKCS12", "JKS"])
def test_the_client_shows_its_certificate(authority: Authority, tmp_path: Path, kind: str) -> None:
    (tmp_path / "ca.pem").write_text(authority.pem)
    certificate, key = authority.issue("client", password="hush2" if "password" in kind else None)
    content = {
        "PKCS12": lambda: authority.keystore("client", "hush"),
        "JKS": lambda: authority.jks_keystore("client", "hush", "hush2"),
    }
    (tmp_path / "key").write_bytes(content[kind]() if kind in content else (key + certificate).encode())
    stores = {
        "elastic.security.protocol": "SSL",
        "elastic.https.ssl.truststore.location": str(tmp_path / "ca.pem"),
        "elastic.https.ssl.keystore.location": str(tmp_path / "key"),
        "elastic.https.ssl.keystore.password": "hush",
        "elastic.https.ssl.key.password": "hush2" if kind != "PEM" else "",
    }
    with serving(tls=server_context(authority, tmp_path, asks=True)) as url:
        assert about(options(url, **stores))


@pytest.mark.parametrize("key", ["ssl.truststore.location", "ssl.keystore.location"])
def test_stores_that_cannot_be_read_are_named(tmp_path: Path, key: str) -> None:
    (tmp_path / "empty.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    for path in (tmp_path / "none", tmp_path / "empty.pem"):
        config = {"elastic.security.protocol": "SSL", f"elastic.https.{key}": str(path)}
        with pytest.raises(ConfigError, match=key):
            about(options("https://127.0.0.1:1", **config))
        found = ElasticsearchSinkConnector.validate({"connection.url": "https://127.0.0.1:1", **config})
        assert key in found["connection.url"].errors[0]
