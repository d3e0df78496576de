"""Defines what a task is given and what it returns: the interface between tasks and what launches them (Spark, tests)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sluiceway.config.worker import WorkerConfig
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.runtime.waits import Waits
from sluiceway.storage.interfaces import OffsetBackingStore
from sluiceway.storage.model import State, TaskId
from sluiceway.telemetry.task_spans import TaskSpans


class TaskCommand(enum.Enum):
    """A command to a task."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"
    ABANDON = "abandon"
    """Stop at once and commit nothing: a newer driver has taken over."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """Describes one task to run. Picklable, because it is sent to an executor.

    ``config`` is the task's config as in the config topic: the connector's config plus what ``task_configs`` returned.
    ``version`` is the connector's version, for status records.
    ``bounded`` ends the task once it has moved all records that were available when it started (a micro-batch).
    """

    id: TaskId
    config: Mapping[str, str]
    worker: WorkerConfig
    worker_id: str
    generation: int
    sink: bool
    version: str | None = None
    bounded: bool = False


@dataclass(slots=True)
class TaskResult:
    """Result of a task that has ended. ``records`` counts those read from the source or put into the sink.

    ``lost`` marks an exactly-once task whose transactional id was taken over or whose transaction the cluster ended. It
    reported nothing and wrote nothing more. Unless a newer driver took over, start the task again: it continues from its
    stored offsets.
    ``second_attempt`` marks a lost task that did not run, because Spark started it a second time by itself.
    """

    id: TaskId
    records: int = 0
    failed: bool = False
    trace: str | None = None
    lost: bool = False
    second_attempt: bool = False


class TaskControl(Protocol):
    """Provides a task's command. Cheap enough to call after each batch."""

    def command(self) -> TaskCommand: ...

    def wait(self, seconds: float) -> None:
        """Wait until the command changes or ``wake`` is called, at most this long. Does not wait if either happened before."""

    def wake(self) -> None:
        """End the current wait, or the next one. Thread-safe."""


class TaskReporter(Protocol):
    """Receives a task's state changes and the topics it uses."""

    def report(self, state: State, trace: str | None = None) -> None: ...

    def topic(self, topic: str) -> None:
        """Record that the task uses a topic. Called once for each topic."""


@dataclass(slots=True)
class TaskServices:
    """Connects a task to its driver: commands, status reports, and the store of source offsets (None for sinks).

    ``close`` ends the connections that are the task's own. ``metrics`` is where the task counts what it does, and ``spans`` where
    it says when, for traces. ``waits`` is where it says what it waits for.
    ``let_others_start`` ends what a start has of the processor for itself: call it before a start waits for the cluster.
    """

    control: TaskControl
    reporter: TaskReporter
    offsets: OffsetBackingStore | None = field(default=None)
    close: Callable[[], None] = lambda: None
    let_others_start: Callable[[], None] = lambda: None
    metrics: TaskMetrics = field(default_factory=lambda: TaskMetrics(TaskId("", 0), sink=False))
    spans: TaskSpans = field(default_factory=TaskSpans)
    waits: Waits = field(default_factory=Waits)
