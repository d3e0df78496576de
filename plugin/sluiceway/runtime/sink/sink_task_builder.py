"""Creates what a sink task runs with: its consumer, converters, chain, error handling and context."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NoReturn

from sluiceway import discovery
from sluiceway.api import Refusal, RowFormReason, SinkRecord, SinkTask
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION, JAVA_OPTS
from sluiceway.config.intervals import FIELD, POSITIONS
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.java_plugins.hosts import task_host
from sluiceway.java_plugins.sink_task import JavaSinkTask
from sluiceway.metrics.client_statistics import INTERVAL
from sluiceway.runtime.columns import NO_ARROW, BatchForms, columns_available, has_columnar_form
from sluiceway.runtime.errors.errant_record_reporter import WorkerErrantRecordReporter
from sluiceway.runtime.errors.error_handling import retry_with_tolerance_operator
from sluiceway.runtime.errors.error_settings import ErrorSettings
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Interrupted, check_abandoned
from sluiceway.runtime.java_chain import java_chain
from sluiceway.runtime.plugin_metrics import describe_plugins
from sluiceway.runtime.sink.consumer_settings import java_sink_consumer, sink_consumer
from sluiceway.runtime.sink.interval_filter import IntervalFilter
from sluiceway.runtime.sink.java_batches import JavaSinkBatches
from sluiceway.runtime.sink.offset_commits import SinkOffsetCommitter
from sluiceway.runtime.sink.rebalance_listener import SinkRebalanceListener
from sluiceway.runtime.sink.record_time import field_time
from sluiceway.runtime.sink.sink_batches import SinkBatches
from sluiceway.runtime.sink.sink_task_context import WorkerSinkTaskContext
from sluiceway.runtime.sink.subscription import Subscription
from sluiceway.runtime.sink.task_consumer import TaskConsumer
from sluiceway.runtime.sink.task_wait import SinkTaskWait
from sluiceway.runtime.task import TaskCommand, TaskControl, TaskServices, TaskSpec
from sluiceway.runtime.task_converters import converters_of_bytes, task_converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, chain_of
from sluiceway.runtime.worker_task import log_errors

log = logging.getLogger(__name__)

_PUT_SHARE = 0.1  # of max.poll.interval.ms, for one put
_MAX_POLL_INTERVAL = "300000"
_FIRST_BATCH_SIZE = 10


class BatchSize:
    """Chooses how many records ``put`` is given at once, so that the consumer is polled within ``max.poll.interval.ms``.

    A consumer that is not polled in time loses its partitions, and their next owner repeats the work. So the size starts
    small, doubles up to ``most`` while a batch takes much less than ``seconds``, and shrinks if it takes longer.
    ``seconds`` must suffice for a target system whose every call is slow, however few the records.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = max(1, most)
        self._seconds = seconds
        self.size = min(_FIRST_BATCH_SIZE, self._most)

    def took(self, records: int, seconds: float) -> None:
        """Adjust the size to a ``put`` of so many records, which took ``seconds``."""
        if seconds > self._seconds:
            self.size = max(1, min(self.size, int(records * self._seconds / seconds)))
        elif records >= self.size and seconds < self._seconds / 4:
            self.size = min(self._most, self.size * 2)


@dataclass(frozen=True, slots=True)
class SinkTaskParts:
    """Everything a sink task runs with. ``task`` has not been started and ``consumer`` not subscribed."""

    task: SinkTask
    context: WorkerSinkTaskContext
    consumer: TaskConsumer
    subscription: Subscription
    listener: SinkRebalanceListener
    batches: SinkBatches | JavaSinkBatches
    tolerance: RetryWithToleranceOperator
    errant_record_reporter: WorkerErrantRecordReporter | None
    offsets: SinkOffsetCommitter
    wait: SinkTaskWait
    batch_size: BatchSize
    interval: IntervalFilter | None


