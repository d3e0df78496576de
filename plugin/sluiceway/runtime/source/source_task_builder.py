"""Creates what a source task runs with: its chain, converters, producer, delivery and context."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from sluiceway import discovery
from sluiceway.api import (
    Connector,
    OffsetStorageReader,
    Refusal,
    RowFormReason,
    SourceRecord,
    SourceTask,
    TaskConverters,
    TransactionContext,
)
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION, JAVA_OPTS, overrides
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.java_plugins.acknowledgements import SentRecords
from sluiceway.java_plugins.hosts import task_host
from sluiceway.java_plugins.source_task import JavaSourceTask
from sluiceway.kafka.clients import producer_config, transactional_producer_config
from sluiceway.kafka.producer_transactions import ProducerTransactions
from sluiceway.metrics.client_statistics import INTERVAL
from sluiceway.runtime.columns import NO_ARROW, BatchForms, columns_available, has_columnar_form
from sluiceway.runtime.errors.error_handling import interruptible_wait, retry_with_tolerance_operator
from sluiceway.runtime.errors.processing_context import ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import StopGrace, check_abandoned
from sluiceway.runtime.java_chain import java_chain
from sluiceway.runtime.plugin_metrics import describe_plugins
from sluiceway.runtime.source.column_encoder import SourceColumnEncoder
from sluiceway.runtime.source.delivery import AtLeastOnceDelivery, Delivery
from sluiceway.runtime.source.exactly_once import (
    ExactlyOnceSettings,
    check_not_required,
    exactly_once_enabled,
    transactional_id,
)
from sluiceway.runtime.source.exactly_once_delivery import ExactlyOnceDelivery, deferred
from sluiceway.runtime.source.interval_bound import MOST_SKEW_MS, IntervalBound
from sluiceway.runtime.source.offset_storage import OffsetStorageReaderImpl, OffsetStorageWriter
from sluiceway.runtime.source.record_sender import RecordSender
from sluiceway.runtime.source.submitted_records import Acknowledge
from sluiceway.runtime.source.topic_creation import TopicCreation
from sluiceway.runtime.source.trace_headers import with_trace_headers
from sluiceway.runtime.source.transaction_boundary import ConnectorBoundary
from sluiceway.runtime.task import TaskCommand, TaskControl, TaskServices, TaskSpec
from sluiceway.runtime.task_converters import Converters, converters_of_bytes, task_converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, chain_of
from sluiceway.runtime.waits import Waits
from sluiceway.runtime.worker_task import log_errors
from sluiceway.storage.interfaces import OffsetBackingStore, TransactionalOffsets

_QUEUE_SIZE = "queue.buffering.max.messages"
_SEND_SHARE = 0.5  # of the time that a task may take to stop, for what poll() has returned; the commit follows
_FEW_RECORDS = "20000"  # a Java task keeps the records that it wants acknowledged in its heap until they are in Kafka


def _fail(_record: SourceRecord, error: ConnectError) -> None:
    raise error


def _nothing() -> None: ...


class WorkerSourceTaskContext:
    """Implements ``SourceTaskContext``. ``longest_wait`` is in seconds. ``before_wait`` is called before each wait."""

    def __init__(
        self,
        configs: Mapping[str, str],
        offset_storage_reader: OffsetStorageReader,
        control: TaskControl,
        transaction_context: TransactionContext | None = None,
        converters: TaskConverters | None = None,
        waits: Waits | None = None,
        report: Callable[[SourceRecord, ConnectError], None] = _fail,
        before_wait: Callable[[], None] = _nothing,
    ) -> None:
        self.configs = configs
        self.report = report
        self.converters = converters
        self.offset_storage_reader = offset_storage_reader
        self.transaction_context = transaction_context
        self.longest_wait = math.inf
        self._control = control
        self._before_wait = before_wait
        self.waiting = (waits or Waits()).waiting

    def wait(self, seconds: float) -> None:
        self._before_wait()
        self._control.wait(min(seconds, self.longest_wait))

    def wake(self) -> None:
        self._control.wake()


@dataclass(frozen=True, slots=True)
class SourceTaskParts:
    """Everything a source task runs with. ``task`` and ``delivery`` have not been started.

    ``offsets`` collects what the next commit of ``delivery`` stores.
    """

    task: SourceTask
    context: WorkerSourceTaskContext
    chain: TransformationChain[SourceRecord]
    tolerance: RetryWithToleranceOperator
    sender: RecordSender
    delivery: Delivery
    offsets: OffsetStorageWriter
    encode_columns: SourceColumnEncoder | None
    """Encodes the task's columns; None if ``poll_columns`` must not be called."""
    forms: BatchForms
    bound: IntervalBound | None = None
    """Holds back the records of later intervals; None if the task finds those of its run itself."""


