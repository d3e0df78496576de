"""Puts together how a source task delivers: its producer, its offsets and, exactly once, its transactions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sluiceway.api import SourceTask, TransactionContext
from sluiceway.config.connector import overrides
from sluiceway.kafka.clients import producer_config, transactional_producer_config
from sluiceway.kafka.producer_transactions import ProducerTransactions
from sluiceway.runtime.errors.retry_with_tolerance import Tolerance
from sluiceway.runtime.interrupts import check_abandoned, check_interrupted
from sluiceway.runtime.source.delivery import AtLeastOnce, Delivery, ExactlyOnce, deferred
from sluiceway.runtime.source.exactly_once import (
    ExactlyOnceSettings,
    exactly_once_enabled,
    refuse_where_required,
    transactional_id,
)
from sluiceway.runtime.source.offset_storage import OffsetWriter
from sluiceway.runtime.source.record_sender import Acknowledge, RecordSender
from sluiceway.runtime.source.topic_creation import TopicCreation
from sluiceway.runtime.source.transaction_boundary import ConnectorBoundary
from sluiceway.runtime.task import TaskServices, TaskSpec
from sluiceway.runtime.task_converters import Converters
from sluiceway.storage.interfaces import OffsetBackingStore, TransactionalOffsets


class SourceDelivery(NamedTuple):
    """``delivery`` is not started yet; ``context`` is for the task."""

    delivery: Delivery
    sender: RecordSender
    context: TransactionContext | None


def source_delivery(
    spec: TaskSpec,
    services: TaskServices,
    store: OffsetBackingStore,
    task: SourceTask,
    converters: Converters,
    tolerance: Tolerance,
) -> SourceDelivery:
    """Return how a source task is to deliver. Raises ConfigError or KafkaClientError for settings that cannot be used."""
    making = _Making(spec, services, store, task, converters, tolerance)
    settings = ExactlyOnceSettings.of(spec.config, spec.worker)
    # Standalone mode's file cannot be part of a transaction: as in Connect, the worker's setting means nothing there.
    if exactly_once_enabled(spec.worker) and isinstance(store, TransactionalOffsets):
        return making.exactly_once(settings, store)
    refuse_where_required(settings)
    return making.at_least_once()


class _Making:
    def __init__(
        self,
        spec: TaskSpec,
        services: TaskServices,
        store: OffsetBackingStore,
        task: SourceTask,
        converters: Converters,
        tolerance: Tolerance,
    ) -> None:
        self._spec = spec
        self._services = services
        self._converters = converters
        self._tolerance = tolerance
        self._offsets = OffsetWriter(store, spec.id.connector)
        self._creation = TopicCreation(spec.id, spec.config, spec.worker)
        self._check = functools.partial(check_abandoned, services.control)
        self._client_id = f"connector-producer-{spec.id}"
        self._overrides = overrides(spec.config, "producer")
        overridden = type(task).commit_record is not SourceTask.commit_record
        self._acknowledge: Acknowledge | None = task.commit_record if overridden else None

    def at_least_once(self) -> SourceDelivery:
        worker = self._spec.worker
        sender = self._sender(
            producer_config(worker, self._client_id, self._overrides),
            self._acknowledge,
            tolerant=self._tolerance.settings.tolerant,
        )
        delivery = AtLeastOnce(
            sender,
            self._offsets,
            settled=self._tolerance.settle,
            check=self._check,
            interval=worker.number("offset.flush.interval.ms") / 1000,
            timeout=worker.number("offset.flush.timeout.ms") / 1000,
        )
        return SourceDelivery(delivery, sender, None)

    def exactly_once(self, settings: ExactlyOnceSettings, store: TransactionalOffsets) -> SourceDelivery:
        identity = transactional_id(self._spec.worker, self._spec.id)
        config = transactional_producer_config(
            self._spec.worker, self._client_id, identity, self._overrides, longest_ms=settings.interval_ms
        )
        calls: list[Callable[[], None]] = []
        sender = self._sender(config, None if self._acknowledge is None else deferred(self._acknowledge, calls))
        boundary = settings.new_boundary()
        delivery = ExactlyOnce(
            sender,
            self._offsets,
            store,
            ProducerTransactions(sender.client, identity),
            boundary,
            acknowledged=calls,
            settled=self._tolerance.settle,
            check=self._check,
        )
        return SourceDelivery(delivery, sender, boundary if isinstance(boundary, ConnectorBoundary) else None)

    def _sender(self, config: Mapping[str, str], acknowledge: Acknowledge | None, *, tolerant: bool = False) -> RecordSender:
        return RecordSender(
            config,
            self._converters,
            self._offsets,
            self._tolerance,
            interrupt=functools.partial(check_interrupted, self._services.control),
            new_topic=self._new_topic,
            acknowledge=acknowledge,
            tolerant=tolerant,
        )

    def _new_topic(self, topic: str) -> None:
        self._creation.ensure(topic)
        self._services.reporter.topic(topic)
