"""Publishes a connector's status: at each change, and again as the driver's heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluiceway.storage.model import State
from sluiceway.worker.control_channel import ControlChannel

_WITHOUT_VERSION = (State.UNASSIGNED, State.RESTARTING)


class StatusHeartbeat:
    """Writes one connector's status and repeats it every ``interval`` seconds. For the runner's thread.

    Every write proves the lease again: after another driver's takeover it raises FencedError.
    """

    def __init__(self, channel: ControlChannel, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = State.UNASSIGNED
        self.trace: str | None = None
        self.version: str | None = None
        self._channel = channel
        self._interval = interval
        self._clock = clock
        self._next = clock()

    def set(self, state: State, trace: str | None = None) -> None:
        """Write the connector's state now. An unchanged state is not written before the next heartbeat is due."""
        if (state, trace) != (self.state, self.trace) or self._clock() >= self._next:
            self.state, self.trace = state, trace
            self._write()

    def beat(self) -> None:
        """Write the current state again if a heartbeat is due."""
        if self._clock() >= self._next:
            self._write()

    @property
    def seconds_left(self) -> float:
        """Seconds until the next heartbeat is due."""
        return max(0.0, self._next - self._clock())

    def _write(self) -> None:
        version = None if self.state in _WITHOUT_VERSION else self.version
        self._channel.publish_connector(self.state, self.trace, version=version)
        self._next = self._clock() + self._interval
