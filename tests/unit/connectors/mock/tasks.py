"""Started tasks of the mock connectors."""

from __future__ import annotations

from sluiceway.api import SinkRecord
from sluiceway.connectors.mock.sink import MockSinkTask
from sluiceway.connectors.mock.source import MockSourceTask
from sluiceway.testing import MemorySinkContext, MemorySourceContext


def source(**config: str) -> MockSourceTask:
    """Return a started task; ``failure_in`` is the key ``failure.in``."""
    task = MockSourceTask()
    task.initialize(MemorySourceContext())
    task.start({key.replace("_", "."): value for key, value in {"topic": "t", **config}.items()})
    return task


def sink(*, reports: bool = False, **config: str) -> MockSinkTask:
    """Return a started task, with an errant record reporter if ``reports``."""
    task = MockSinkTask()
    task.initialize(MemorySinkContext(reports=reports))
    task.start({key.replace("_", "."): value for key, value in config.items()})
    return task


def records(start: int, end: int) -> list[SinkRecord]:
    """Return records with these offsets, whose values are the offsets."""
    return [SinkRecord("t", 0, offset, offset, key=0) for offset in range(start, end)]
