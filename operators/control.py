"""One-shot operators: each does to a connector what a call of Connect's REST API would, straight through Kafka's topics.

They need neither the REST API nor Spark: the config topic is what drivers listen to. They run on an Airflow worker, and can be
repeated: what is so already stays so.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.exceptions import AirflowException
from airflow.sdk import BaseOperator

from sluiceway.config.connector import NAME
from sluiceway.errors import BadRequestError, NotFoundError
from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.operators.given_config import named_config
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.settings import read_settings
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import INITIAL_STATES

if TYPE_CHECKING:
    from airflow.sdk import Context


class ConnectorControlOperator(BaseOperator):
    """Does one thing to one connector. A connector that does not exist, or a refusal, fails the task and says why.

    Args:
        connector: the connector's name (templated).
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``
            (templated).
        kafka_conn_id: an Airflow connection of type ``kafka_connect`` or ``kafka`` that wins over the file. (templated)
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
        try:
            with self._herder() as herder:
                result = self.act(herder)
        except (BadRequestError, NotFoundError) as error:
            raise AirflowException(f"Connector {self.connector}: {error}") from error
        self.log.info("[%s|worker] %s: done", self.connector, type(self).__name__)
        return result

    @abc.abstractmethod
    def act(self, herder: Herder) -> Any:
        """Do it, and return what is to be the task's XCom."""

    @contextmanager
    def _herder(self) -> Iterator[Herder]:
        worker = read_settings().worker(self.worker_properties, kafka_overrides(self.kafka_conn_id))
        use_plugin_path(worker.raw)
        with open_stores(worker) as stores:
            yield Herder(worker, stores.config, stores.status, stores.offsets)


class CreateConnectorOperator(ConnectorControlOperator):
    """Creates a connector, or gives it a new config. Returns ``created``, ``changed`` or ``unchanged``.

    Args:
        config: a dict, or the path of a JSON, YAML or .properties file on the worker (templated).
        connector: its name (templated); default is ``name`` in the config.
        initial_state: RUNNING, PAUSED or STOPPED, for one that is new.
    """

    template_fields: Sequence[str] = (*ConnectorControlOperator.template_fields, "config")

    def __init__(
        self, *, config: Mapping[str, str] | str, connector: str | None = None, initial_state: str = "RUNNING", **kwargs: Any
    ) -> None:
        if initial_state not in INITIAL_STATES:
            raise ValueError(f"initial_state is one of {', '.join(INITIAL_STATES)}, not {initial_state!r}.")
        name = connector or (config.get(NAME, "") if isinstance(config, Mapping) else "")
        super().__init__(connector=name, **kwargs)
        self.config = config
        self.initial_state = initial_state

    def act(self, herder: Herder) -> str:
        config = named_config(self.connector, self.config) or {}
        name = config[NAME]
        present = herder.configs().get(name)
        if present is None:
            herder.create(name, config, INITIAL_STATES[self.initial_state])
            return "created"
        if dict(present) == config:
            return "unchanged"
        herder.put_config(name, config)
        return "changed"


class PauseConnectorOperator(ConnectorControlOperator):
    """Asks that a connector pause; its DAG is paused with it."""

    def act(self, herder: Herder) -> None:
        herder.pause(self.connector)


class ResumeConnectorOperator(ConnectorControlOperator):
    """Asks that a paused or stopped connector run; its DAG is unpaused with it."""

    def act(self, herder: Herder) -> None:
        herder.resume(self.connector)


class StopConnectorOperator(ConnectorControlOperator):
    """Asks that a connector stop: it has no tasks until it is resumed, and its offsets may be set."""

    def act(self, herder: Herder) -> None:
        herder.stop(self.connector)


class RestartConnectorOperator(ConnectorControlOperator):
    """Asks for a restart of a connector (KIP-745). Without a driver there is nothing to restart.

    Args:
        include_tasks: its tasks too.
        only_failed: only what has failed.
    """

    def __init__(self, *, include_tasks: bool = True, only_failed: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.include_tasks = include_tasks
        self.only_failed = only_failed

    def act(self, herder: Herder) -> None:
        herder.restart(self.connector, include_tasks=self.include_tasks, only_failed=self.only_failed)


class DeleteConnectorOperator(ConnectorControlOperator):
    """Deletes a connector; its offsets stay. Its DAG goes.

    Args:
        missing_ok: whether one that does not exist is well.
    """

    def __init__(self, *, missing_ok: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.missing_ok = missing_ok

    def act(self, herder: Herder) -> None:
        try:
            herder.delete(self.connector)
        except NotFoundError:
            if not self.missing_ok:
                raise


class SetConnectorOffsetsOperator(ConnectorControlOperator):
    """Sets offsets of a stopped connector (KIP-875), waiting some seconds for a driver that is still stopping.

    Args:
        offsets: in the form of ``PATCH /connectors/<name>/offsets``: a list of ``{"partition": .., "offset": ..}``, an offset of
            None to forget it; None forgets all. (templated)
    """

    template_fields: Sequence[str] = (*ConnectorControlOperator.template_fields, "offsets")

    def __init__(self, *, offsets: Sequence[Mapping[str, Any]] | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.offsets = offsets

    def act(self, herder: Herder) -> str:
        if self.offsets is None:
            return herder.reset_offsets(self.connector)
        return herder.alter_offsets(self.connector, [(each.get("partition"), each.get("offset")) for each in self.offsets])
