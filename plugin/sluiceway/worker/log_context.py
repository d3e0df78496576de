"""Writes log lines with Connect's context prefix, such as ``[orders|task-0]``, also where one process runs many tasks."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NAMED = re.compile(r"\[[^|\]]+\|[^\]]+\] ")
_PREFIX: ContextVar[str] = ContextVar("log_prefix")


def log_to_stderr(prefix: str) -> None:
    """Log to standard error, which Spark keeps in the executor's log. ``prefix`` is for threads without one of their own."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PrefixFormatter(prefix))
    root = logging.getLogger()
    root.handlers[:] = [handler]  # a Python worker is reused for other tasks, which have other prefixes
    root.setLevel(logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it tells of each connection to the JVM that it closes


@contextmanager
def log_prefix(prefix: str) -> Iterator[None]:
    """Give the lines of the calling thread another prefix. Threads that it starts do not inherit it."""
    token = _PREFIX.set(prefix)
    try:
        yield
    finally:
        _PREFIX.reset(token)


class _PrefixFormatter(logging.Formatter):
    def __init__(self, prefix: str) -> None:
        super().__init__("%(asctime)s %(levelname)s %(prefix)s%(message)s (%(name)s)")
        self._default = prefix

    def format(self, record: logging.LogRecord) -> str:
        named = _NAMED.match(record.getMessage()) is not None  # code that also runs in Airflow tasks names its connector itself
        record.prefix = "" if named else _PREFIX.get(self._default)
        return super().format(record)
