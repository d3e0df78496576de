"""Operators that create, change, pause, resume, restart and delete connectors, as Connect's REST API does.

They write Kafka's internal topics themselves, so they need neither the REST API nor Spark. They run on an Airflow worker, and are
idempotent, so Airflow may retry them.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluiceway.config.connector import NAME
from sluiceway.errors import BadRequestError, ConfigError, NotFoundError
from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.kafka.reachability import check_brokers
from sluiceway.operators.given_config import check_given, given_name, named_config
from sluiceway.operators.masked_config import MaskedConfig
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.masks import mask_config
from sluiceway.provider.mistakes import task_error
from sluiceway.provider.settings import read_settings
from sluiceway.provider.templated import Templated
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import INITIAL_STATES

if TYPE_CHECKING:
    from airflow.sdk import Context


class ConnectorControlOperator(Templated):
    """The base of these operators. The task fails if the connector does not exist, or if Connect rejects the request.

    Args:
        connector: the connector's name (templated).
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``
            (templated).
        kafka_conn_id: an Airflow connection of type ``kafka_connect`` or ``kafka`` that overrides the file. (templated)
    """

    template_fields: Sequence[str] = ("connector", "worker_properties", "kafka_conn_id")
    ui_color = "#eeeeee"

    def __init__(
        self, *, connector: str, worker_properties: str | None = None, kafka_conn_id: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.worker_properties = worker_properties
        self.kafka_conn_id = kafka_conn_id

    def execute(self, context: Context) -> Any:
        """Send the request; raises AirflowException if Connect rejects it."""
        try:
            with self._herder() as herder:
                result = self.request(herder)
        except (BadRequestError, ConfigError, NotFoundError) as error:
            raise task_error(f"Connector {self.connector}", error) from error
        self.log.info("[%s|worker] %s: done", self.connector, type(self).__name__)
        return result

    @abc.abstractmethod
    def request(self, herder: Herder) -> Any:
        """Send the request to the herder; return the task's XCom."""

    @contextmanager
    def _herder(self) -> Iterator[Herder]:
        worker = read_settings().worker(self.worker_properties, kafka_overrides(self.kafka_conn_id))
        check_brokers(worker)
        use_plugin_path(worker.raw)
        with open_stores(worker) as stores:
            yield Herder(worker, stores.config, stores.status, stores.offsets)


class CreateConnectorOperator(MaskedConfig, ConnectorControlOperator):
    """Creates a connector, or changes its config. Returns ``created``, ``changed`` or ``unchanged``, as XCom.

    Args:
        config: a dict, or the path of a JSON, YAML or .properties file on the worker (templated).
        connector: the connector's name (templated); default is ``name`` in the config.
        initial_state: RUNNING, PAUSED or STOPPED; ignored if the connector exists.
    """

    template_fields: Sequence[str] = (*ConnectorControlOperator.template_fields, "config")

    def __init__(
        self, *, config: Mapping[str, Any] | str, connector: str | None = None, initial_state: str = "RUNNING", **kwargs: Any
    ) -> None:
        check_given(connector, config)
        if initial_state not in INITIAL_STATES:
            raise ValueError(f"initial_state must be one of {', '.join(INITIAL_STATES)}, not {initial_state!r}.")
        super().__init__(connector=given_name(connector, config), **kwargs)
        self.config = config
        self.initial_state = initial_state

    def request(self, herder: Herder) -> str:
        config = named_config(self.connector, self.config) or {}
        mask_config(config)
        name = config[NAME]
        entry = herder.overview().state.entry(name)
        if entry is None:
            herder.create(name, config, INITIAL_STATES[self.initial_state])
            return "created"
        if entry.config == config:
            return "unchanged"
        herder.put_config(name, config)
        return "changed"


class PauseConnectorOperator(ConnectorControlOperator):
    """Pauses a connector; the pause sync pauses its DAG too."""

    def request(self, herder: Herder) -> None:
        herder.pause(self.connector)


class ResumeConnectorOperator(ConnectorControlOperator):
    """Resumes a paused or stopped connector; the pause sync unpauses its DAG too."""

    def request(self, herder: Herder) -> None:
        herder.resume(self.connector)


class StopConnectorOperator(ConnectorControlOperator):
    """Stops a connector: it has no tasks until it is resumed, and its offsets can be changed."""

    def request(self, herder: Herder) -> None:
        herder.stop(self.connector)


class RestartConnectorOperator(ConnectorControlOperator):
    """Restarts a connector (KIP-745). Without a live driver, the pause sync clears the connector's failed DAG run instead.

    Args:
        include_tasks: whether to restart its tasks too.
        only_failed: whether to restart only failed instances.
    """

    def __init__(self, *, include_tasks: bool = True, only_failed: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.include_tasks = include_tasks
        self.only_failed = only_failed

    def request(self, herder: Herder) -> None:
        herder.restart(self.connector, include_tasks=self.include_tasks, only_failed=self.only_failed)


class DeleteConnectorOperator(ConnectorControlOperator):
    """Deletes a connector and its generated DAG; its offsets remain.

    Args:
        missing_ok: whether the task succeeds if the connector does not exist.
    """

    def __init__(self, *, missing_ok: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.missing_ok = missing_ok

    def request(self, herder: Herder) -> None:
        try:
            herder.delete(self.connector)
        except NotFoundError:
            if not self.missing_ok:
                raise


class SetConnectorOffsetsOperator(ConnectorControlOperator):
    """Alters or resets the offsets of a stopped connector (KIP-875). Waits some seconds for its driver to stop.

    Args:
        offsets: a list of ``{"partition": .., "offset": ..}``, as for ``PATCH /connectors/<name>/offsets``; an offset of None
            removes that partition's offset. None resets all offsets. (templated)
    """

    template_fields: Sequence[str] = (*ConnectorControlOperator.template_fields, "offsets")

    def __init__(self, *, offsets: Sequence[Mapping[str, Any]] | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.offsets = offsets

    def request(self, herder: Herder) -> str:
        if self.offsets is None:
            return herder.reset_offsets(self.connector)
        return herder.alter_offsets(self.connector, [(each.get("partition"), each.get("offset")) for each in self.offsets])
