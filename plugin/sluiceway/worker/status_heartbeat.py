"""What a driver says of its connector's state: at each change, and again at each heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluiceway.storage.model import State
from sluiceway.worker.control_channel import ConnectorPort

_WITHOUT_VERSION = (State.UNASSIGNED, State.RESTARTING)


class Announcer:
    """Writes one connector's status and repeats it every ``interval`` seconds. For the runner's thread.

    Each word is proof of the lease: what a newer driver has taken over cannot be said any more (FencedError).
    """

    def __init__(self, port: ConnectorPort, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = State.UNASSIGNED
        self.trace: str | None = None
        self.version: str | None = None
        self._port = port
        self._interval = interval
        self._clock = clock
        self._next = clock()

    def say(self, state: State, trace: str | None = None) -> None:
        """Write the connector's state now. What is said once more is not written: the next heartbeat does that."""
        if (state, trace) != (self.state, self.trace) or self._clock() >= self._next:
            self.state, self.trace = state, trace
            self._write()

    def beat(self) -> None:
        """Write the state again if it is time."""
        if self._clock() >= self._next:
            self._write()

    @property
    def seconds_left(self) -> float:
        """The time until the next heartbeat."""
        return max(0.0, self._next - self._clock())

    def _write(self) -> None:
        version = None if self.state in _WITHOUT_VERSION else self.version
        self._port.publish_connector(self.state, self.trace, version=version)
        self._next = self._clock() + self._interval
