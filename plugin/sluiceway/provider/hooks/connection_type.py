"""Defines the connection type ``kafka_connect``: its form in Airflow's UI, and the parsing of a stored connection. No I/O.

The connection's own fields hold the REST API's address and login. Its extra holds worker properties under Kafka Connect's names,
also those without a field in the form. ``sasl.username`` and ``sasl.password`` become ``sasl.jaas.config``. Keys that start with
``rest.`` configure the REST client.

A connection of the type ``kafka`` (Airflow's Kafka provider) holds librdkafka's properties. Only its bootstrap servers and
security settings are used.
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

# Clients of the internal topics read the plain keys; producers, consumers and admin clients of tasks prefer prefixed ones.
_SECURITY = ("security.", "sasl.", "ssl.")
_CLIENTS = ("producer.", "consumer.", "admin.")

# These keys load code and read files, so only the owner of the worker's file may set them, not every editor of connections.
_WORKER_FILE_ONLY = ("config.providers", "plugin.path")


def _text(label: str, description: str = "", **schema: Any) -> dict[str, Any]:
    shown = {"description": description} if description else {}
    return {"label": label, **shown, "schema": {"type": ["string", "null"], **schema}}


FORM_FIELDS: dict[str, dict[str, Any]] = {
    _BOOTSTRAP: _text("Bootstrap servers", "Brokers as host:port, separated by commas. Default: the worker file's."),
    "group.id": _text("Connect cluster (group.id)", "Default: the worker file's, else connect-cluster."),
    "config.storage.topic": _text("Config topic", "Default: the worker file's, else connect-configs."),
    "offset.storage.topic": _text("Offset topic", "Default: the worker file's, else connect-offsets."),
    "status.storage.topic": _text("Status topic", "Default: the worker file's, else connect-status."),
    "security.protocol": _text("Security protocol", enum=["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
    _MECHANISM: _text("SASL mechanism", enum=list(_LOGIN_MODULES)),
    _USERNAME: _text("SASL user name"),
    _PASSWORD: _text("SASL password", format="password"),
    "ssl.truststore.location": _text("Trust store", "Path of the CA certificates, on every machine that uses this connection."),
    "ssl.truststore.type": _text("Trust store type", enum=["PEM", "JKS", "PKCS12"]),
    _TOKEN: _text("REST API token", "Bearer token, sent instead of user name and password.", format="password"),
    _CA: _text("REST API CA certificates", "Path of a PEM file, for an https address that the system does not trust."),
}
"""The form's additional fields (``conn-fields`` of provider info): label, description and JSON schema by extra key."""

FIELD_BEHAVIOUR: dict[str, Any] = {
    "hidden-fields": ["schema", "port"],
    "relabeling": {"host": "REST API", "login": "REST API user name", "password": "REST API password"},
    "placeholders": {
        "host": "http://connect:8083, or several of one cluster separated by commas",
        _BOOTSTRAP: "broker1:9092,broker2:9092",
    },
}
"""The form's standard fields (``ui-field-behaviour`` of provider info): hidden, renamed, with placeholders."""


@dataclass(frozen=True, slots=True)
class ConnectConnection:
    """A parsed Airflow connection: the addresses and credentials of a Connect cluster's REST API and of its Kafka cluster."""

    servers: tuple[str, ...] = ()
    """URLs of the REST API."""
    login: tuple[str, str] | None = field(default=None, repr=False)
    """User name and password for the REST API."""
    token: str | None = field(default=None, repr=False)
    """Bearer token for the REST API."""
    ca: str | None = None
    """Path of the CA certificates for the REST API."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Worker properties, which override those of a worker's file."""

    @classmethod
    def parse(
        cls, host: str | None, login: str | None, password: str | None, extra: Mapping[str, object], *, port: int | None = None
    ) -> ConnectConnection:
        """Parse the fields of a ``kafka_connect`` connection; raises ConfigError, which names keys but no values."""
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
        """Parse the extra of a ``kafka`` connection; raises ConfigError, which names keys but no values."""
        texts = {key: _plain(value) for key, value in extra.items() if key.startswith((_BOOTSTRAP, *_SECURITY))}
        if not texts.get(_BOOTSTRAP):
            raise ConfigError(
                f"{_BOOTSTRAP} is missing in the extra of the {KAFKA_CONN_TYPE} connection; add a broker's host:port."
            )
        if "sasl.mechanisms" in texts:
            texts.setdefault(_MECHANISM, texts.pop("sasl.mechanisms"))
        return cls(properties=_worker_properties(texts))

    @property
    def names_brokers(self) -> bool:
        """Return whether the connection sets ``bootstrap.servers``."""
        return _BOOTSTRAP in self.properties


def _servers(host: str | None, port: int | None) -> tuple[str, ...]:
    servers = [each.rstrip("/") for each in parse_list(host)]
    if port is not None and len(servers) == 1:
        servers = [f"{servers[0]}:{port}"]
    return tuple(each if "://" in each else f"http://{each}" for each in servers)


def _worker_properties(texts: Mapping[str, str]) -> dict[str, str]:
    for key in texts:
        if key.startswith(_WORKER_FILE_ONLY):
            raise ConfigError(f"An Airflow connection cannot set {key}; set it in the worker's properties file.")
    if refers := referring_keys(texts):
        raise ConfigError(
            f"An Airflow connection must hold values, not references like ${{file:...}} ({', '.join(sorted(refers))}). To keep "
            "secrets elsewhere, store the whole connection in an Airflow secrets backend."
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
        raise ConfigError(_MECHANISM, mechanism, f"{_USERNAME} requires one of {known}; for others set {_JAAS} in the extra")
    return f"{module} required username={_quoted(texts[_USERNAME])} password={_quoted(texts.get(_PASSWORD, ''))};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
