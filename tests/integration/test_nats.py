"""Connections to a real NATS server: logins, TLS, and servers that are away or have no JetStream."""

from __future__ import annotations

import base64
import json
import logging
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import nkeys
import pytest

from sluiceway.connectors.errors import LoginError, UnreachableError
from sluiceway.connectors.nats import NatsSinkConnector, NatsStreamSourceConnector
from sluiceway.connectors.nats.connection import Server, server_of
from sluiceway.connectors.nats.session import NoJetStreamError, Session, opened
from sluiceway.connectors.nats.stream_options import CONFIG
from sluiceway.errors import ConfigError, ConnectError
from support.certificates import Authority
from support.eventually import LIMIT, eventually
from support.nats_server import NatsServer

SECRET = "s3cret"


def seed_of(kind: int) -> tuple[str, str]:
    """Return the seed of a new nkey, and the public key."""
    seed = nkeys.encode_seed(secrets.token_bytes(32), kind)
    pair = nkeys.from_seed(bytearray(seed))
    return seed.decode(), pair.public_key.decode()


def validated(config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of a config by key."""
    found = NatsStreamSourceConnector.validate({"nats.streams": "S", **config})
    return {name: " ".join(map(str, each.errors)) for name, each in found.items() if each.errors}


def server_from(config: Mapping[str, str]) -> Server:
    return server_of(CONFIG.parse({"nats.streams": "S", **config}))


class Login:
    """A server with a login: its settings, those of a client, and of one that is refused, with the key that the error names."""

    def __init__(self, settings: str, good: Mapping[str, str], bad: Mapping[str, str], key: str) -> None:
        self.settings, self.good, self.bad, self.key = settings, good, bad, key


def by_password(_folder: Path) -> Login:
    return Login(
        f'authorization {{ user: me, password: "{SECRET}" }}',
        {"nats.user": "me", "nats.password": SECRET},
        {"nats.user": "me", "nats.password": "wr0ng"},
        "nats.password",
    )


def by_nothing(folder: Path) -> Login:
    login = by_password(folder)
    return Login(login.settings, login.good, {}, "nats.user")


def by_token(_folder: Path) -> Login:
    return Login(f'authorization {{ token: "{SECRET}" }}', {"nats.token": SECRET}, {"nats.token": "wr0ng"}, "nats.token")


def by_nkey(_folder: Path) -> Login:
    seed, public = seed_of(nkeys.PREFIX_BYTE_USER)
    other, _public = seed_of(nkeys.PREFIX_BYTE_USER)
    return Login(
        f"authorization {{ users = [ {{ nkey: {public} }} ] }}",
        {"nats.nkey.seed": seed},
        {"nats.nkey.seed": other},
        "nats.nkey.seed",
    )


def jwt(signer: str, claims: dict[str, Any]) -> str:
    """Return a JWT of NATS, signed by the nkey of a seed."""

    def encoded(what: Any) -> str:
        data = what if isinstance(what, bytes) else json.dumps(what).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    pair = nkeys.from_seed(bytearray(signer.encode()))
    claims = {"jti": "1", "iat": 1_700_000_000, "iss": pair.public_key.decode(), **claims}
    text = f"{encoded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{encoded(claims)}"
    return f"{text}.{encoded(pair.sign(text.encode()))}"


def by_credentials(folder: Path) -> Login:
    (operator, operator_key), (account, account_key) = seed_of(nkeys.PREFIX_BYTE_OPERATOR), seed_of(nkeys.PREFIX_BYTE_ACCOUNT)
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
    limits |= {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    of_account = jwt(operator, {"sub": account_key, "name": "a", "nats": {"limits": limits, "type": "account", "version": 2}})
    of_operator = jwt(operator, {"sub": operator_key, "name": "o", "nats": {"type": "operator", "version": 2}})
    _seed, system_key = seed_of(nkeys.PREFIX_BYTE_ACCOUNT)
    system_limits = {**limits, "mem_storage": 0, "disk_storage": 0, "streams": 0, "consumer": 0}
    of_system = jwt(
        operator, {"sub": system_key, "name": "s", "nats": {"limits": system_limits, "type": "account", "version": 2}}
    )

    def file(name: str, signer: str) -> str:
        seed, public = seed_of(nkeys.PREFIX_BYTE_USER)
        own = jwt(
            signer, {"sub": public, "name": "u", "nats": {"subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2}}
        )
        (folder / name).write_text(
            f"-----BEGIN NATS USER JWT-----\n{own}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
        return str(folder / name)

    stranger, _key = seed_of(nkeys.PREFIX_BYTE_ACCOUNT)
    return Login(
        f"operator: {of_operator}\nsystem_account: {system_key}\nresolver: MEMORY\n"
        f"resolver_preload: {{ {account_key}: {of_account}, {system_key}: {of_system} }}",
        {"nats.credentials.file": file("good.creds", account)},
        {"nats.credentials.file": file("bad.creds", stranger)},
        "nats.credentials.file",
    )


@pytest.mark.parametrize("kind", [by_password, by_nothing, by_token, by_nkey, by_credentials])
def test_logins_are_used_and_refused_by_their_key(tmp_path: Path, kind: Callable[[Path], Login]) -> None:
    login = kind(tmp_path)
    with NatsServer(login.settings) as server:
        with closing(opened(server_from({**server.config, **login.good}), "n")) as session:
            assert "error" not in session.request("INFO")
        assert list(validated({**server.config, **login.good})) == ["nats.streams"]
        with pytest.raises(LoginError, match=f"refused the login.*Check {login.key}") as error:
            opened(server_from({**server.config, **login.bad}), "n")
        assert error.value.key == login.key
        errors = validated({**server.config, **login.bad})
        assert list(errors) == [login.key]
        for secret in (SECRET, "wr0ng", *login.good.values(), *login.bad.values()):
            assert secret in ("me",) or secret not in str(errors)


def is_refused(session: Session) -> bool:
    try:
        session.request("INFO")
    except (LoginError, UnreachableError):
        return True
    return False


def test_a_login_that_ends_is_noticed(tmp_path: Path) -> None:
    login = by_password(tmp_path)
    with NatsServer(login.settings) as server:
        with closing(opened(server_from({**server.config, **login.good}), "n")) as session:
            settings = server.folder / "settings"
            settings.write_text(settings.read_text().replace(SECRET, "other"))
            server.send(signal.SIGHUP)  # the server reads its settings
            eventually(lambda: is_refused(session))
        with pytest.raises(LoginError):
            opened(server_from({**server.config, **login.good}), "n")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("nats")


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> Path:
    certificate, key = authority.issue("server")
    own, own_key = authority.issue("client")
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "cert.pem").write_text(certificate)
    (tmp_path / "key.pem").write_text(key)
    (tmp_path / "client.pem").write_text(own_key + own)
    (tmp_path / "other.pem").write_text(Authority("other").pem)
    return tmp_path


def tls(server: NatsServer, files: Path, **more: str) -> dict[str, str]:
    own = {"nats.servers": f"tls://127.0.0.1:{server.port}", "nats.ssl.truststore.location": str(files / "ca.pem")}
    return {**own, **more}


@pytest.mark.parametrize("mutual", [False, True])
def test_tls_is_used_and_its_failures_name_their_keys(files: Path, mutual: bool) -> None:
    block = f'cert_file: "{files}/cert.pem", key_file: "{files}/key.pem"'
    if mutual:
        block += f', ca_file: "{files}/ca.pem", verify: true'
    store = {"nats.ssl.keystore.location": str(files / "client.pem")} if mutual else {}
    with NatsServer(f"tls {{ {block} }}") as server:
        config = tls(server, files, **store)
        with closing(opened(server_from(config), "n")) as session:
            assert "error" not in session.request("INFO")
        assert list(validated(config)) == ["nats.streams"]
        errors = validated({**config, "nats.ssl.truststore.location": str(files / "other.pem")})
        assert list(errors) == ["nats.ssl.truststore.location"]
        wrong_name = {**config, "nats.servers": f"tls://localhost:{server.port}"}
        assert list(validated(wrong_name)) == ["nats.ssl.truststore.location"]
        unchecked = {**wrong_name, "nats.ssl.endpoint.identification.algorithm": ""}
        assert list(validated(unchecked)) == ["nats.streams"]
        missing = validated({**config, "nats.ssl.truststore.location": str(files / "none.pem")})
        assert list(missing) == ["nats.ssl.truststore.location"]
        if mutual:
            assert list(validated(tls(server, files))) == ["nats.ssl.keystore.location"]


def test_tls_that_is_demanded_is_never_left_out() -> None:
    """A server without TLS gets no login: nats-py alone would send it."""
    said: list[bytes] = []
    info = {"server_id": "x", "version": "2.9.0", "auth_required": True, "max_payload": 1000, "headers": True}

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"INFO " + json.dumps(info).encode() + b"\r\n")
            while data := connection.recv(1000):
                said.append(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        config = {"nats.servers": f"tls://127.0.0.1:{listener.getsockname()[1]}", "nats.user": "me", "nats.password": SECRET}
        with pytest.raises(LoginError, match=r"does not speak TLS\. Check nats\.servers"):
            opened(server_from(config), "n")
        thread.join(LIMIT)
    assert said == []


def test_credentials_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for config in ({"nats.nkey.seed": SECRET}, *({"nats.credentials.file": str(tmp_path / each)} for each in ("none", "empty"))):
        [key] = config
        with pytest.raises(ConfigError, match=key):
            opened(server_from(config), "n")
        errors = validated(config)
        assert list(errors) == [key]
        assert SECRET not in str(errors)


def test_a_server_that_is_away_is_waited_for_and_no_error_of_a_config(caplog: pytest.LogCaptureFixture) -> None:
    config = {"nats.servers": "nats://127.0.0.1:9"}
    with pytest.raises(UnreachableError, match=r"NATS at 127\.0\.0\.1:9: Connection refused"):
        opened(server_from(config), "n")
    with caplog.at_level(logging.WARNING):
        assert validated(config) == {}
    assert "NATS at 127.0.0.1:9" in caplog.text


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"INFO {\r\n", b"INFO {}\r\n"])
def test_what_is_no_nats_server_is_unreachable(answer: bytes) -> None:
    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        with pytest.raises(UnreachableError, match=r"NATS at 127\.0\.0\.1"):
            opened(server_from({"nats.servers": f"nats://127.0.0.1:{listener.getsockname()[1]}", "nats.timeout.ms": "2000"}), "n")
        thread.join(LIMIT)


def test_a_server_without_jetstream_is_told_of() -> None:
    with NatsServer() as server:
        settings = server.folder / "settings"
        server._process.stop()
        settings.write_text("\n".join(line for line in settings.read_text().split("\n") if "jetstream" not in line))
        server.start()
        with (
            closing(opened(server_from(server.config), "n")) as session,
            pytest.raises(NoJetStreamError, match="has no JetStream"),
        ):
            session.request("INFO")
        assert "has no JetStream" in validated(server.config)["nats.servers"]


def test_what_a_config_names_is_looked_for() -> None:
    with NatsServer() as server:
        assert "stream not found: S" in validated(server.config)["nats.streams"]
        server.create("S")
        assert validated(server.config) == {}
        found = NatsSinkConnector.validate({**server.config, "nats.subject": "S.${key}"})
        assert not any(each.errors for each in found.values())


def test_a_right_that_is_missing_fails_and_names_the_login() -> None:
    settings = (
        f'authorization {{ users = [ {{ user: me, password: "{SECRET}", permissions {{ publish: "a", subscribe: ">" }} }} ] }}'
    )
    with NatsServer(settings) as server:
        config = {**server.config, "nats.user": "me", "nats.password": SECRET}
        why = "does not allow this user what the connector needs: permissions violation"
        with closing(opened(server_from(config), "n")) as session, pytest.raises(LoginError, match=why):
            session.request("INFO")
        assert list(validated(config)) == ["nats.password"]


def test_an_inbox_prefix_is_used() -> None:
    rights = 'permissions { publish: ">", subscribe: "_MINE.>" }'
    with NatsServer(f'authorization {{ users = [ {{ user: me, password: "{SECRET}", {rights} }} ] }}') as server:
        config = {**server.config, "nats.user": "me", "nats.password": SECRET}
        assert list(validated(config)) == ["nats.password"]
        assert list(validated({**config, "nats.inbox.prefix": "_MINE"})) == ["nats.streams"]


def test_a_domain_is_used() -> None:
    with NatsServer() as server:
        settings = server.folder / "settings"
        server._process.stop()
        settings.write_text(settings.read_text().replace("jetstream { ", "jetstream { domain: hub, "))
        server.start()
        assert "stream not found" in validated({**server.config, "nats.jetstream.domain": "hub"})["nats.streams"]
        assert "check nats.jetstream.domain" in validated({**server.config, "nats.jetstream.domain": "other"})["nats.servers"]


def test_a_session_leaves_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    before = threading.active_count()
    with NatsServer() as server:
        for _ in range(3):
            with closing(Session(server_from(server.config), server.url, "n")) as session:
                session.request("INFO")
            with pytest.raises(ConnectError):
                opened(server_from({**server.config, "nats.servers": f"tls://127.0.0.1:{server.port}"}), "n")
    assert threading.active_count() == before
    assert "Task was destroyed" not in caplog.text
