"""Base classes of connectors, which split the work into tasks."""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from sluiceway.api.offset_target import OffsetTarget
from sluiceway.api.records import Offset, Partition, SinkRecord, SourceRecord
from sluiceway.api.source_watch import SourceWatch
from sluiceway.api.task import OffsetStorageReader, SinkTask, SourceTask, SourceTaskContext, Task, TopicPartition
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.errors import BadRequestError, ConnectError


class ExactlyOnceSupport(enum.Enum):
    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class ConnectorTransactionBoundaries(enum.Enum):
    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class IntervalRepeat(enum.Enum):
    """The effect on a sink's target if a run moves an interval that was moved before."""

    ADDS = "adds"
    """The records are there twice."""
    MERGES = "merges"
    """The same records change nothing."""
    REPLACES = "replaces"
    """The connector removes what was written of the interval before, when it starts."""


class ConnectorContext(Protocol):
    """The runtime's services for a running connector. Lives on the driver."""

    def request_task_reconfiguration(self) -> None:
        """Request that ``task_configs`` is called again, because the connector's inputs or outputs have changed."""

    def raise_error(self, error: BaseException) -> None:
        """Report an error from a thread that the connector started. The connector becomes FAILED."""

    def waiting(self, reason: object = None, seconds: float = 0.0) -> None:
        """Show in the connector's status that it waits, why, and that it looks again after ``seconds``. Thread-safe.

        Without a reason, the wait is over. A micro-batch that ends meanwhile fails.
        """


class SourceConnectorContext(ConnectorContext, Protocol):
    """The context of a source connector."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """Reads the offsets that the connector's tasks have committed. Any thread of the connector may use it."""


