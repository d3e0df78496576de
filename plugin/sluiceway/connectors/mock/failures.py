"""Injects the configured failures of tasks and connectors, deterministically."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from sluiceway.config.definition import ConfigValue
from sluiceway.connectors.mock import config as keys
from sluiceway.connectors.verifiable.config import ID, whole
from sluiceway.errors import ConnectError, RetriableError


class Failures:
    """The failures of one task or, with ``task`` None, of the connector; counted since this object was created."""

    def __init__(self, values: Mapping[str, ConfigValue], task: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        concerned = task is None or whole(values, keys.FAILURE_TASK) in (-1, task)
        self._where = values[keys.FAILURE_IN] if concerned else None
        self._kind = str(values[keys.FAILURE_KIND])
        self._after = whole(values, keys.FAILURE_AFTER)
        self._left = whole(values, keys.FAILURE_TIMES)
        self._hang_seconds = whole(values, keys.FAILURE_HANG_MS) / 1000
        self._clock = clock
        ends = concerned and task is not None and values[keys.MOCK_MODE] == keys.TASK_FAILURE
        self._end = clock() + whole(values, keys.DELAY_MS) / 1000 if ends else None

    @classmethod
    def of_task(cls, values: Mapping[str, ConfigValue]) -> Failures:
        """Return the failures of the task with these config values."""
        return cls(values, whole(values, ID))

    def room(self, where: str, records: int) -> int | None:
        """Return how many more records the task may move before ``where`` fails; None if it does not fail."""
        return max(0, self._after - records) if self._where == where and self._left else None

    def at(self, where: str, records: int = 0, more: int = 0) -> None:
        """Raise ConnectError or hang if ``where`` must fail after ``records`` records, or before ``more`` further ones."""
        if self._end is not None and where in (keys.POLL, keys.PUT) and self._clock() >= self._end:
            raise ConnectError(f"Mock task failure, as {keys.MOCK_MODE}={keys.TASK_FAILURE} asks for.")
        room = self.room(where, records)
        if room is None or (room and more <= room):
            return
        self._left -= 1 if self._left > 0 else 0
        text = f"Mock failure in {where} after {records} records, as {keys.FAILURE_IN} asks for."
        if self._kind == keys.HANG:
            threading.Event().wait(self._hang_seconds if self._hang_seconds >= 0 else None)
        elif self._kind == keys.RETRIABLE:
            raise RetriableError(text)
        else:
            raise ConnectError(text)


def is_bad(number: int, share: float) -> bool:
    """Return True if the record with this number is a bad one. Bad records are spread evenly."""
    return int((number + 1) * share) > int(number * share)
