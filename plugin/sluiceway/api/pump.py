"""Runs a blocking iterator on a thread of its own, for source tasks whose client has no call that returns at once."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from sluiceway.api.task import SourceTaskContext

log = logging.getLogger(__name__)

Item = TypeVar("Item")

_CLOSE_SECONDS = 30.0


class Pump(Generic[Item]):
    """Takes the items of an iterator on a thread, so that a client that waits for its system delays no pause and no stop.

    A source task makes a pump in ``start``, returns records of ``take`` from ``poll``, and calls ``close`` in ``stop``. At most
    ``most`` items wait for ``take``: then the iterator is not asked for more, also while the task is paused. What waits at a stop
    is dropped, so the source must give again what follows the stored offset.

    Runs on executors. The iterator runs on the pump's thread from its first step to its end, so that a client which belongs to
    a thread can be used; a generator's ``finally`` runs there, too.

    Args:
        context: the task's context. Its ``wait`` returns when there are items.
        items: makes the iterator, on the thread. What it raises, ``take`` raises after the items before it.
        most: the most items that wait.
        interrupt: called by ``close``, on its thread, to end a wait of the iterator, as closing a socket does.
    """

    def __init__(
        self,
        context: SourceTaskContext,
        items: Callable[[], Iterable[Item]],
        most: int = 1000,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        self._context = context
        self._items = items
        self._most = most
        self._interrupt = interrupt
        self._ready: deque[Item] = deque()
        self._changed = threading.Condition()
        self._stopping = self._exhausted = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)
        self._thread.start()

    def take(self, most: int, seconds: float = 0.0) -> list[Item]:
        """Return up to ``most`` items, and wait up to ``seconds`` for the first one. Raises what the iterator has raised."""
        if seconds > 0 and not self._ready and not self._exhausted:
            self._context.wait(seconds)
        with self._changed:
            taken = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
            if taken:
                self._changed.notify_all()
            elif self._failure is not None:
                raise self._failure
            return taken

    @property
    def ended(self) -> bool:
        """Whether the iterator has ended without an error and all of its items are taken. A task's ``ended`` may return it."""
        return self._exhausted and not self._ready and self._failure is None

    def close(self) -> None:
        """End the iterator, at its next item if its wait cannot be interrupted. Waits up to 30 s for that."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._interrupt is not None and self._thread.is_alive():
            self._interrupt()
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive():
            log.warning("The source has given nothing for %.0f s and cannot be ended: its thread is left alone", _CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            iterator = iter(self._items())
            try:
                self._fill(iterator)
            finally:
                close = getattr(iterator, "close", None)
                if close is not None:
                    close()
        except Exception as error:  # noqa: BLE001 (take() raises it)
            self._failure = error
        self._exhausted = True
        self._context.wake()

    def _fill(self, iterator: Iterator[Item]) -> None:
        for item in iterator:
            with self._changed:
                was_empty = not self._ready
                self._ready.append(item)
            if was_empty:
                self._context.wake()
            with self._changed:
                self._changed.wait_for(lambda: len(self._ready) < self._most or self._stopping)
                if self._stopping:
                    return
