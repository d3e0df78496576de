"""The hook of the connection type ``kafka_connect``: REST client, worker config, and the form's test button.

Also reads connections of the type ``kafka`` (Airflow's Kafka provider), which have no REST API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluiceway import __version__
from sluiceway.config.masking import is_secret, literal_secrets
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.provider.compat import BaseHook
from sluiceway.provider.hooks.connection_type import CONN_TYPE, DEFAULT_CONN_ID, HOOK_NAME, KAFKA_CONN_TYPE, ConnectConnection
from sluiceway.provider.masks import mask

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.rest.client import ConnectClient

_TEST_SECONDS = 10.0
_INTERNAL_TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")


class KafkaConnectHook(BaseHook):
    """Connects to a Connect cluster, Sluiceway's or Kafka Connect's own.

    Runs in tasks, in the triggerer, and in the API server for the test button.

    Args:
        kafka_connect_conn_id: the connection's id; its type is ``kafka_connect`` or ``kafka``.
    """

    conn_name_attr = "kafka_connect_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = CONN_TYPE
    hook_name = HOOK_NAME

    def __init__(self, kafka_connect_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_connect_conn_id = kafka_connect_conn_id

    def connection(self) -> ConnectConnection:
        """Read the connection and mask its secrets in logs; raises ConfigError, without any secret."""
        from airflow.sdk.exceptions import AirflowRuntimeError

        from sluiceway.provider.compat import AirflowException

        conn_id = self.kafka_connect_conn_id
        try:
            found = self.get_connection(conn_id)
            extra = found.extra_dejson
        except (AirflowException, AirflowRuntimeError, ValueError):  # its text may contain secrets: some backends quote values
            raise ConfigError(
                f"Airflow has no connection {conn_id!r}, or cannot read it. Create it, or use another conn_id."
            ) from None
        if found.conn_type not in (CONN_TYPE, KAFKA_CONN_TYPE):
            needed = f"{CONN_TYPE!r} or {KAFKA_CONN_TYPE!r}"
            raise ConfigError(f"The Airflow connection {conn_id!r} is of type {found.conn_type!r}; it must be {needed}.")
        mask((found.password, *(value for key, value in extra.items() if is_secret(key))))
        if found.conn_type == KAFKA_CONN_TYPE:
            parsed = ConnectConnection.of_kafka(extra)
        else:
            parsed = ConnectConnection.parse(found.host, found.login, found.password, extra, port=found.port)
        mask(literal_secrets(parsed.properties))
        return parsed

    def get_conn(self, *, timeout: float = 60.0) -> ConnectClient:
        """Return a REST client, which the caller closes. ``timeout`` is in seconds for each request. Raises ConfigError."""
        from sluiceway.rest.client import ConnectClient

        connection = self.connection()
        if not connection.servers:
            raise ConfigError(
                f"The Airflow connection {self.kafka_connect_conn_id!r} has no REST API address. Fill in its field 'REST API'."
            )
        agent = {"User-Agent": f"sluiceway/{__version__} (Airflow)"}  # for the connectors' histories
        return ConnectClient(
            connection.servers,
            headers=agent | ({"Authorization": f"Bearer {connection.token}"} if connection.token else {}),
            login=None if connection.token else connection.login,
            ca=connection.ca,
            timeout=timeout,
        )

    def worker_properties(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the properties of ``base`` (a worker's file), overridden by the connection's.

        They contain the connection's secrets: keep them out of logs and command lines.
        """
        return {**(base or {}), **self.connection().properties}

    def worker(self, base: Mapping[str, str] | None = None) -> WorkerConfig:
        """Return ``worker_properties`` as a worker config; raises ConfigError."""
        from sluiceway.config.worker import WorkerConfig

        return WorkerConfig.of(self.worker_properties(base))

    def test_connection(self) -> tuple[bool, str]:
        """Request the REST API's version and the brokers' topics, whichever the connection names. Read-only.

        Return whether all answered, and a text for the form.
        """
        try:
            connection = self.connection()
            answers = [self._test_rest()] if connection.servers else []
            if connection.names_brokers:
                answers.append(_test_kafka(self.worker()))
        except ConnectError as error:
            return False, str(error)
        if not answers:
            return False, "The connection has neither a REST API nor bootstrap servers. Fill in at least one of them."
        return True, "; ".join(answers)

    def _test_rest(self) -> str:
        with self.get_conn(timeout=_TEST_SECONDS) as client:
            root = client.root()
            count = len(client.connectors())
            return f"REST API {client.server}: version {root.get('version')}, {count} connector{'' if count == 1 else 's'}"


def kafka_overrides(conn_id: str | None) -> dict[str, str]:
    """Return the worker properties of a task's ``kafka_conn_id``, which override the worker's file; empty for None.

    They contain the connection's secrets. Raises ConfigError.
    """
    return KafkaConnectHook(conn_id).worker_properties() if conn_id else {}


def _test_kafka(worker: WorkerConfig) -> str:
    from sluiceway.kafka.clients import admin_client
    from sluiceway.kafka.errors import mapped_errors

    with mapped_errors(f"reach Kafka at {worker.bootstrap_servers}"):
        existing = admin_client(worker).list_topics(timeout=_TEST_SECONDS).topics
    topics = [worker.text(key) for key in _INTERNAL_TOPICS]
    missing = [topic for topic in topics if topic not in existing]
    if missing:
        return f"Kafka {worker.bootstrap_servers}: no topic {', '.join(missing)} yet (created with the first connector)"
    return f"Kafka {worker.bootstrap_servers}: topics {', '.join(topics)}"