def build_sink_task(spec: TaskSpec, services: TaskServices, resources: ExitStack) -> SinkTaskParts:
    """Return what a sink task runs with, and register its resources for closing.

    Raises ConfigError or KafkaClientError for settings that cannot be used.
    """
    config, worker, control = spec.config, spec.worker, services.control
    shutdown_seconds = worker.number("task.shutdown.graceful.timeout.ms") / 1000
    resources.enter_context(task_host(str(spec.id), config.get(JAVA_OPTS, ""), f"[{spec.id.connector}|task-{spec.id.task}] "))
    task = _new_task(config)
    in_java = java_chain(config, worker) if isinstance(task, JavaSinkTask) else None
    converters = converters_of_bytes() if in_java else task_converters(config, worker)
    resources.callback(log_errors, "Closing the converters", converters.close)
    # A record that is retried goes through the chain again, so its first pass must not have changed it.
    in_place = not ErrorSettings.of(config).retry_seconds
    chain: TransformationChain[SinkRecord] = TransformationChain() if in_java else chain_of(config, in_place=in_place)
    resources.callback(chain.close)
    subscription = Subscription(config, services.waits.waiting)
    forms = BatchForms(spec.id, services.metrics, _always_rows(task))
    settings, most = sink_consumer(spec, columns=forms.always is None)
    if isinstance(task, JavaSinkTask):
        reads = java_sink_consumer(spec, most) if in_java and not services.spans.reads_headers else None
        task.prepare(in_java, reads, functools.partial(_must_stop, control), shutdown_seconds, _interrupted)
    metrics = services.metrics
    java = task if isinstance(task, JavaSinkTask) and task.reads else None
    interval = _interval(config, worker, resources)
    consumer = _consumer(spec, settings, most, services, java, interval)
    resources.callback(log_errors, "Leaving the consumer group", consumer.close, shutdown_seconds)
    wait = SinkTaskWait(control, consumer)
    tolerance = retry_with_tolerance_operator(spec, wait, services.waits)
    resources.callback(tolerance.close)
    reporter = WorkerErrantRecordReporter(tolerance, converters) if tolerance.settings.reports_errors else None
    context = WorkerSinkTaskContext(config, consumer, reporter)
    offsets = SinkOffsetCommitter(
        task,
        consumer,
        context,
        worker.number("offset.flush.interval.ms") / 1000,
        flush_reports=_flush_reports(tolerance, reporter, functools.partial(check_abandoned, control)),
        flush_seconds=worker.number("offset.flush.timeout.ms") / 1000,
        last_commit_seconds=shutdown_seconds,
    )
    describe_plugins(metrics, spec, type(task), None if in_java else converters)
    metrics.count_errors_of(tolerance.counts)
    metrics.add_those_of_task(task.metrics)
    metrics.count_positions_of(lambda: positions(consumer, offsets))
    new_topic = functools.cache(services.reporter.topic)
    batches: SinkBatches | JavaSinkBatches
    if isinstance(task, JavaSinkTask) and in_java:
        batches = JavaSinkBatches(task, tolerance, new_topic)
    else:
        schemaless = task.takes_schemaless_columns
        needs = task.needs_schemas(config)
        batches = SinkBatches(converters, chain, tolerance, new_topic, forms, schemaless=schemaless, needs_schemas=needs)
    put_seconds = float(settings.get("max.poll.interval.ms", _MAX_POLL_INTERVAL)) / 1000 * _PUT_SHARE
    return SinkTaskParts(
        task=task,
        context=context,
        consumer=consumer,
        subscription=subscription,
        listener=SinkRebalanceListener(task, context, offsets, wait),
        batches=batches,
        tolerance=tolerance,
        errant_record_reporter=reporter,
        offsets=offsets,
        wait=wait,
        batch_size=BatchSize(most, put_seconds),
        interval=interval,
    )


def _interval(config: Mapping[str, str], worker: WorkerConfig, resources: ExitStack) -> IntervalFilter | None:
    """Return what picks the messages of an interval; None for a task that is not run for one."""
    if POSITIONS not in config:
        return None
    if (field := config.get(FIELD)) is None:
        return IntervalFilter(config)
    converters = task_converters(config, worker)  # of its own: those of the task may be Java's
    resources.callback(log_errors, "Closing the converters", converters.close)
    return IntervalFilter(config, field_time(field, converters.value))


def _new_task(config: Mapping[str, str]) -> SinkTask:
    task_class = discovery.connector_class(config[CONNECTOR_CLASS], config.get(CONNECTOR_VERSION)).task_class
    if not issubclass(task_class, SinkTask):
        raise ConfigError(CONNECTOR_CLASS, config[CONNECTOR_CLASS], "is not a sink connector")
    return task_class()


def _always_rows(task: SinkTask) -> Refusal | None:
    """Return why a task takes no columns, None if it does."""
    if not task.takes_columns or not has_columnar_form(type(task), "put_columns", "put"):
        return Refusal(RowFormReason.TASK, f"{type(task).__name__} has no columnar form")
    return None if columns_available() else NO_ARROW


def _consumer(
    spec: TaskSpec,
    settings: Mapping[str, str],
    most: int,
    services: TaskServices,
    java: JavaSinkTask | None,
    interval: IntervalFilter | None,
) -> TaskConsumer:
    """Return the task's consumer, which reports its statistics unless metrics are turned off."""
    committed = functools.partial(_committed, services)
    if not spec.worker.metrics_listener:
        return TaskConsumer(settings, most, on_commit=committed, java=java, interval=interval)
    statistics = services.metrics.client("consumer", settings["client.id"])
    config = {**INTERVAL, **settings, "stats_cb": statistics}
    if java is not None:
        java.take_fetch_metrics = statistics.take_fetch_metrics
        return TaskConsumer(config, most, on_commit=committed, java=java)
    return TaskConsumer(config, most, on_commit=committed, on_ends=statistics.take_ends, interval=interval)


def positions(consumer: TaskConsumer, offsets: SinkOffsetCommitter) -> list[tuple[int, int]]:
    """Return the offset after the last record put and the committed one, for each topic partition. Callable on any thread."""
    put, committed = dict(offsets.current_offsets), dict(consumer.committed)
    found = ((put.get(partition, 0), committed.get(partition)) for partition in consumer.assignment)
    return [(position, position if done is None else done) for position, done in found]


def _committed(services: TaskServices, seconds: float, *, succeeded: bool) -> None:
    services.metrics.committed(seconds, succeeded=succeeded)
    services.spans.committed(seconds, succeeded=succeeded)


def _must_stop(control: TaskControl) -> bool:
    check_abandoned(control)
    return control.command() is TaskCommand.STOP


def _interrupted() -> NoReturn:
    log.warning("The task was interrupted because it must stop. The records that it was given last are read again")
    raise Interrupted


def _flush_reports(
    tolerance: RetryWithToleranceOperator, reporter: WorkerErrantRecordReporter | None, check: Callable[[], None]
) -> Callable[[float], bool]:
    """Return ``SinkOffsetCommitter``'s ``flush_reports``. It includes records the task reported in ``pre_commit``."""

    def flush(seconds: float) -> bool:
        if reporter is not None:
            reporter.check()
        return tolerance.flush(seconds, check)

    return flush
