"""An Airflow connection to Kafka as worker properties. Runs where Airflow answers: in its tasks and in the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.errors import ConfigError

KINDS = ("kafka", "kafka_connect")

_BOOTSTRAP = "bootstrap.servers"
_PROTOCOL = "security.protocol"
_MECHANISM = "sasl.mechanism"
_LOGIN = "org.apache.kafka.common.security.{}LoginModule"
_SECURITY = ("security.", "sasl.", "ssl.")
# Connect's own clients take the plain keys, those that move records the prefixed ones.
_CLIENTS = ("", "producer.", "consumer.", "admin.")


def worker_overrides(conn_id: str) -> dict[str, str]:
    """Return what an Airflow connection of type ``kafka`` or ``kafka_connect`` changes in the worker's properties.

    Its login and password are masked in the task's log. Raises ConfigError, which holds no secret.
    """
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError
    from airflow.sdk.log import mask_secret

    try:
        connection = Connection.get(conn_id)
        extra = connection.extra_dejson
    except (AirflowException, AirflowRuntimeError, ValueError):  # not its text: some backends quote what they read
        raise ConfigError(f"Airflow has no connection {conn_id!r} that can be read, which kafka_conn_id names.") from None
    if connection.conn_type not in KINDS:
        raise ConfigError(
            f"The Airflow connection {conn_id!r} is of type {connection.conn_type!r}; needed: {' or '.join(KINDS)}."
        )
    for secret in (connection.password, *(value for key, value in extra.items() if "password" in key)):
        if secret:
            mask_secret(secret)
    return overrides_of(conn_id, connection.host, connection.port, connection.login, connection.password, extra)


def overrides_of(
    conn_id: str, host: str | None, port: int | None, login: str | None, password: str | None, extra: Mapping[str, Any]
) -> dict[str, str]:
    """Return the worker properties for a connection's fields; pure.

    ``extra`` may hold ``bootstrap.servers`` and the ``security.*``, ``sasl.*`` and ``ssl.*`` keys of librdkafka or of the
    Java clients. Without the first, ``host`` (with ``port``) is where Kafka is; ``login`` and ``password`` are for SASL.
    """
    address = f"{host}:{port}" if host and port and ":" not in host else host
    servers = str(extra.get(_BOOTSTRAP) or address or "")
    if not servers:
        raise ConfigError(
            f"The Airflow connection {conn_id!r} does not say where Kafka is: give {_BOOTSTRAP} in its extra, or a host."
        )
    security = {key: str(value) for key, value in extra.items() if key.startswith(_SECURITY)}
    if login and password:
        security = {"sasl.username": login, "sasl.password": password} | security
    return {_BOOTSTRAP: servers, **{prefix + key: value for prefix in _CLIENTS for key, value in _as_java(security).items()}}


def _as_java(security: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's commonest security keys as the Java clients', which is what worker properties hold."""
    found = dict(security)
    if "sasl.mechanisms" in found:
        found.setdefault(_MECHANISM, found.pop("sasl.mechanisms"))
    user, password = found.pop("sasl.username", None), found.pop("sasl.password", None)
    if user is not None and "sasl.jaas.config" not in found:
        mechanism = found.setdefault(_MECHANISM, "PLAIN")
        module = _LOGIN.format("scram.Scram" if mechanism.startswith("SCRAM") else "plain.Plain")
        found["sasl.jaas.config"] = f"{module} required username={_quoted(user)} password={_quoted(password or '')};"
    if _MECHANISM in found:
        found.setdefault(_PROTOCOL, "SASL_SSL" if any(key.startswith("ssl.") for key in found) else "SASL_PLAINTEXT")
    if "ssl.ca.location" in found:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": found.pop("ssl.ca.location")}
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
