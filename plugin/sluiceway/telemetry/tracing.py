"""Makes spans with OpenTelemetry's SDK, if the environment asks for traces by OTLP. Without that it imports nothing.

A process has one exporter, which is made when its first span begins: Python workers are forked, and threads do not survive that.
Spans are exported on a thread of the SDK. The global tracer provider is left alone, because in Airflow it is Airflow's.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from sluiceway import __version__
from sluiceway.telemetry.environment import Signal, enabled, resource, uses_grpc, warn_missing

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Link, Span, Tracer

log = logging.getLogger(__name__)

Attributes = Mapping[str, str | int | float | bool]
Headers = Sequence[tuple[str, bytes]]

CONNECTOR = "sluiceway.connector"
"""The attribute that names a span's connector."""

NOTHING: AbstractContextManager[None] = nullcontext()
"""Stands for a span while there are no traces. It has no state, so all threads share it."""

_FLUSH_SECONDS = 2.0


class Tracing:
    """The spans of this process."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._propagator = TraceContextTextMapPropagator()
        self.tracer: Tracer = provider.get_tracer("sluiceway", __version__)

    def span(
        self,
        name: str,
        attributes: Attributes,
        *,
        kind: str = "INTERNAL",
        context: Context | None = None,
        links: Sequence[Link] = (),
        start: int | None = None,
    ) -> AbstractContextManager[Span]:
        """Open a span that is the current one of this thread. An Exception that leaves it is recorded as its error.

        Args:
            kind: a name of OpenTelemetry's SpanKind.
            context: the parent; None for the current span of this thread.
            start: nanoseconds since the epoch; None for now.
        """
        from opentelemetry.trace import SpanKind

        return self.tracer.start_as_current_span(
            name, context, kind=SpanKind[kind], attributes=attributes, links=links, start_time=start
        )

    def record(
        self,
        name: str,
        attributes: Attributes,
        seconds: float,
        *,
        error: BaseException | None = None,
        failed: bool = False,
        kind: str = "INTERNAL",
        context: Context | None = None,
    ) -> None:
        """Make a span of something that has just ended and took so long. ``failed`` is an error without an exception."""
        from opentelemetry.trace import SpanKind, StatusCode

        end = time.time_ns()
        start = end - int(seconds * 1e9)
        span = self.tracer.start_span(name, context, kind=SpanKind[kind], attributes=attributes, start_time=start)
        if error is not None:
            span.record_exception(error)
        if error is not None or failed:
            span.set_status(StatusCode.ERROR, None if error is None else f"{type(error).__name__}: {error}")
        span.end(end)

    def headers(self) -> list[tuple[str, bytes]]:
        """Return the headers of the W3C Trace Context for the current span of this thread; none without a span."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return [(name, value.encode()) for name, value in carrier.items()]

    def context_of(self, headers: Sequence[tuple[str, Any]] | None) -> Context | None:
        """Return the context that the headers of a record or request carry, None without a valid one."""
        from opentelemetry.trace import get_current_span

        if not headers:
            return None
        carrier = {name.lower(): _text(value) for name, value in headers if name.lower() in self._propagator.fields}
        context = self._propagator.extract(carrier, root())
        return context if get_current_span(context).get_span_context().is_valid else None

    def link(self, context: Context) -> Link:
        """Return a link to the span of a context."""
        from opentelemetry.trace import Link, get_current_span

        return Link(get_current_span(context).get_span_context())

    def flush(self, seconds: float = _FLUSH_SECONDS) -> None:
        """Export what has ended, for some seconds at most: a receiver that is down must not keep a task from ending."""
        thread = threading.Thread(target=self._provider.force_flush, name="otlp-flush", daemon=True)
        thread.start()
        thread.join(seconds)


def root() -> Context:
    """Return the context without a span, the parent of a new trace."""
    from opentelemetry.context import Context

    return Context()


def tracing() -> Tracing | None:
    """Return what makes the spans of this process, None if the environment asks for none. Thread-safe."""
    return _process.tracing()


def span(name: str, attributes: Attributes, *, kind: str = "INTERNAL") -> AbstractContextManager[object]:
    """Open a span, as ``Tracing.span``; without traces, do nothing."""
    made = tracing()
    return NOTHING if made is None else made.span(name, attributes, kind=kind)


def record(name: str, attributes: Attributes, seconds: float, error: BaseException | None = None) -> None:
    """Make a span of what has ended, as ``Tracing.record``; without traces, do nothing."""
    made = tracing()
    if made is not None:
        made.record(name, attributes, seconds, error=error)


def flush() -> None:
    """Export what has ended, for two seconds at most; without traces, do nothing."""
    made = _process.made
    if made is not None:
        made.flush()


@contextmanager
def using(provider: TracerProvider | None) -> Iterator[Tracing | None]:
    """Make this process's spans with a provider while the context is open; None: make none. For tests."""
    before = _process.pid, _process.made
    _process.pid, _process.made = os.getpid(), None if provider is None else Tracing(provider)
    try:
        yield _process.made
    finally:
        _process.pid, _process.made = before


class _Process:
    """The tracing of this process, made once. A forked process makes its own."""

    def __init__(self) -> None:
        self.pid = 0
        self.made: Tracing | None = None
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.pid, self.made, self._lock = 0, None, threading.Lock()

    def tracing(self) -> Tracing | None:
        if self.pid:
            return self.made
        with self._lock:
            if not self.pid:
                self.made = _made(os.environ)
                self.pid = os.getpid()
        return self.made


_process = _Process()


def _made(environment: Mapping[str, str]) -> Tracing | None:
    if not enabled(Signal.TRACES, environment):
        return None
    try:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        exporter = _exporter(environment)
        provider = TracerProvider(resource=resource(f"{os.uname().nodename}:{os.getpid()}"))
    except ImportError as error:
        warn_missing(Signal.TRACES, error, environment)
        return None
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider)


def _exporter(environment: Mapping[str, str]) -> SpanExporter:
    """Return OpenTelemetry's exporter for the protocol of the environment. It reads the other variables itself."""
    if uses_grpc(Signal.TRACES, environment):
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
