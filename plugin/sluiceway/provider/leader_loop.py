"""Repeats what the leader of the pause sync does beside it. Runs in the API server, in a thread of each process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

_STEP_SECONDS = 5.0


class LeaderLoop:
    """A thread that calls ``step`` every few seconds.

    Args:
        name: the thread's name.
        step: does nothing in a process that does not lead. What it raises is logged once, and it is called again.
        failed: the sentence to log then.
    """

    def __init__(self, name: str, step: Callable[[], None], failed: str) -> None:
        self._step = step
        self._failed = failed
        self.stopping = threading.Event()
        """Set when the thread must end."""
        self._thread = threading.Thread(target=self._run, name=f"sluiceway-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self.stopping.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        failing = False
        while not self.stopping.wait(_STEP_SECONDS):
            try:
                self._step()
                failing = False
            except Exception:  # the database or Kafka is unavailable; a later step sees what has happened meanwhile
                if not failing:
                    log.exception("%s, trying again every %g s", self._failed, _STEP_SECONDS)
                failing = True