def build_source_task(
    spec: TaskSpec, services: TaskServices, resources: ExitStack, *, slot: int | None = None
) -> SourceTaskParts:
    """Return what a source task runs with, and register its resources for closing.

    ``slot`` is the number of the part of a task that reads DataFrames; each has a transactional id of its own.

    Raises ConfigError or KafkaClientError for settings that cannot be used.
    """
    config, store = spec.config, services.offsets
    if store is None:
        raise ConfigError("A source task needs an offset store.")
    resources.enter_context(task_host(str(spec.id), config.get(JAVA_OPTS, ""), f"[{spec.id.connector}|task-{spec.id.task}] "))
    task = _new_task(config)
    in_java = java_chain(config, spec.worker) if isinstance(task, JavaSourceTask) else None
    chain: TransformationChain[SourceRecord] = TransformationChain() if in_java else chain_of(config)
    resources.callback(chain.close)
    converters = converters_of_bytes() if in_java else task_converters(config, spec.worker)
    resources.callback(log_errors, "Closing the converters", converters.close)
    tolerance = retry_with_tolerance_operator(spec, interruptible_wait(services.control), services.waits)
    resources.callback(tolerance.close)
    bound = IntervalBound.of(_connector_class(config), config)
    if isinstance(task, JavaSourceTask):
        _prepare(task, spec, services, in_java, bound)
    builder = _DeliveryBuilder(spec, services, store, task, converters, tolerance, slot)
    sender, delivery, transaction_context = builder.build()
    metrics = services.metrics
    describe_plugins(metrics, spec, type(task), None if in_java else converters)
    metrics.count_errors_of(tolerance.counts)
    metrics.add_those_of_task(task.metrics)
    metrics.count_buffered_by(lambda: len(sender.client))
    reader: OffsetStorageReader = OffsetStorageReaderImpl(store, spec.id.connector)
    only_converted = not chain.stages and not tolerance.settings.tolerant
    data_converters = TaskConverters(converters.key, converters.value) if only_converted else None

    def report(record: SourceRecord, error: ConnectError) -> None:
        tolerance.execute_failed(f"poll() of {spec.id}", error, ProcessingContext(Stage.TASK_POLL, type(task), record))

    unreadable: Callable[[SourceRecord, ConnectError], None] = report
    if bound is not None:
        reader, unreadable = bound.reader(reader), bound.reporter(report)
    context = WorkerSourceTaskContext(
        config, reader, services.control, transaction_context, data_converters, services.waits, unreadable, sender.send_now
    )
    refusal = None
    if slot is None and not has_columnar_form(type(task), "poll_columns", "poll"):
        refusal = Refusal(RowFormReason.TASK, f"{type(task).__name__} has no columnar form")
    elif bound is not None or transaction_context is not None or not sender.takes_columns:
        # An acknowledgement, a rejected record, a transaction that the task ends, and the end of an interval need single records.
        refusal = Refusal(RowFormReason.TASK, "transactions, acknowledgements, tolerated errors or intervals need single records")
    elif not columns_available():
        refusal = NO_ARROW
    forms = BatchForms(spec.id, metrics, refusal)
    encode_columns = SourceColumnEncoder(converters, chain) if refusal is None else None
    return SourceTaskParts(task, context, chain, tolerance, sender, delivery, builder.offsets, encode_columns, forms, bound)


def _prepare(
    task: JavaSourceTask,
    spec: TaskSpec,
    services: TaskServices,
    chain: Mapping[str, object] | None,
    bound: IntervalBound | None,
) -> None:
    """Create the Java task; ABANDON ends its calls at once, STOP as ``StopWatch`` does."""

    def must_stop() -> bool:
        check_abandoned(services.control)
        return services.control.command() is TaskCommand.STOP

    if bound is not None:
        task.interval, task.told = {"end": bound.end, "skew": MOST_SKEW_MS}, bound.told
    task.prepare(spec.config, chain, must_stop, stop_seconds(spec.worker))
    # The run may end with the next batch once some records are held back.
    task.may_poll_ahead = lambda: services.control.command() is TaskCommand.RUN and not (bound is not None and bound.holds)


def stop_seconds(worker: WorkerConfig) -> float:
    """Return how long a task may take to stop."""
    return worker.number("task.shutdown.graceful.timeout.ms") / 1000


def _connector_class(config: Mapping[str, str]) -> type[Connector]:
    return discovery.connector_class(config[CONNECTOR_CLASS], config.get(CONNECTOR_VERSION))


def _new_task(config: Mapping[str, str]) -> SourceTask:
    task_class = _connector_class(config).task_class
    if not issubclass(task_class, SourceTask):
        raise ConfigError(CONNECTOR_CLASS, config[CONNECTOR_CLASS], "is not a source connector")
    return task_class()


