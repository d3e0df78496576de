"""Tests of the connection type kafka_connect: parsing and form."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from airflow.providers_manager import ProvidersManager

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.java.jaas import parse_jaas
from sluiceway.kafka.clients import producer_config
from sluiceway.provider.hooks.connection_type import CONN_TYPE, FORM_FIELDS, ConnectConnection


def _parse(host: str | None = None, **extra: object) -> ConnectConnection:
    return ConnectConnection.parse(host, None, None, {key.replace("__", "."): value for key, value in extra.items()})


@pytest.mark.parametrize(
    ("host", "port", "servers"),
    [
        (None, None, ()),
        ("connect", 8083, ("http://connect:8083",)),
        ("https://connect:8443/", None, ("https://connect:8443",)),
        ("http://a:8083, http://b:8083,", None, ("http://a:8083", "http://b:8083")),
    ],
)
def test_the_host_may_contain_several_addresses(host: str | None, port: int | None, servers: tuple[str, ...]) -> None:
    assert ConnectConnection.parse(host, None, None, {}, port=port).servers == servers


def test_the_extra_becomes_worker_properties_without_empty_fields() -> None:
    found = _parse(bootstrap__servers="b:9092", group__id="", topic__creation__enable=True, offset__flush__interval__ms=5000)
    assert found.properties == {
        "bootstrap.servers": "b:9092",
        "topic.creation.enable": "true",
        "offset.flush.interval.ms": "5000",
    }
    assert found.names_brokers


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "PlainLoginModule"), ("SCRAM-SHA-256", "ScramLoginModule"), ("SCRAM-SHA-512", "ScramLoginModule")],
)
def test_user_name_and_password_become_a_jaas_config(mechanism: str, module: str) -> None:
    password = 'a"b\\c; d'
    found = _parse(sasl__mechanism=mechanism, sasl__username="me", sasl__password=password)
    login = parse_jaas(found.properties["sasl.jaas.config"])
    assert (login.simple_name, dict(login.options)) == (module, {"username": "me", "password": password})
    assert not {"sasl.username", "sasl.password"} & set(found.properties)


def test_security_settings_apply_to_all_clients() -> None:
    found = _parse(security__protocol="SASL_SSL", sasl__jaas__config="mine", producer__sasl__jaas__config="its own").properties
    assert [found[f"{client}security.protocol"] for client in ("", "producer.", "consumer.", "admin.")] == ["SASL_SSL"] * 4
    assert [found[f"{client}sasl.jaas.config"] for client in ("", "producer.", "admin.")] == ["mine", "its own", "mine"]


def test_a_kafka_connection_provides_brokers_and_security_settings(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    extra = {
        "bootstrap.servers": "k:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "u",
        "sasl.password": 'hun"ter\\2',
        "ssl.ca.location": str(ca),
        "group.id": "not for us",
    }
    found = ConnectConnection.of_kafka(extra)
    assert found.servers == ()
    config = producer_config(WorkerConfig.of(found.properties), "p")
    assert (config["bootstrap.servers"], config["security.protocol"]) == ("k:1", "SASL_SSL")
    assert "SCRAM-SHA-256" in config.values()
    assert (config["sasl.username"], config["sasl.password"]) == ("u", 'hun"ter\\2')
    assert config["ssl.ca.location"] == str(ca)
    assert "not for us" not in found.properties.values()


def test_a_kafka_connection_requires_bootstrap_servers() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        ConnectConnection.of_kafka({"security.protocol": "PLAINTEXT"})


def test_a_jaas_config_overrides_user_name_and_password() -> None:
    assert _parse(sasl__username="me", sasl__jaas__config="mine").properties["sasl.jaas.config"] == "mine"


def test_a_mechanism_without_password_is_rejected_without_showing_secrets() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.mechanism.*PLAIN") as caught:
        _parse(sasl__mechanism="OAUTHBEARER", sasl__username="me", sasl__password="hidden")
    assert "hidden" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


@pytest.mark.parametrize("key", ["config.providers", "config.providers.file.class", "plugin.path"])
def test_a_connection_cannot_set_keys_that_load_code(key: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot set {key}"):
        ConnectConnection.parse(None, None, None, {key: "x"})


def test_a_reference_is_rejected_because_it_could_read_files_of_the_api_server() -> None:
    with pytest.raises(ConfigError, match=r"not references.*bootstrap\.servers"):
        _parse(bootstrap__servers="${file:/etc/shadow:root}")


def test_neither_passwords_nor_tokens_are_in_the_repr() -> None:
    found = ConnectConnection.parse(
        "h",
        "me",
        "hidden1",
        {
            "rest.token": "hidden2",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "me",
            "sasl.password": "hidden3",
        },
    )
    assert found.login == ("me", "hidden1")
    assert found.token == "hidden2"
    assert "hidden" not in repr(found)


@pytest.mark.skipif(
    not hasattr(ProvidersManager, "iter_connection_type_hook_ui_metadata"),
    reason="before 3.3, Airflow does not read forms from a provider's metadata",
)
def test_airflows_form_has_every_field_and_hides_secrets() -> None:
    manager = ProvidersManager()
    [meta] = [each for each in manager.iter_connection_type_hook_ui_metadata() if each.connection_type == CONN_TYPE]
    assert meta.hook_name == "Kafka Connect"
    assert meta.field_behaviour is not None
    assert meta.field_behaviour["hidden_fields"] == ["schema", "port"]
    prefix = f"extra__{CONN_TYPE}__"
    widgets = {
        key.removeprefix(prefix): widget
        for key, widget in manager._connection_form_widgets_from_metadata.items()
        if key.startswith(prefix)
    }
    assert set(widgets) == set(FORM_FIELDS)
    assert {key for key, widget in widgets.items() if widget.is_sensitive} == {"sasl.password", "rest.token"}
