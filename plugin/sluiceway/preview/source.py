"""Runs a source connector and its tasks for a preview, and shows their records. Runs in the preview's process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from sluiceway.api import Offset, Partition, SourceConnector, SourceRecord, SourceTask
from sluiceway.api.data_frames import DataFrameSourceTask
from sluiceway.config.connector import JAVA_OPTS, NAME
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import RetriableError
from sluiceway.herder.reconcile import desired_task_configs
from sluiceway.java_plugins.hosts import task_host
from sluiceway.java_plugins.source_task import JavaSourceTask
from sluiceway.preview.errors import ErrorPolicy, Failures
from sluiceway.preview.images import record_image, written_image
from sluiceway.preview.request import Limits, PreviewRequest, Tell
from sluiceway.preview.steps import pass_through
from sluiceway.runtime.source.record_encoder import RecordEncoder
from sluiceway.runtime.source.source_task_builder import WorkerSourceTaskContext
from sluiceway.runtime.task import TaskCommand
from sluiceway.runtime.task_converters import task_converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, chain_of
from sluiceway.runtime.worker_task import log_errors
from sluiceway.storage.codec import encode_offset_key

_IDLE_SECONDS = 3.0  # without a record, after which a source counts as having none
_EMPTY_POLLS = 2
_WAIT_SECONDS = 0.5  # the longest wait of a task, so that each gets its turn
_PAUSE_SECONDS = 0.05
_SHARE = 0.9  # of the time for polling, so that what is open can be closed

_OFFERED = "The records are from the connector's own preview, which reads without effects."
_NO_JAVA = "The connector is a Java plugin. Previews do not run the tasks of Java plugins. The config is valid."
_NO_FRAMES = "The connector's tasks read DataFrames, which needs a Spark driver. The config is valid."


class StoredOffsets:
    """Implements ``OffsetStorageReader`` over offsets that were read before. Writes nothing."""

    def __init__(self, connector: str, offsets: Sequence[tuple[Partition | None, Offset | None]]) -> None:
        self._connector = connector
        self._offsets = {
            encode_offset_key(connector, partition): offset for partition, offset in offsets if partition is not None
        }

    def offset(self, partition: Partition) -> Offset | None:
        return self._offsets.get(encode_offset_key(self._connector, partition))

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        return [self.offset(partition) for partition in partitions]


class PreviewControl:
    """Implements ``TaskControl`` for a task that nobody commands. Its waits end with the preview's time."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def command(self) -> TaskCommand:
        return TaskCommand.RUN if time.monotonic() < self._deadline else TaskCommand.STOP

    def wait(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, _WAIT_SECONDS, self._deadline - time.monotonic())))

    def wake(self) -> None:
        """Do nothing: waits are short."""


class _ConnectorContext:
    """Implements ``SourceConnectorContext``. ``error`` is what the connector reported from a thread of its own."""

    def __init__(self, offsets: StoredOffsets) -> None:
        self.offset_storage_reader = offsets
        self.error: BaseException | None = None

    def request_task_reconfiguration(self) -> None:
        """Do nothing: the preview's tasks are the first ones."""

    def raise_error(self, error: BaseException) -> None:
        self.error = error

    def waiting(self, reason: object = None, seconds: float = 0.0) -> None:
        """Do nothing: the preview shows no status."""


class RecordViewer:
    """Tells a source's records: as read, after each transform, and as bytes."""

    def __init__(self, config: Mapping[str, str], worker: WorkerConfig, tell: Tell, resources: ExitStack) -> None:
        """Create the chain and the converters, and register them for closing. Raises ConfigError."""
        self._policy = ErrorPolicy(config)
        self._chain: TransformationChain[SourceRecord] = chain_of(config)
        resources.callback(self._chain.close)
        converters = task_converters(config, worker, preview=True)
        resources.callback(log_errors, "Closing the converters", converters.close)
        self._failures = Failures()
        self._encoder = RecordEncoder(converters, self._failures)
        self._tell = tell
        self.told = 0

    def view(self, record: SourceRecord) -> None:
        """Tell one record."""
        self.told += 1
        event: dict[str, Any] = {"event": "record", "number": self.told, "before": record_image(record)}
        passage = pass_through(self._chain.stages, record, self._policy)
        event |= {"steps": passage.steps, "written": [], "error": passage.error}
        for last in passage.records:
            converted = self._encoder.convert(last)
            failure = self._failures.take()
            if failure is not None:
                error, context = failure
                event["error"] = self._policy.image(error, context.stage.name, context.executing_class)
            elif converted is not None:
                key, value, options = converted
                event["written"].append(written_image(last.topic, key, value, options))
        self._tell(event)


