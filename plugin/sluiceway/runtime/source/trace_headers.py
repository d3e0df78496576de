"""Adds the trace of a batch to the records that a source produces, for ``sluiceway.trace.headers``."""

from __future__ import annotations

from typing import Any, cast

from sluiceway.kafka.clients import Producer
from sluiceway.telemetry.task_spans import TaskSpans

_HEADERS = 7  # the index of the headers among the arguments of Producer.produce
_TRACE = "traceparent"


def with_trace_headers(spans: TaskSpans, client: Producer) -> Producer:
    """Return a producer whose records carry the trace of the current batch; without traces in headers, the same one."""
    return cast("Producer", _TracedProducer(client, spans)) if spans.carries else client


class _TracedProducer:
    """The part of a Producer that a task's sender uses. A record that carries a trace already keeps it."""

    def __init__(self, client: Producer, spans: TaskSpans) -> None:
        self._produce: Any = client.produce
        self._spans = spans
        self.flush = client.flush
        self.poll = client.poll
        self.purge = client.purge

    def produce(self, *arguments: Any, **options: Any) -> None:
        if len(arguments) > _HEADERS:
            own = arguments[_HEADERS]
            self._produce(*arguments[:_HEADERS], self._with_trace(own), *arguments[_HEADERS + 1 :], **options)
        else:
            self._produce(*arguments, **{**options, "headers": self._with_trace(options.get("headers"))})

    def _with_trace(self, own: Any) -> Any:
        trace = self._spans.headers
        if not own:
            return list(trace) or own
        headers = list(own.items()) if isinstance(own, dict) else list(own)
        return headers if any(name == _TRACE for name, _ in headers) else [*headers, *trace]
