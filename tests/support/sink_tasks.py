"""Calls sink tasks without Kafka as the runtime does."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sluiceway.api import SinkRecord, SinkTask
from sluiceway.errors import RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from support.eventually import LIMIT


def put_until_taken(task: SinkTask, context: MemorySinkContext, records: Sequence[SinkRecord]) -> None:
    """Put records, again after each RetriableError and the pause that the task asked for."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            return task.put(records)
        except RetriableError:
            assert time.monotonic() < deadline
            time.sleep(context.timeouts[-1] / 1000)
