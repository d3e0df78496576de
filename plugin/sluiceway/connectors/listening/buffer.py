"""Holds what was received until the task polls: a queue with limits, and what says how much was lost. No I/O."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")
B = TypeVar("B", bound="Batch[Any]")

_SAY_SECONDS = 60.0


class Batch(Generic[T]):
    """Items that were received together. ``size`` is its memory in bytes, about; ``at`` is when it came, in milliseconds."""

    __slots__ = ("at", "items", "size")

    def __init__(self, items: Sequence[T], size: int, at: int) -> None:
        self.items = items
        self.size = size
        self.at = at


class Buffer(Generic[B]):
    """A queue of batches with a limit on their items, and one on their bytes. Thread-safe: receivers put, the task takes."""

    def __init__(self, most_items: int, most_bytes: int) -> None:
        self.most_items = most_items
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self._batches: deque[B] = deque()
        self._items = self._bytes = 0
        self._closed = False

    @property
    def items(self) -> int:
        """The items that wait."""
        return self._items

    @property
    def closed(self) -> bool:
        return self._closed

    def put(self, batch: B) -> bool:
        """Add a batch as a whole. Return False, and add nothing, if a limit does not allow it, or after ``close``."""
        with self._lock:
            items, size = self._items + len(batch.items), self._bytes + batch.size
            if self._closed or items > self.most_items or size > self.most_bytes:
                return False
            self._batches.append(batch)
            self._items, self._bytes = items, size
            return True

    def take(self) -> list[B]:
        """Return all batches, and remove them."""
        with self._lock:
            return self._emptied()

    def withdraw(self, batch: B) -> bool:
        """Remove a batch. Return False if it was taken already."""
        with self._lock:
            if batch not in self._batches:
                return False
            self._batches.remove(batch)
            self._items -= len(batch.items)
            self._bytes -= batch.size
            return True

    def close(self) -> list[B]:
        """Take no more batches. Return those that wait, and remove them."""
        with self._lock:
            self._closed = True
            return self._emptied()

    def _emptied(self) -> list[B]:
        taken = list(self._batches)
        self._batches.clear()
        self._items = self._bytes = 0
        return taken


class Losses:
    """Counts what is lost, and says each loss once: at first at once, then together with others after a minute. Thread-safe.

    ``text`` is the warning, with ``%d`` for the number. ``total`` has all losses since the start.
    """

    def __init__(self, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._text = text
        self._clock = clock
        self._lock = threading.Lock()
        self._unsaid = 0
        self._next = clock()
        self.total = 0

    def add(self, number: int) -> None:
        with self._lock:
            self.total += number
            self._unsaid += number

    def say(self, *, at_once: bool = False) -> None:
        """Log the losses that no warning has said, unless the last warning is not a minute old."""
        with self._lock:
            now, number = self._clock(), self._unsaid
            if not number or (now < self._next and not at_once):
                return
            self._unsaid, self._next = 0, now + _SAY_SECONDS
        log.warning(self._text, number)
