"""Secrets in configs are hidden, references to secrets are not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.config.masking import literal_secrets, masked, shown

REFERENCE = "${file:/f:password}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("hunter2", "[hidden]"),
        (REFERENCE, REFERENCE),
        (REFERENCE * 2, REFERENCE * 2),
        (f"{REFERENCE}hunter2", "[hidden]"),
        (f"hunter2{REFERENCE}", "[hidden]"),
        (f"{REFERENCE}\n", "[hidden]"),
    ],
)
def test_a_secret_is_shown_if_it_is_references_only(value: str, expected: str) -> None:
    assert shown("db.password", value) == expected
    assert masked({"other": value}, passwords=["other"]) == {"other": expected}


NAMES = """
    db.password Password ssl.key.password connection.passwd a.pwd spark.hadoop.x.pwd userPwd a.pass pass ftp.pass.word
    db.pw client.secret aws.secret.access.key aws.access.key.id fs.s3a.access.key azblob.account.key account_key
    spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net sas.token fs.azure.sas azure.sas.container
    http.basic.auth basic.auth.user.info value.converter.basic.auth.user.info schema.registry.basic-auth
    sasl.jaas.config producer.override.sasl.jaas.config ssl.keystore.key http.headers.authorization api.key apikey
    x-api-key private_key github.token webhook.signature session.cookie encryption.key iceberg.catalog.credential
"""
OTHERS = """
    topics tasks.max connection.url password.file token.endpoint.url sasl.oauthbearer.token.endpoint.url compass
    bypass.ssl value.converter.basic.auth.credentials.source fs.s3a.aws.credentials.provider passenger.list
    table.name.format ssl.truststore.location key.converter secret.name pk.fields primary.keys message.key.columns
    basic.authors
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_names_of_secrets(name: str) -> None:
    assert shown(name, "hunter2") == "[hidden]"
    assert shown(name, REFERENCE) == REFERENCE


@pytest.mark.parametrize("name", OTHERS.split())
def test_names_of_no_secrets(name: str) -> None:
    assert shown(name, "hunter2") == "hunter2"


# A password stands where P does, and references are kept there.
VALUES = [
    "jdbc:postgresql://me:P@host:5432/db",
    "jdbc:postgresql://host:5432/db?user=me&password=P&ssl=true",
    "jdbc:postgresql://host/db?password=P",
    "jdbc:mysql://host/db?user=me&sslPassword=P",
    "jdbc:sqlserver://host;databaseName=d;user=me;password=P;encrypt=true",
    "jdbc:sqlserver://host;password={P};encrypt=true",
    "jdbc:oracle:thin:scott/P@//host:1521/service",
    "jdbc:oracle:oci:scott/P@host",
    "mongodb+srv://me:P@one,two/db?authSource=admin",
    "redis://:P@host",
    "amqp://me:P@host/%2f",
    "host=db user=me password=P dbname=shop",
    "host=db password='P' dbname=shop",
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="P";',
    "Endpoint=sb://bus.example.net/;SharedAccessKeyName=root;SharedAccessKey=P;EntityPath=e",
    "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=P;EndpointSuffix=core.windows.net",
    "https://shop.blob.core.windows.net/files?sv=2024&sig=P&se=2027",
    "https://api.example.com/v1?api_key=P",
    '{"user": "me", "password": "P", "port": 1}',
    "{'token':'P'}",
    "Authorization: Bearer P",
    "Accept: */*\nX-Api-Key: P\nHost: h",
    "a,b://me:P@one:1,b://me:P@two:2",
]
TWO_PARTS = ("Authorization: Bearer P", "a,b://me:P@one:1,b://me:P@two:2")  # hidden as a whole
PASSWORDS = ("hunter2", "hun,ter2", "hun+ter2==", "hun%40ter2", "hun:ter2")


@pytest.mark.parametrize("value", VALUES)
def test_a_password_in_a_value_is_hidden_and_a_reference_is_not(value: str) -> None:
    for password in PASSWORDS:
        literal = _with(value, password)
        text = shown("x.url", literal)
        assert "hun" not in text
        assert "[hidden]" in text
        assert all(secret not in text for secret in literal_secrets({"x.url": literal}))
    if value not in TWO_PARTS:
        assert shown("x.url", _with(value, REFERENCE)) == _with(value, REFERENCE)
        assert literal_secrets({"x.url": _with(value, REFERENCE)}) == set()


def _with(value: str, password: str) -> str:
    return re.sub(r"(?<![A-Za-z])P(?![A-Za-z])", lambda _: password, value)


@pytest.mark.parametrize("password", ["a/b", "a@b", "a/b@c", "a@b/c:d", "p?q", "p#q", "//", "@"])
@pytest.mark.parametrize("url", ["jdbc:mysql://me:{}@host/db", "jdbc:oracle:thin:me/{}@host:1:x", "mongodb://me:{}@one,two"])
def test_slashes_and_at_signs_in_a_password_end_nothing(url: str, password: str) -> None:
    before, _, after = url.partition("{}")
    assert shown("u", url.format(password)) == before.replace("me:", "").replace("me/", "") + "[hidden]" + after


@pytest.mark.parametrize(
    "value", ["", "http://host:8083/a", "jdbc:postgresql://host:5432/db?user=me", "jdbc:oracle:thin:@//h:1/s", "a@b", "me@host:x"]
)
def test_other_values_stay(value: str) -> None:
    assert shown("x.url", value) == value


def test_declared_types_come_before_names_and_a_private_key_is_hidden_by_its_text() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"
    config = {"my.url": "x", "other": "x", "pem": key}
    assert masked(config, {"my.url"}) == {"my.url": "[hidden]", "other": "x", "pem": "[hidden]"}
    assert literal_secrets(config, {"my.url"}) == {"x", key}


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_masked_and_what_is_hidden_is_not_in_it(key: str, value: str) -> None:
    text = shown(key, value)
    assert text == value or "[hidden]" in text
    assert bool(literal_secrets({key: value})) == (text != value)


@pytest.mark.parametrize(
    "part",
    ["://:", "://:@", "password=", "${", '"password":', "jdbc:oracle:a:", "passw", 'x="', 'password="', "{", "@", "pwd=a@b;"],
)
def test_a_value_of_a_megabyte_takes_no_quadratic_time(part: str) -> None:
    """A quadratic search would take minutes, and so the suite's limit."""
    assert shown("k", part * (1_000_000 // len(part))) is not None
