from __future__ import annotations

import re
import sys
from collections.abc import Mapping

import pytest

from sluiceway.converters.registry import serdes
from sluiceway.converters.registry.avro import AvroConverter
from sluiceway.converters.registry.client import RegistryClient
from sluiceway.converters.registry.config import COMMON, RegistryOptions
from sluiceway.data import STRING_SCHEMA
from sluiceway.data.schema_names import scrub, split_name
from sluiceway.discovery import converter_class
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.installation import install_command

URL = {"schema.registry.url": "http://a:8081"}


def options(given: Mapping[str, str] | None = None, *, is_key: bool = False) -> RegistryOptions:
    return RegistryOptions.of(COMMON.parse({**URL, **(given or {})}), is_key=is_key)


def test_defaults_are_confluents() -> None:
    made = options()
    assert (made.strategy, made.auto_register, made.use_latest, made.use_id, made.normalize) == (
        "TopicNameStrategy",
        True,
        False,
        None,
        False,
    )
    assert made.client["url"] == "http://a:8081"
    assert not made.foreign_schema


def test_the_connections_end_also_with_a_client_of_older_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """confluent-kafka's client has close() since 2.16 only; as a context manager it ends its connections in all versions."""
    ended: list[bool] = []

    class Client:
        def __exit__(self, *reason: object) -> None:
            ended.append(True)

    monkeypatch.setattr(serdes, "registry_client", lambda _options: Client())
    RegistryClient(options(), "AVRO", is_key=False).close()
    assert ended == [True]


def test_auto_registration_takes_precedence_over_use_latest_version_and_use_schema_id() -> None:
    assert not options({"use.latest.version": "true", "use.schema.id": "3"}).foreign_schema
    latest = options({"auto.register.schemas": "false", "use.latest.version": "true"})
    assert (latest.use_latest, latest.use_id) == (True, None)
    by_id = options({"auto.register.schemas": "false", "use.latest.version": "true", "use.schema.id": "3"})
    assert (by_id.use_latest, by_id.use_id) == (False, 3)


@pytest.mark.parametrize("prefix", ["", "io.confluent.kafka.serializers.subject."])
def test_strategies_have_short_names_and_java_class_names(prefix: str) -> None:
    given = {"key.subject.name.strategy": f"{prefix}RecordNameStrategy", "value.subject.name.strategy": "TopicRecordNameStrategy"}
    assert options(given, is_key=True).strategy == "RecordNameStrategy"
    assert options(given, is_key=False).strategy == "TopicRecordNameStrategy"
    with pytest.raises(ConfigError, match="Class must be one of"):
        options({"value.subject.name.strategy": "com.example.Mine"})


@pytest.mark.parametrize("name", ["basic.auth.user.info", "schema.registry.basic.auth.user.info"])
def test_credentials_come_from_the_configured_source(name: str) -> None:
    made = options(
        {
            "schema.registry.url": "http://x:old@a:1,http://y:old@b:2",
            "basic.auth.credentials.source": "USER_INFO",
            name: "me:it",
        }
    )
    assert made.client["basic.auth.user.info"] == "me:it"
    assert made.client["url"] == "http://a:1,http://b:2"
    assert "me:it" not in repr(made)


@pytest.mark.parametrize(
    "given",
    [
        {"schema.registry.url": "ftp://me:secret@a"},
        {"schema.registry.url": "me:secret@a"},
        {"schema.registry.url": " "},
        {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "secret"},
        {"basic.auth.credentials.source": "USER_INFO"},
        {"basic.auth.credentials.source": "SASL_INHERIT"},
        {"bearer.auth.credentials.source": "OAUTHBEARER", "bearer.auth.token": "secret"},
        {"bearer.auth.credentials.source": "STATIC_TOKEN"},
        {"schema.registry.ssl.truststore.location": "/x.jks", "schema.registry.ssl.truststore.type": "JKS"},
    ],
)
def test_invalid_options_are_refused_without_showing_a_secret(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        options(given)
    assert "secret" not in str(caught.value)


def test_tls_proxy_and_token_reach_the_client() -> None:
    made = options(
        {
            "schema.registry.ssl.truststore.location": "/ca.pem",
            "schema.registry.ssl.keystore.location": "/me.pem",
            "schema.registry.ssl.key.password": "pw",
            "proxy.host": "p",
            "proxy.port": "3128",
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": "tok",
            "bearer.auth.logical.cluster": "lc",
        }
    ).client
    assert (made["ssl.ca.location"], made["ssl.certificate.location"], made["ssl.key.password"], made["proxy"]) == (
        "/ca.pem",
        "/me.pem",
        "pw",
        "http://p:3128",
    )
    provider = made["bearer.auth.custom.provider.function"]
    assert callable(provider)
    assert provider({}) == {"bearer.auth.token": "tok", "bearer.auth.logical.cluster": "lc"}


def test_converters_are_found_by_their_java_names() -> None:
    for package, name in (("avro", "Avro"), ("json", "JsonSchema"), ("protobuf", "Protobuf")):
        found = converter_class(f"io.confluent.connect.{package}.{name}Converter")
        assert found is converter_class(name)
        assert found.__name__ == f"{name}Converter"


def test_a_missing_url_and_use_before_configure_are_reported() -> None:
    with pytest.raises(ConfigError, match=r"schema\.registry\.url"):
        AvroConverter().configure({}, is_key=False)
    with pytest.raises(ConnectError, match="must be configured"):
        AvroConverter().from_connect_data("t", None, 1)


@pytest.mark.parametrize("package", ["fastavro", "authlib", "confluent_kafka.schema_registry"])
def test_a_missing_package_is_reported_with_the_extra_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("fastavro", "authlib")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("confluent_kafka.schema_registry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    converter = AvroConverter()
    converter.configure(URL, is_key=False)  # validation needs no packages
    with pytest.raises(MissingToolError, match=re.escape(install_command("schema-registry"))):
        converter.from_connect_data("t", STRING_SCHEMA, "x")


@pytest.mark.parametrize(
    ("name", "avro", "protobuf"),
    [("a-b c", "a_b_c", "a_b_c"), ("_x", "_x", "x_x"), ("1é", "x1_C3_A9", "x1_C3_A9"), ("ok_1", "ok_1", "ok_1"), ("", "x", "x")],
)
def test_names_are_scrubbed_like_in_java(name: str, avro: str, protobuf: str) -> None:
    assert scrub(name, underscore_may_start=True) == avro
    assert scrub(name, underscore_may_start=False) == protobuf


def test_names_split_at_the_last_dot() -> None:
    assert split_name("a.b.C") == ("a.b", "C")
    assert split_name("C") == (None, "C")
