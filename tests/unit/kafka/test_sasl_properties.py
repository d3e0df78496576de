"""``sasl.*`` properties and the JAAS line as librdkafka's settings."""

from __future__ import annotations

import pytest

from sluiceway.errors import ConfigError
from sluiceway.java.jaas import parse_jaas
from sluiceway.kafka.client_properties import to_librdkafka

PACKAGE = "org.apache.kafka.common.security"
PLAIN = f"{PACKAGE}.plain.PlainLoginModule"
SCRAM = f"{PACKAGE}.scram.ScramLoginModule"
OAUTH = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"


def mapped(mechanism: str, jaas: str | None, **more: str) -> dict[str, str]:
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, **more}
    found = to_librdkafka(properties if jaas is None else {**properties, "sasl.jaas.config": jaas})
    return {key: value for key, value in found.items() if key not in ("security.protocol", "sasl.mechanism")}


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (f'{PLAIN} required username="u" password="p";', {"username": "u", "password": "p"}),
        (f"{PLAIN} REQUIRED username='u' password='p' ; ", {"username": "u", "password": "p"}),
        (f"{PLAIN}\n  required\n  username=u\n  password = p-1_$;", {"username": "u", "password": "p-1_$"}),
        (f'{PLAIN} required a="x;y" b="=" c=";" d="";', {"a": "x;y", "b": "=", "c": ";", "d": ""}),
        (f"""{PLAIN} required a="it's" b='say "x"' ;""", {"a": "it's", "b": 'say "x"'}),
        (
            f'{PLAIN} required a="q\\"q" b="b\\\\s" c="t\\tn\\n" d="\\101\\x" ;',
            {"a": 'q"q', "b": "b\\s", "c": "t\tn\n", "d": "Ax"},
        ),
        (f'{PLAIN} /* a="1" */ required // b="2"\n c="// no" ;', {"c": "// no"}),
        (f'{PLAIN} required a="1" a="2" é="ü";', {"a": "2", "é": "ü"}),
        (f"{PLAIN} optional;", {}),
    ],
)
def test_a_jaas_line_is_parsed_as_java_does(line: str, options: dict[str, str]) -> None:
    module = parse_jaas(line)
    assert (module.name, dict(module.options)) == (PLAIN, options)
    assert module.simple_name == "PlainLoginModule"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "must be followed by"),
        (";", "must be followed by"),
        (f"{PLAIN};", "must be followed by"),
        (f'{PLAIN} username="hunter2";', "must be followed by"),
        (f'{PLAIN} required username="u" password="hunter2"', "semicolon"),
        (f'{PLAIN} required password="hunter2;', "quote at character"),
        (f'{PLAIN} required password="hunter\n2";', "quote at character"),
        (f'{PLAIN} required password "hunter2";', "option 1 is not"),
        (f'{PLAIN} required u="a" password= ;', "option 2 is not"),
        (f'{PLAIN} required password="=" = ;', "option 2 is not"),
        (f'{PLAIN} required password="hunter2"; {SCRAM} required;', "several login modules"),
    ],
)
def test_an_invalid_jaas_line_is_refused_without_showing_it(line: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse_jaas(line)
    assert "hunter2" not in str(caught.value)


def test_a_login_module_does_not_show_its_options() -> None:
    assert "hunter2" not in repr(parse_jaas(f'{PLAIN} required password="hunter2";'))


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("scram-sha-512", SCRAM)])
def test_user_and_password_are_read_from_the_jaas_line(mechanism: str, module: str) -> None:
    found = mapped(mechanism, f'{module} required username="al\\"ice" password="p;=w";')
    assert found == {"sasl.username": 'al"ice', "sasl.password": "p;=w"}


def test_a_jaas_line_without_a_user_or_with_a_delegation_token_is_refused() -> None:
    with pytest.raises(ConfigError, match="lacks username for PlainLoginModule") as caught:
        mapped("PLAIN", f'{PLAIN} required password="hunter2";')
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="Delegation tokens"):
        mapped("SCRAM-SHA-256", f'{SCRAM} required username="u" password="p" tokenauth="true";')


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"AWS_MSK_IAM for configuration sasl\.mechanism.*one of PLAIN"):
        mapped("AWS_MSK_IAM", "software.amazon.msk.auth.iam.IAMLoginModule required;")


def test_oauth_with_a_token_endpoint_is_oidc() -> None:
    line = f'{OAUTH} required clientId="me" clientSecret="s" scope="kafka" extension_logicalCluster="lkc-1";'
    url = "https://idp/token"
    handler = f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
    more = {"sasl.oauthbearer.token.endpoint.url": url, "sasl.login.callback.handler.class": handler}
    expected = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
    }
    assert mapped("OAUTHBEARER", line, **more) == expected


def test_oauth_reads_the_client_id_from_kafka_4_keys_too() -> None:
    found = mapped(
        "OAUTHBEARER",
        f"{OAUTH} required;",
        **{
            "sasl.oauthbearer.token.endpoint.url": "https://idp",
            "sasl.oauthbearer.scope": "k",
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": "s",
        },
    )
    assert [found[f"sasl.oauthbearer.{key}"] for key in ("client.id", "client.secret", "scope")] == ["me", "s", "k"]


def test_oauth_without_an_endpoint_uses_the_unsecured_token_of_the_jaas_line() -> None:
    found = mapped("OAUTHBEARER", f'{OAUTH} required unsecuredLoginStringClaim_sub="alice";')
    assert found == {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=alice"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.login.callback.handler.class", "com.example.Mine"),
        ("sasl.oauthbearer.jwt.retriever.class", "org.apache.kafka.common.security.oauthbearer.FileJwtRetriever"),
        ("sasl.oauthbearer.token.endpoint.url", "file:///token"),
    ],
)
def test_oauth_that_needs_java_is_refused(key: str, value: str) -> None:
    more = {"sasl.oauthbearer.token.endpoint.url": "https://idp", key: value}
    with pytest.raises(ConfigError, match=f"for configuration {key}"):
        mapped("OAUTHBEARER", f"{OAUTH} required;", **more)


def test_oauth_by_a_signed_assertion() -> None:
    found = mapped(
        "OAUTHBEARER",
        None,
        **{
            "sasl.oauthbearer.token.endpoint.url": "https://idp",
            "sasl.oauthbearer.assertion.algorithm": "RS256",
            "sasl.oauthbearer.assertion.template.file": "/t",
            "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.oauthbearer.JwtBearerJwtRetriever",
        },
    )
    assert found["sasl.oauthbearer.grant.type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert (found["sasl.oauthbearer.assertion.algorithm"], found["sasl.oauthbearer.assertion.jwt.template.file"]) == (
        "RS256",
        "/t",
    )


def test_kerberos_settings_are_read_from_the_jaas_line() -> None:
    line = (
        'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="me@R" serviceName="kafka";'
    )
    assert mapped("GSSAPI", line) == {
        "sasl.kerberos.keytab": "/k",
        "sasl.kerberos.principal": "me@R",
        "sasl.kerberos.service.name": "kafka",
    }
