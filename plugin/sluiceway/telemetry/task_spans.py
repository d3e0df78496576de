"""The spans of one task: its start and stop, and for each batch poll, transform, produce or put, and commits.

A few calls for each batch, never for a record. Without traces they return at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from sluiceway.config.connector import CONNECTOR_CLASS, TRACE_HEADERS
from sluiceway.telemetry.tracing import CONNECTOR, NOTHING, Attributes, Headers, Tracing, root, tracing

if TYPE_CHECKING:
    from opentelemetry.context import Context

_MOST_LOOKS = 16


class Message(Protocol):
    """The part of a consumed message that says where it comes from."""

    def headers(self) -> Any: ...


class TaskName(Protocol):
    """Identifies a task."""

    @property
    def connector(self) -> str: ...

    @property
    def task(self) -> int: ...


class TaskSpans:
    """The spans of a task without traces: there are none. The task's thread calls all methods."""

    carries = False
    """Whether records that are produced carry the trace in their headers."""
    reads_headers = False
    """Whether ``batch`` needs the headers of messages."""
    headers: Headers = ()
    """The headers that carry the trace of the batch that is being produced."""

    def life(self, name: str) -> AbstractContextManager[object]:
        """Open a span of the task's life, such as ``start``."""
        return NOTHING

    def batch(self, seconds: float, records: int, messages: Sequence[Message] = ()) -> AbstractContextManager[object]:
        """Open the span of a batch, which began with a poll of so many seconds.

        Args:
            messages: of a sink's batch. It continues the trace of the first message, and is linked to those of the others.
        """
        return NOTHING

    def step(self, name: str, records: int) -> AbstractContextManager[object]:
        """Open the span of a batch's ``transform``, ``produce``, or ``put``."""
        return NOTHING

    def committed(self, seconds: float, *, succeeded: bool) -> None:
        """Make the span of a commit of offsets that has ended."""

    def flush(self) -> None:
        """Export the spans that have ended. May take two seconds."""


class TracedTask(TaskSpans):
    """The spans of a task with traces.

    Args:
        carries: as the attribute.
    """

    reads_headers = True

    def __init__(self, tracing: Tracing, attributes: Attributes, *, sink: bool, carries: bool) -> None:
        self._tracing = tracing
        self._sink = sink
        self.carries = carries
        self._attributes = {**attributes, "messaging.system": "kafka"}
        self._in_batch = False

    def life(self, name: str) -> AbstractContextManager[object]:
        return self._tracing.span(f"task {name}", self._attributes, context=root())

    @contextmanager
    def batch(self, seconds: float, records: int, messages: Sequence[Message] = ()) -> Iterator[None]:
        if not records:
            yield
            return
        attributes = {**self._attributes, "messaging.batch.message_count": records}
        context, others = self._origins(messages)
        began = time.time_ns() - int(seconds * 1e9)
        links = [self._tracing.link(other) for other in others]
        kind = "CONSUMER" if self._sink else "INTERNAL"
        with self._tracing.span("batch", attributes, kind=kind, context=context, links=links, start=began):
            self._tracing.record("poll", self._attributes, seconds)
            self._in_batch = True
            try:
                yield
            finally:
                self._in_batch = False

    @contextmanager
    def step(self, name: str, records: int) -> Iterator[None]:
        if not self._in_batch:
            yield
            return
        attributes = {**self._attributes, "messaging.batch.message_count": records}
        with self._tracing.span(name, attributes, kind="PRODUCER" if name == PRODUCE else "INTERNAL"):
            if self.carries and name == PRODUCE:
                self.headers = self._tracing.headers()
            try:
                yield
            finally:
                self.headers = ()

    def committed(self, seconds: float, *, succeeded: bool) -> None:
        self._tracing.record("commit", self._attributes, seconds, failed=not succeeded, context=root())

    def flush(self) -> None:
        self._tracing.flush()

    def _origins(self, messages: Sequence[Message]) -> tuple[Context, list[Context]]:
        """Return the trace that the first message carries, a new one without that, and those of others.

        Looks at a few messages across the batch: those of a source's batch share their trace, and each look costs.
        """
        found: dict[object, Context] = {}
        for message in messages[:: len(messages) // _MOST_LOOKS + 1]:
            headers = message.headers()
            context = self._tracing.context_of(headers)
            if context is not None:
                found.setdefault(dict(headers).get("traceparent"), context)
        contexts = list(found.values())
        return (contexts[0], contexts[1:]) if contexts else (root(), [])


TRANSFORM, PRODUCE, PUT = "transform", "produce", "put"
"""The steps of a batch. Rows are converted within ``produce``, columns and what a sink reads within ``transform``."""


def task_spans(config: Mapping[str, str], task: TaskName, *, sink: bool) -> TaskSpans:
    """Return what makes the spans of a task. ``config`` is the task's."""
    made = tracing()
    if made is None:
        return TaskSpans()
    attributes: dict[str, str | int] = {
        CONNECTOR: task.connector,
        "sluiceway.task": task.task,
        "sluiceway.connector.class": config.get(CONNECTOR_CLASS, ""),
        "sluiceway.connector.type": "sink" if sink else "source",
    }
    carries = not sink and config.get(TRACE_HEADERS, "").strip().lower() == "true"
    return TracedTask(made, attributes, sink=sink, carries=carries)
