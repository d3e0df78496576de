"""The connection type ``kafka_connect``: its form, and what a stored connection says. Pure; the form is read by the API server.

The REST API's address and login stand in the connection's own fields. What stands in its extra is a worker's properties, under
Kafka Connect's names, whether the form has a field for it or not; ``sasl.username`` and ``sasl.password`` become the
``sasl.jaas.config`` that Kafka wants. Keys that start with ``rest.`` are about the REST API. A connection of Airflow's own type
``kafka`` holds librdkafka's properties instead; of those count where the brokers are and how to log in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.config.parsing import parse_list
from sluiceway.config.variables import referring_keys
from sluiceway.errors import ConfigError

CONN_TYPE = "kafka_connect"
KAFKA_CONN_TYPE = "kafka"
DEFAULT_CONN_ID = "kafka_connect_default"
HOOK_NAME = "Kafka Connect"

_REST = "rest."
_TOKEN, _CA = "rest.token", "rest.ca"
_USERNAME, _PASSWORD, _MECHANISM, _JAAS = "sasl.username", "sasl.password", "sasl.mechanism", "sasl.jaas.config"
_BOOTSTRAP = "bootstrap.servers"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

# Connect's own clients take the plain keys; those that move records, and admin clients, prefer a worker file's prefixed ones.
_SECURITY = ("security.", "sasl.", "ssl.")
_CLIENTS = ("producer.", "consumer.", "admin.")

# They decide which code runs and which files are read where the connection is used; that is the worker file's owner's affair.
_NOT_HERE = ("config.providers", "plugin.path")


def _text(label: str, description: str = "", **schema: Any) -> dict[str, Any]:
    shown = {"description": description} if description else {}
    return {"label": label, **shown, "schema": {"type": ["string", "null"], **schema}}


FORM_FIELDS: dict[str, dict[str, Any]] = {
    _BOOTSTRAP: _text("Bootstrap servers", "Brokers as host:port, separated by commas. Empty: as the worker file says."),
    "group.id": _text("Connect cluster (group.id)", "connect-cluster if neither this nor the worker file says."),
    "config.storage.topic": _text("Config topic", "connect-configs if neither this nor the worker file says."),
    "offset.storage.topic": _text("Offset topic", "connect-offsets if neither this nor the worker file says."),
    "status.storage.topic": _text("Status topic", "connect-status if neither this nor the worker file says."),
    "security.protocol": _text("Security protocol", enum=["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
    _MECHANISM: _text("SASL mechanism", enum=list(_LOGIN_MODULES)),
    _USERNAME: _text("SASL user name"),
    _PASSWORD: _text("SASL password", format="password"),
    "ssl.truststore.location": _text("Trust store", "Path of the authorities' certificates, on every machine that uses this."),
    "ssl.truststore.type": _text("Trust store's type", enum=["PEM", "JKS", "PKCS12"]),
    _TOKEN: _text("REST API token", "Sent as a bearer token, in place of user name and password.", format="password"),
    _CA: _text("REST API authorities", "Path of a PEM file, for an https address that the system does not trust."),
}
"""The form's own fields, as ``conn-fields`` of Airflow's provider info: extra key to label, description and JSON schema."""

FIELD_BEHAVIOUR: dict[str, Any] = {
    "hidden-fields": ["schema", "port"],
    "relabeling": {"host": "REST API", "login": "REST API user name", "password": "REST API password"},
    "placeholders": {
        "host": "http://connect:8083, or several of one cluster separated by commas",
        _BOOTSTRAP: "broker1:9092,broker2:9092",
    },
}
"""What becomes of the form's standard fields, as ``ui-field-behaviour`` of Airflow's provider info."""


@dataclass(frozen=True, slots=True)
class ConnectConnection:
    """What a stored connection says of a Connect cluster: how its REST API and its Kafka cluster are reached.

    ``servers``, ``login``, ``token`` and ``ca`` are the REST API's; ``properties`` a worker's, over those of a worker file.
    """

    servers: tuple[str, ...] = ()
    login: tuple[str, str] | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(
        cls, host: str | None, login: str | None, password: str | None, extra: Mapping[str, object], *, port: int | None = None
    ) -> ConnectConnection:
        """Return what the fields of an Airflow connection say; raises ConfigError, which names keys and shows no value."""
        texts = {key: _plain(value) for key, value in extra.items() if value not in (None, "")}
        return cls(
            servers=_servers(host, port),
            login=(login, password or "") if login else None,
            token=texts.get(_TOKEN),
            ca=texts.get(_CA),
            properties=_worker_properties({key: value for key, value in texts.items() if not key.startswith(_REST)}),
        )

    @classmethod
    def of_kafka(cls, extra: Mapping[str, object]) -> ConnectConnection:
        """Return what the extra of a connection of type ``kafka`` says; raises ConfigError, without any value."""
        texts = {key: _plain(value) for key, value in extra.items() if key.startswith((_BOOTSTRAP, *_SECURITY))}
        if not texts.get(_BOOTSTRAP):
            raise ConfigError(f"A {KAFKA_CONN_TYPE} connection says in its extra where Kafka is: {_BOOTSTRAP} is missing there.")
        if "sasl.mechanisms" in texts:
            texts.setdefault(_MECHANISM, texts.pop("sasl.mechanisms"))
        return cls(properties=_worker_properties(texts))

    @property
    def names_brokers(self) -> bool:
        return _BOOTSTRAP in self.properties


def _servers(host: str | None, port: int | None) -> tuple[str, ...]:
    servers = [each.rstrip("/") for each in parse_list(host)]
    if port is not None and len(servers) == 1:
        servers = [f"{servers[0]}:{port}"]
    return tuple(each if "://" in each else f"http://{each}" for each in servers)


def _worker_properties(texts: Mapping[str, str]) -> dict[str, str]:
    for key in texts:
        if key.startswith(_NOT_HERE):
            raise ConfigError(f"A connection cannot set {key}; it belongs into the worker's properties file.")
    if refers := referring_keys(texts):
        raise ConfigError(
            f"A connection holds values, not references like ${{file:...}} ({', '.join(sorted(refers))}): Airflow's secrets "
            "backends can keep the whole connection."
        )
    properties = {key: value for key, value in texts.items() if key not in (_USERNAME, _PASSWORD)}
    if _USERNAME in texts and _JAAS not in texts:
        properties[_JAAS] = _jaas(texts)
    security = {key: value for key, value in properties.items() if key.startswith(_SECURITY)}
    return {prefix + key: value for prefix in _CLIENTS for key, value in security.items()} | properties


def _jaas(texts: Mapping[str, str]) -> str:
    mechanism = texts.get(_MECHANISM, "")
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        known = ", ".join(_LOGIN_MODULES)
        raise ConfigError(_MECHANISM, mechanism, f"{_USERNAME} goes with one of {known}; for others put {_JAAS} into the extra")
    return f"{module} required username={_quoted(texts[_USERNAME])} password={_quoted(texts.get(_PASSWORD, ''))};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