def preview_source(cls: type[SourceConnector], config: Mapping[str, str], request: PreviewRequest, tell: Tell) -> str:
    """Tell up to the wanted number of records. Return why there are not more. ``config`` has no references any more."""
    refusal = _refusal(cls, config)
    with ExitStack() as resources:
        resources.enter_context(task_host(config.get(NAME, ""), config.get(JAVA_OPTS, "")))
        if refusal:
            tell({"event": "phase", "phase": f"{cls.__name__}.preview()"})
            context = _context(config, request, PreviewControl(time.monotonic() + request.limits.seconds * _SHARE))
            records = cls.preview(context, request.limits.records)
            if records is None:
                return refusal
            viewer = RecordViewer(config, request.worker, tell, resources)
            for record in records[: request.limits.records]:
                viewer.view(record)
            return f"{refusal} {_OFFERED}"
        return _Run(cls, config, request, tell, resources).records()


def _context(config: Mapping[str, str], request: PreviewRequest, control: PreviewControl) -> WorkerSourceTaskContext:
    offsets = StoredOffsets(config.get(NAME, ""), request.offsets or ())
    context = WorkerSourceTaskContext(config, offsets, control)
    context.longest_wait = _WAIT_SECONDS
    return context


def _refusal(cls: type[SourceConnector], config: Mapping[str, str]) -> str:
    """Return why a connector must not be started, empty if it may."""
    if issubclass(cls.task_class, JavaSourceTask):
        return _NO_JAVA
    if issubclass(cls.task_class, DataFrameSourceTask):
        return _NO_FRAMES
    effects = cls.start_effects(config)
    return f"The connector was not started, because {effects}. The config is valid." if effects else ""


class _Run:
    """A started connector with its tasks."""

    def __init__(
        self,
        cls: type[SourceConnector],
        config: Mapping[str, str],
        request: PreviewRequest,
        tell: Tell,
        resources: ExitStack,
    ) -> None:
        self._limits: Limits = request.limits
        self._deadline = time.monotonic() + request.limits.seconds * _SHARE
        self._tell = tell
        self._resources = resources
        self._request = request
        self._context = _ConnectorContext(StoredOffsets(config.get(NAME, ""), request.offsets or ()))
        self._control = PreviewControl(self._deadline)
        self._viewer = RecordViewer(config, request.worker, tell, resources)
        self._tasks = [self._task(cls, each) for each in self._task_configs(cls, config)]

    def records(self) -> str:
        """Poll the tasks in turn until there are enough records. Return why there are not more."""
        if not self._tasks:
            return "The connector has no tasks now: it found nothing to read."
        empty, last = [0] * len(self._tasks), time.monotonic()
        while time.monotonic() < self._deadline:
            for number, task in enumerate(self._tasks):
                records = self._poll(number, task)
                for record in records[: self._limits.records - self._viewer.told]:
                    self._viewer.view(record)
                if self._viewer.told >= self._limits.records:
                    return ""
                empty[number] = 0 if records else empty[number] + 1
                last = time.monotonic() if records else last
            if min(empty) >= _EMPTY_POLLS and time.monotonic() - last > _IDLE_SECONDS:
                return self._nothing(f"for {_IDLE_SECONDS:g} s")
        return self._nothing(f"within {self._limits.seconds:g} s")

    def _nothing(self, when: str) -> str:
        return f"The source had no{' more' if self._viewer.told else ''} records {when}."

    def _poll(self, number: int, task: SourceTask) -> Sequence[SourceRecord]:
        if self._context.error is not None:
            raise self._context.error
        self._phase(f"{type(task).__name__}.poll() of task {number}")
        try:
            records = task.poll() or ()
        except RetriableError as error:
            self._tell({"event": "warning", "text": f"poll() failed and would be retried: {error}"})
            records = ()
        if not records:
            self._control.wait(_PAUSE_SECONDS)
        return records

    def _task_configs(self, cls: type[SourceConnector], config: Mapping[str, str]) -> list[dict[str, str]]:
        self._phase(f"{cls.__name__}.start()")
        connector = cls()
        connector.initialize(self._context)
        self._resources.callback(log_errors, "The connector's stop()", connector.stop)
        connector.start(config)
        self._phase(f"{cls.__name__}.task_configs()")
        return desired_task_configs(connector, config)

    def _task(self, cls: type[SourceConnector], config: Mapping[str, str]) -> SourceTask:
        task = cls.task_class()
        self._phase(f"{cls.task_class.__name__}.start()")
        task.initialize(_context(config, self._request, self._control))
        self._resources.callback(log_errors, "The task's stop()", task.stop)
        task.start(config)
        return task

    def _phase(self, phase: str) -> None:
        self._tell({"event": "phase", "phase": phase})