_SenderAndDelivery = tuple[RecordSender, Delivery, TransactionContext | None]


class _DeliveryBuilder:
    """Creates the sender and delivery of one task, and its ``TransactionContext`` if it defines transactions itself."""

    def __init__(
        self,
        spec: TaskSpec,
        services: TaskServices,
        store: OffsetBackingStore,
        task: SourceTask,
        converters: Converters,
        tolerance: RetryWithToleranceOperator,
        slot: int | None,
    ) -> None:
        self._identity = transactional_id(spec.worker, spec.id, slot)
        self._spec = spec
        self._services = services
        self._store = store
        self._converters = converters
        self._tolerance = tolerance
        self.offsets = OffsetStorageWriter(store, spec.id.connector)
        self._topic_creation = TopicCreation(spec.id, spec.config, spec.worker)
        self._check = functools.partial(check_abandoned, services.control)
        self._client_id = f"connector-producer-{spec.id}"
        self._overrides = overrides(spec.config, "producer")
        overridden = type(task).commit_record is not SourceTask.commit_record
        self._observer = task if isinstance(task, JavaSourceTask) and task.observes else None
        if isinstance(task, JavaSourceTask):
            overridden = task.wants_acknowledgements
            if overridden and f"producer.{_QUEUE_SIZE}" not in spec.worker.raw:
                self._overrides = {_QUEUE_SIZE: _FEW_RECORDS, **self._overrides}
        self._acknowledge: Acknowledge | None = None
        if overridden:
            self._acknowledge = functools.partial(log_errors, "The task's commit_record()", task.commit_record)

    def build(self) -> _SenderAndDelivery:
        settings = ExactlyOnceSettings.of(self._spec.config, self._spec.worker)
        # Standalone mode stores offsets in a file, which cannot be part of a transaction. As in Connect, the worker's
        # setting then has no effect.
        if exactly_once_enabled(self._spec.worker) and isinstance(self._store, TransactionalOffsets):
            return self._exactly_once(settings, self._store)
        check_not_required(settings)
        return self._at_least_once()

    def _at_least_once(self) -> _SenderAndDelivery:
        worker = self._spec.worker
        sender = self._sender(
            producer_config(worker, self._client_id, self._overrides),
            self._acknowledge,
            tolerant=self._tolerance.settings.tolerant,
        )
        delivery = AtLeastOnceDelivery(
            sender,
            self.offsets,
            flush_dead_letter_queue=self._tolerance.flush,
            check=self._check,
            interval=worker.number("offset.flush.interval.ms") / 1000,
            timeout=worker.number("offset.flush.timeout.ms") / 1000,
        )
        return sender, delivery, None

    def _exactly_once(self, settings: ExactlyOnceSettings, store: TransactionalOffsets) -> _SenderAndDelivery:
        identity = self._identity
        config = transactional_producer_config(
            self._spec.worker, self._client_id, identity, self._overrides, longest_ms=settings.interval_ms
        )
        acknowledgements: list[Callable[[], None]] = []
        sender = self._sender(
            config,
            None if self._acknowledge is None else deferred(self._acknowledge, acknowledgements),
            submit=lambda sent: acknowledgements.append(sent.release),
        )
        boundary = settings.new_boundary(each_batch=self._observer is not None)
        if self._observer is not None:
            self._observer.in_step = True
        delivery = ExactlyOnceDelivery(
            sender,
            self.offsets,
            store,
            ProducerTransactions(sender.client, identity),
            boundary,
            acknowledgements=acknowledgements,
            flush_dead_letter_queue=self._tolerance.flush,
            check=self._check,
        )
        return sender, delivery, boundary if isinstance(boundary, ConnectorBoundary) else None

    def _sender(
        self,
        config: Mapping[str, Any],
        acknowledge: Acknowledge | None,
        *,
        tolerant: bool = False,
        submit: Callable[[SentRecords], None] = SentRecords.release,
    ) -> RecordSender:
        metrics = self._services.metrics
        if self._spec.worker.metrics_listener:
            config = {**INTERVAL, **config, "stats_cb": metrics.client("producer", self._client_id)}
        return RecordSender(
            config,
            self._converters,
            self.offsets,
            self._tolerance,
            interrupt=StopGrace(self._services.control, _SEND_SHARE * stop_seconds(self._spec.worker)).check,
            new_topic=self._new_topic,
            acknowledge=acknowledge,
            on_sent=metrics.gave,
            tolerant=tolerant,
            submit=submit,
            wrap=functools.partial(with_trace_headers, self._services.spans),
        )

    def _new_topic(self, topic: str) -> None:
        self._topic_creation.ensure(topic)
        self._services.reporter.topic(topic)
