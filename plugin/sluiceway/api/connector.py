"""What a connector author subclasses on the driver's side: the connector decides how work is split into tasks."""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from sluiceway.api.records import Offset, Partition
from sluiceway.api.task import SinkTask, SourceTask, Task, TopicPartition
from sluiceway.config.definition import ConfigDef, ValidatedValue


class ExactlyOnceSupport(enum.Enum):
    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class ConnectorTransactionBoundaries(enum.Enum):
    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class ConnectorContext(Protocol):
    """What a running connector may ask of the runtime. Lives on the driver."""

    def request_task_reconfiguration(self) -> None:
        """Ask for ``task_configs`` to be called again: the connector's inputs or outputs have changed."""

    def raise_error(self, error: BaseException) -> None:
        """Report an error from a thread of the connector's own; the connector becomes FAILED."""


class Connector(abc.ABC):
    """Splits a job into task configs and watches for changes. Runs on the Spark driver, never on an executor.

    ``java_class`` and ``java_task_class`` name the Java classes that this connector stands in for, if any: configs that
    name those find it, and task configs written to the config topic name the task's, so that a real Kafka Connect
    worker can take over.
    """

    task_class: ClassVar[type[Task]]
    java_class: ClassVar[str | None] = None
    java_task_class: ClassVar[str | None] = None

    context: ConnectorContext

    def initialize(self, context: ConnectorContext) -> None:
        """Called once before ``start``."""
        self.context = context

    @classmethod
    def version(cls) -> str:
        """The connector's version, shown in REST and in status records."""
        from sluiceway import __version__

        return __version__

    @classmethod
    @abc.abstractmethod
    def config_def(cls) -> ConfigDef:
        """The connector's own keys."""

    @abc.abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Take the config and connect where needed. Raise ConnectError to refuse: the connector becomes FAILED."""

    @abc.abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return one config for each task, at most ``max_tasks`` of them."""

    def stop(self) -> None:  # noqa: B027 (most connectors hold nothing)
        """Release what ``start`` took."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Check the connector's own keys without side effects; may reach out to the other system for recommendations."""
        return cls.config_def().validate(config)


class SourceConnector(Connector):
    """A connector that reads from another system into Kafka."""

    task_class: ClassVar[type[SourceTask]]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Whether offsets fully describe the position, so that records and offsets in one transaction are exactly once."""
        return ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> ConnectorTransactionBoundaries:
        """Whether tasks with this config say themselves where transactions end (``SourceTaskContext.transaction_context``).

        Asked while a config with ``transaction.boundary=connector`` is validated, on an object that was not started.
        """
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        """Check offsets that a user wants to set, None for one to be forgotten, before they are stored.

        Return True if they were checked; raise ConnectError to refuse them. Runs where the REST request is served.
        """
        return False


class SinkConnector(Connector):
    """A connector that writes from Kafka to another system."""

    task_class: ClassVar[type[SinkTask]]

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Check offsets that a user wants to set, None for one to be forgotten, before they are stored.

        Return True if they were checked; raise ConnectError to refuse them. Runs where the REST request is served.
        """
        return False
