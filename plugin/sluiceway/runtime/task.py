"""What a task loop is given and what it answers: the seam between the loops and whoever places them (Spark, tests)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sluiceway.config.worker import WorkerConfig
from sluiceway.storage.interfaces import OffsetBackingStore
from sluiceway.storage.model import State, TaskId


class Order(enum.Enum):
    """What a task is to do now."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"
    ABANDON = "abandon"
    """Stop at once and commit nothing: a newer driver has taken over."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """Everything a loop needs to run one task. Picklable: it travels to the executor.

    ``config`` is the task's config as in the config topic (connector config plus what ``task_configs`` returned).
    ``version`` is the connector's, for status records.
    ``bounded`` ends the loop once everything that was there at its start has been moved (a micro-batch).
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
    """What a loop did: ``records`` read from the source or put into the sink.

    ``lost`` ends an exactly-once task whose transactional id was taken over, or whose transaction the cluster gave up: it
    wrote and reported nothing more. If no newer driver did it, the task may be placed anew and goes on where it was.
    """

    id: TaskId
    records: int = 0
    failed: bool = False
    trace: str | None = None
    lost: bool = False


class TaskControl(Protocol):
    """Tells a loop what to do. Cheap enough to be asked after each batch."""

    def order(self) -> Order: ...

    def wait(self, seconds: float) -> None:
        """Wait until the order changes, at most this long."""

    def close(self) -> None: ...


class TaskReporter(Protocol):
    """Takes a task's state changes, and the topics that it uses."""

    def report(self, state: State, trace: str | None = None) -> None: ...

    def topic(self, topic: str) -> None:
        """Say that the task uses a topic; called once for each topic."""


@dataclass(slots=True)
class TaskServices:
    """The other end of a loop: its orders, where it reports, and where source offsets live (None for sinks)."""

    control: TaskControl
    reporter: TaskReporter
    offsets: OffsetBackingStore | None = field(default=None)
