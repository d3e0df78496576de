"""Follows one connector through its lifecycle for its runner: start, task configs, failure, expiry and stop.

Corresponds to Connect's ``WorkerConnector``. Only the runner's thread uses it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from sluiceway.backoff import Backoff
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.reconcile import TooManyTasksError
from sluiceway.metrics.registry import registry
from sluiceway.runtime.waits import Waits
from sluiceway.storage.interfaces import OffsetBackingStore
from sluiceway.telemetry.tracing import CONNECTOR, record
from sluiceway.worker.connector_offsets import ConnectorOffsetReader
from sluiceway.worker.connector_thread import ConnectorThread

log = logging.getLogger(__name__)

WaitUntil = Callable[[Callable[[], bool], float], bool]
"""Waits until a condition is true, at most a number of seconds, and keeps heartbeats going; returns the condition's value."""

OpenSourceOffsets = Callable[[Mapping[str, str]], AbstractContextManager[OffsetBackingStore]]
"""Opens the store of a connector's offsets, by its config."""

_LATE_SECONDS = 60.0  # after which a call of the connector is worth a line in the log
_BACKOFF_SECONDS = (1.0, 60.0)  # first and longest delay before failed task configs are requested again


@dataclass(frozen=True, slots=True)
class Started:
    """``Connector.start`` has returned."""


@dataclass(frozen=True, slots=True)
class TaskConfigs:
    """The connector has returned its task configs."""

    configs: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Failed:
    """A call of the connector raised an error, or the connector reported one."""

    error: BaseException


Event = Started | TaskConfigs | Failed


@dataclass(slots=True)
class _Instance:
    """State of one Connector object.

    ``starting`` and ``request`` are calls under way, since ``called_at``. ``request_at`` is when (monotonic seconds) to request
    task configs.
    """

    thread: ConnectorThread
    starting: Future[None] | None
    started: bool = False
    failed: bool = False
    request: Future[list[dict[str, str]]] | None = None
    request_at: float | None = None
    backoff: Backoff = field(default_factory=lambda: Backoff(*_BACKOFF_SECONDS))
    called_at: float = field(default_factory=time.monotonic)
    late: bool = False


