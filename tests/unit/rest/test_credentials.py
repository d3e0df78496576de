"""Passwords and bearer tokens of the standalone REST server."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from sluiceway.errors import ConfigError
from sluiceway.rest.credentials import Authenticator, jaas_users_file
from unit.rest.servers import FREE_PORT, Start, status_of_connectors

EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


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
    assert status_of_connectors(address, auth=("alice", "secret:x")) == 200
    assert status_of_connectors(address, auth=("bob", "pw")) == 200
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
    assert status_of_connectors(address, headers={} if header is None else {"authorization": header}) == 401


@pytest.mark.parametrize(
    "path", ["/", "/health", "/connectors", "/admin/loggers", "/docs", "/openapi.json", "/nope", "/connectors/a%2Fb"]
)
def test_nothing_is_answered_without_credentials(start: Start, users: Path, path: str) -> None:
    address = start(**{"sluiceway.rest.basic.auth.file": str(users)}).addresses[0]
    for method in ("GET", "PUT", "OPTIONS"):
        assert httpx.request(method, address + path).status_code == 401


def test_admin_listeners_ask_for_credentials_too(start: Start, users: Path) -> None:
    server = start(admin__listeners=FREE_PORT, **{"sluiceway.rest.basic.auth.file": str(users)})
    assert httpx.get(f"{server.admin_addresses[0]}/admin/loggers").status_code == 401


def test_tokens_are_taken_beside_passwords_and_a_changed_file_counts_at_once(start: Start, users: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.properties"
    tokens.write_text("ci=token-1\nnobody=\n")
    address = start(**{"sluiceway.rest.basic.auth.file": str(users), "sluiceway.rest.bearer.token.file": str(tokens)}).addresses[
        0
    ]

    def with_token(token: str) -> int:
        return status_of_connectors(address, headers={"authorization": f"Bearer {token}"})

    assert [with_token("token-1"), with_token("token-2"), with_token("ci"), with_token("nobody")] == [200, 401, 401, 401]
    assert status_of_connectors(address, auth=("bob", "pw")) == 200
    tokens.write_text("ci=token-22\n")
    assert [with_token("token-1"), with_token("token-22")] == [401, 200]
    tokens.unlink()
    assert with_token("token-22") == 500


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"rest.extension.classes": "org.example.Other"}, "Java extensions cannot be loaded"),
        ({"rest.extension.classes": EXTENSION}, "sluiceway.rest.basic.auth.file"),
        ({"rest.extension.classes": EXTENSION, "java.security.auth.login.config": "/nowhere"}, "Cannot read the file"),
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


def test_any_origin_may_be_allowed_and_a_browsers_question_needs_no_credentials(start: Start, users: Path) -> None:
    address = start(access__control__allow__origin="*", **{"sluiceway.rest.basic.auth.file": str(users)}).addresses[0]
    asked = {"origin": "http://any.com", "access-control-request-method": "GET"}
    preflight = httpx.options(f"{address}/connectors", headers=asked)
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, "http://any.com")
    refused = httpx.get(f"{address}/connectors", headers={"origin": "http://any.com"})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "http://any.com")
