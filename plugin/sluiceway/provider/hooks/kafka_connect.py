"""The hook of the connection type ``kafka_connect``: a client of the REST API, a worker's config, and the form's test button.

Connections of type ``kafka``, those of Airflow's own Kafka provider, serve for what needs no REST API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from sluiceway.config.masking import is_secret
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.provider.hooks.connection_type import CONN_TYPE, DEFAULT_CONN_ID, HOOK_NAME, KAFKA_CONN_TYPE, ConnectConnection

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.rest.client import ConnectClient

_TEST_SECONDS = 10.0
_INTERNAL_TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")


class KafkaConnectHook(BaseHook):
    """Reaches a Connect cluster, Sluiceway's or Kafka Connect's own, as an Airflow connection describes it.

    Runs wherever Airflow may read connections: in tasks, and in the API server for the test button.

    Args:
        kafka_connect_conn_id: the connection's id.
    """

    conn_name_attr = "kafka_connect_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = CONN_TYPE
    hook_name = HOOK_NAME

    def __init__(self, kafka_connect_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_connect_conn_id = kafka_connect_conn_id

    def connection(self) -> ConnectConnection:
        """Look the connection up, and mask its secrets in logs; raises ConfigError, which holds none."""
        from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError

        conn_id = self.kafka_connect_conn_id
        try:
            found = self.get_connection(conn_id)
            extra = found.extra_dejson
        except (AirflowException, AirflowRuntimeError, ValueError):  # not its text: some backends quote what they read
            raise ConfigError(f"Airflow has no connection {conn_id!r} that can be read; create it, or name another.") from None
        if found.conn_type not in (CONN_TYPE, KAFKA_CONN_TYPE):
            needed = f"{CONN_TYPE!r} or {KAFKA_CONN_TYPE!r}"
            raise ConfigError(f"The Airflow connection {conn_id!r} is of type {found.conn_type!r}, but must be of {needed}.")
        _mask(found.password, *(value for key, value in extra.items() if is_secret(key)))
        if found.conn_type == KAFKA_CONN_TYPE:
            parsed = ConnectConnection.of_kafka(extra)
        else:
            parsed = ConnectConnection.parse(found.host, found.login, found.password, extra, port=found.port)
        _mask(*(value for key, value in parsed.properties.items() if is_secret(key)))
        return parsed

    def get_conn(self, *, timeout: float = 60.0) -> ConnectClient:
        """Return a client of the REST API, to be closed by the caller; ``timeout`` in seconds for each request."""
        from sluiceway.rest.client import ConnectClient

        connection = self.connection()
        if not connection.servers:
            raise ConfigError(f"Airflow connection {self.kafka_connect_conn_id} names no REST API; fill in its field 'REST API'.")
        return ConnectClient(
            connection.servers,
            headers={"Authorization": f"Bearer {connection.token}"} if connection.token else None,
            login=None if connection.token else connection.login,
            ca=connection.ca,
            timeout=timeout,
        )

    def worker_properties(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return a worker's properties: those of ``base``, a worker file's, and over them what the connection says.

        They hold the connection's secrets: keep them out of logs and command lines.
        """
        return {**(base or {}), **self.connection().properties}

    def worker(self, base: Mapping[str, str] | None = None) -> WorkerConfig:
        """Return the parsed ``worker_properties``; raises ConfigError."""
        from sluiceway.config.worker import WorkerConfig

        return WorkerConfig.of(self.worker_properties(base))

    def test_connection(self) -> tuple[bool, str]:
        """Ask the REST API and the brokers, whichever the connection names, and say what they answered. Changes nothing."""
        try:
            connection = self.connection()
            answers = [self._ask_rest()] if connection.servers else []
            if connection.names_brokers:
                answers.append(_ask_kafka(self.worker()))
        except ConnectError as error:
            return False, str(error)
        if not answers:
            return False, "The connection names neither a REST API nor bootstrap servers, so there is nothing to ask."
        return True, "; ".join(answers)

    def _ask_rest(self) -> str:
        with self.get_conn(timeout=_TEST_SECONDS) as client:
            root = client.root()
            count = len(client.connectors())
            return f"REST API {client.server}: version {root.get('version')}, {count} connector{'' if count == 1 else 's'}"


def kafka_overrides(conn_id: str | None) -> dict[str, str]:
    """Return the worker properties that a task's ``kafka_conn_id`` sets over the worker file's; none without one.

    They hold the connection's secrets. Raises ConfigError.
    """
    return KafkaConnectHook(conn_id).worker_properties() if conn_id else {}


def _ask_kafka(worker: WorkerConfig) -> str:
    from sluiceway.kafka.clients import admin_client
    from sluiceway.kafka.errors import mapped_errors

    with mapped_errors(f"reach Kafka at {worker.bootstrap_servers}"):
        there = admin_client(worker).list_topics(timeout=_TEST_SECONDS).topics
    topics = [worker.text(key) for key in _INTERNAL_TOPICS]
    missing = [topic for topic in topics if topic not in there]
    said = f"no topic {', '.join(missing)} yet (made when the first connector is)" if missing else f"topics {', '.join(topics)}"
    return f"Kafka {worker.bootstrap_servers}: {said}"


def _mask(*secrets: Any) -> None:
    from airflow.sdk.log import mask_secret

    for secret in secrets:
        if secret:
            mask_secret(str(secret))