class WorkerConnector:
    """One connector's current object, if any. Only ``stop`` waits for the connector's code."""

    def __init__(
        self, name: str, worker: WorkerConfig, open_offsets: OpenSourceOffsets, notify: Callable[[], None], wait: WaitUntil
    ) -> None:
        self._name = name
        self._open_offsets = open_offsets
        self._worker = worker
        self._notify = notify
        self._wait = wait
        self._instance: _Instance | None = None

    @property
    def version(self) -> str | None:
        return self._instance.thread.version if self._instance is not None else None

    @property
    def exists(self) -> bool:
        """True from ``start`` to ``stop``, even if the connector has failed."""
        return self._instance is not None

    @property
    def failed(self) -> bool:
        """True if only a restart or another config can repair the connector."""
        return self._instance is not None and self._instance.failed

    @property
    def started(self) -> bool:
        """True once ``Connector.start`` has returned without an error."""
        return self._instance is not None and self._instance.started

    @property
    def waits(self) -> Waits:
        """What the connector waits for by its own account."""
        return self._instance.thread.waits if self._instance is not None else Waits()

    @property
    def settled(self) -> bool:
        """True if the connector runs and no request for its task configs is pending."""
        instance = self._instance
        return (
            instance is not None
            and instance.started
            and not instance.failed
            and instance.request is None
            and instance.request_at is None
        )

    @property
    def expired(self) -> bool:
        """True if a value from a config provider has expired, so that the connector must be restarted (KIP-297)."""
        return self._instance is not None and time.monotonic() >= self._instance.thread.valid_until

    @property
    def seconds_left(self) -> float:
        """Seconds until task configs must be requested again or a config value expires."""
        if self._instance is None:
            return float("inf")
        due = [self._instance.thread.valid_until]
        if self._instance.request_at is not None and self._instance.request is None:
            due.append(self._instance.request_at)
        return max(0.0, min(due) - time.monotonic())

    def start(self, config: Mapping[str, str]) -> None:
        """Create a new Connector object and start it; ``events`` reports the outcome."""
        offsets = ConnectorOffsetReader(self._name, lambda: self._open_offsets(config))
        thread = ConnectorThread(self._name, config, self._worker, offsets, self._notify)
        self._instance = _Instance(thread, thread.started)

    def events(self) -> list[Event]:
        """Return what has happened since the last call, and request task configs if that is due."""
        instance = self._instance
        if instance is None:
            return []
        found: list[Event] = []
        if instance.starting is not None and instance.starting.done():
            found.append(_after_start(instance, instance.starting, self._name))
        if instance.thread.error is not None:
            found.append(_fail(instance, instance.thread.error))
            instance.thread.error = None
        if instance.request is not None and instance.request.done():
            found.append(_after_request(instance, instance.request))
        _request_task_configs(instance)
        self._report_late_call(instance)
        return found

    def _report_late_call(self, instance: _Instance) -> None:
        call = "start()" if instance.starting is not None else "taskConfigs()" if instance.request is not None else None
        if call is not None and not instance.late and time.monotonic() - instance.called_at > _LATE_SECONDS:
            instance.late = True
            log.warning(
                "Connector %s: %s has not returned for %.0f s, so the connector has no new task configs. It may be waiting for "
                "another system. A restart or another config ends the call.",
                self._name,
                call,
                _LATE_SECONDS,
            )

    def retry_task_configs(self) -> None:
        """Request the task configs again after a back-off, because they could not be applied."""
        if self._instance is not None:
            _schedule_retry(self._instance)

    def reset_backoff(self) -> None:
        """Reset the delay of the next retry, because the task configs have been applied."""
        if self._instance is not None:
            self._instance.backoff.reset()

    def stop(self, timeout: float) -> None:
        """Stop the connector. If it does not return within ``timeout`` seconds, its thread is abandoned."""
        instance, self._instance = self._instance, None
        if instance is None:
            return
        began = time.monotonic()
        error: BaseException | None = None
        stopped = instance.thread.stop()
        if not self._wait(stopped.done, timeout):
            log.error("Connector %s did not stop within %g s; its thread is abandoned", self._name, timeout)
            instance.thread.abandon()
            error = TimeoutError(f"stop() has not returned within {timeout:g} s")
        elif (error := stopped.exception()) is not None:
            log.error("Connector %s failed to stop cleanly", self._name, exc_info=error)
        record("Connector.stop", {CONNECTOR: self._name}, time.monotonic() - began, error)


def _after_start(instance: _Instance, starting: Future[None], name: str) -> Event:
    instance.starting = None
    error = starting.exception()
    record("Connector.start", {CONNECTOR: name}, time.monotonic() - instance.called_at, error)
    registry.connector_started(succeeded=error is None)
    if error is not None:
        return _fail(instance, error)
    instance.started = True
    instance.request_at = time.monotonic()
    return Started()


def _after_request(instance: _Instance, request: Future[list[dict[str, str]]]) -> Event:
    instance.request = None
    error = request.exception()
    if error is None:
        return TaskConfigs(request.result())
    if isinstance(error, TooManyTasksError):  # a retry would give the same number of tasks
        return _fail(instance, error)
    _schedule_retry(instance)
    return Failed(error)


def _schedule_retry(instance: _Instance) -> None:
    instance.request_at = time.monotonic() + instance.backoff.next()


def _fail(instance: _Instance, error: BaseException) -> Event:
    instance.failed = True
    instance.request_at = None
    return Failed(error)


def _request_task_configs(instance: _Instance) -> None:
    if not instance.started or instance.failed or instance.request is not None:
        return
    due = instance.request_at is not None and time.monotonic() >= instance.request_at
    if due or instance.thread.reconfigure:
        instance.thread.reconfigure = False
        instance.request_at = None
        instance.called_at, instance.late = time.monotonic(), False
        instance.request = instance.thread.task_configs()