class Connector(abc.ABC):
    """Splits the work into task configs and watches for changes. Runs on the Spark driver, never on an executor.

    ``java_class`` and ``java_task_class`` name the Java classes that this connector replaces, if any. A config may use
    either class name. Task configs in the config topic contain ``java_task_class``, so that a Kafka Connect worker can take
    over.
    """

    task_class: ClassVar[type[Task]]
    java_class: ClassVar[str | None] = None
    java_task_class: str | None = None

    context: ConnectorContext

    def initialize(self, context: ConnectorContext) -> None:
        """Set the context. Called once, before ``start``."""
        self.context = context

    @classmethod
    def version(cls) -> str:
        """Return the connector's version, which the REST API and status records show."""
        from sluiceway import __version__

        return __version__

    @classmethod
    @abc.abstractmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of the connector's own keys."""

    @abc.abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Start with this config. If that is impossible, raise ConnectError: the connector becomes FAILED."""

    @abc.abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return the configs of at most ``max_tasks`` tasks."""

    def stop(self) -> None:  # noqa: B027 (most connectors hold no resources)
        """Release the resources that ``start`` acquired."""

    def abandon(self) -> None:  # noqa: B027
        """End what would go on without the connector, such as a process, because a call has not returned in time.

        Called on another thread than all other methods, which may still be running.
        """

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Validate the connector's own keys: check them, and try them once they are right. Must have no side effects."""
        found = cls.check(config)
        if not any(each.errors for each in found.values()):
            cls.try_config(config, found)
        return found

    @classmethod  # noqa: B027 (most systems need no try)
    def try_config(cls, config: Mapping[str, str], found: dict[str, ValidatedValue]) -> None:
        """Connect to the other system, and add failures to the errors of the keys that cause them. Must have no side effects.

        It may set recommended values. That the system cannot be reached is no error, if tasks wait for it.
        """

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Validate the connector's own keys as far as that needs no connection and no file.

        Airflow's API server calls this instead of ``validate``, with references that are not resolved. A preview calls
        ``validate``, in a process of its own.
        """
        return cls.config_def().validate(config)


class SourceConnector(Connector):
    """A connector that copies data from another system to Kafka."""

    task_class: ClassVar[type[SourceTask]]

    interval_in_order: ClassVar[bool] = False
    """Whether the intervals of runs with ``airflow.interval=exact`` are pieces of one log. See ``interval_refusal``."""

    interval_by_timestamp: ClassVar[bool | None] = None
    """Whether the runtime may find the intervals of a connector with an ``interval_refusal`` by its records' timestamps.

    True: each record has a timestamp, a source partition, and a source offset, and timestamps do not decrease in a source
    partition. Then runs follow one another with the connector's offsets. In each source partition a run ends before the first
    record whose timestamp is at or after the interval's end: that one and those behind it are neither sent nor committed nor
    acknowledged, and ``commit`` is not called any more. False: records have no such timestamps. None: users say so by
    ``airflow.interval.time=record``.
    """

    context: SourceConnectorContext

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        """Return what starting and polling changes in other systems, such as "it creates a replication slot"; empty for nothing.

        A preview starts connectors without effects only. It never calls ``commit`` and ``commit_record`` of their tasks.
        """
        return ""

    @classmethod
    def preview(cls, context: SourceTaskContext, most: int) -> Sequence[SourceRecord] | None:
        """Return up to ``most`` of the next records without changing anything anywhere, or None if that is not possible.

        A preview calls it for connectors with ``start_effects``, which it does not start. ``context`` has the config and the
        stored offsets. Runs in a process of its own, which is ended after some seconds. Errors that it raises are shown.
        """
        return None

    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        """Return where the position is, as sentences for users, if it is not in Kafka's offsets; empty if it is.

        For systems that keep the position of a reader themselves, such as queues, and those that send what cannot be asked for
        again. REST, the page and ``sluiceway offsets`` show it, and refuse to set offsets or to reset them. Called with
        references that are not resolved; must read nothing.
        """
        return ""

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        """Return why a connector with this config cannot read the records of a time interval only; empty if it can.

        A run of ``airflow.interval=exact`` gives the tasks of a connector that can an interval in their config
        (``sluiceway.config.intervals.interval_of``): they read the records whose time is in it, and end (``SourceTask.ended``).
        Each run has offsets of its own, unless the connector is ``interval_in_order``: then runs follow one another with the
        connector's offsets, and a task reads from its offset up to the first record whose time is at or after the interval's
        end. A connector that cannot may be read by its records' timestamps: with ``interval_by_timestamp = True`` in its class,
        or ``airflow.interval.time=record`` in its config. Called with references that are not resolved.
        """
        return f"{cls.__name__} has no time by which it could read an interval"

    @classmethod
    def watch_refusal(cls, config: Mapping[str, str]) -> str:
        """Return why a connector with this config cannot be watched for changes; empty if it can.

        ``airflow.schedule=on-change`` needs it. Called with references that are not resolved; must read nothing.
        """
        return f"{cls.__name__} cannot tell whether its system has something new"

    @classmethod
    def watch(cls, config: Mapping[str, str]) -> SourceWatch:
        """Return a watch that tells when the other system has something new for the connector's tasks to read.

        Runs in Airflow's triggerer, on a thread of its own, where no connector and no task is started. ``config`` has its
        references resolved. Need not connect: ``SourceWatch.mark`` does. Raises ConnectError.
        """
        raise ConnectError(f"{cls.watch_refusal(config)}.")

    @classmethod
    def position_time(cls, offset: Offset) -> int | None:
        """Return the time up to which a log was read at a stored offset, in milliseconds since the epoch; None if it was not yet.

        Of a connector that is ``interval_in_order``. So Airflow learns which partitions of ``airflow.partition`` are complete.
        """
        return None

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Return SUPPORTED if offsets fully describe the position: records and offsets in one transaction are exactly once."""
        return ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> ConnectorTransactionBoundaries:
        """Return SUPPORTED if tasks with this config can end transactions with ``SourceTaskContext.transaction_context``.

        Called to validate a config with ``transaction.boundary=connector``, on a connector that is not started.
        """
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        """Validate offsets that a user sets by the REST API, before they are stored; None deletes an offset.

        Return True if the offsets were validated; raise ConnectError to refuse them. Runs in the REST server's process, or in
        one of its own beside Airflow's API server.
        """
        return False

    def find_offsets(
        self, config: Mapping[str, str], target: OffsetTarget, offsets: Sequence[tuple[Partition, Offset]]
    ) -> Sequence[tuple[Partition, Offset | None]]:
        """Return the offsets from which tasks would continue at a target, for ``sluiceway offsets set --to-datetime`` and others.

        Optional. ``offsets`` are the stored ones. Partitions that are left out keep theirs; None as an offset removes it. Raise
        BadRequestError for a target that the other system does not have, such as a time where nothing has one. Runs where
        ``alter_offsets`` does, on a connector that is not started, and changes nothing.
        """
        raise BadRequestError(
            f"{type(self).__name__} cannot find offsets. Set them one by one, or remove them to start from the beginning."
        )


class SinkConnector(Connector):
    """A connector that copies data from Kafka to another system."""

    task_class: ClassVar[type[SinkTask]]

    replaces_rows: ClassVar[bool] = False
    """Whether it replaces the rows of an interval by ``airflow.interval.column``. See ``interval_repeat``."""

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str] | None:
        """Return what tasks would write for these records, such as SQL statements or lines of files; None if not offered.

        Must change nothing: a preview does not start the connector, and shows the texts to people. Runs in a process of its own,
        which is ended after some seconds. Errors that it raises are shown.
        """
        return None

    @classmethod
    def interval_repeat(cls, config: Mapping[str, str]) -> IntervalRepeat:
        """Return what it does to the target when the records of an interval are moved again, into the same tables or files.

        Called with references that are not resolved; must read nothing.
        """
        return IntervalRepeat.ADDS

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Validate offsets that a user sets by the REST API, before they are stored; None deletes an offset.

        Return True if the offsets were validated; raise ConnectError to refuse them. Runs in the REST server's process, or in
        one of its own beside Airflow's API server.
        """
        return False
