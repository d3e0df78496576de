"""Publishes a connector's status at each change, and renews it with the driver's heartbeats."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluiceway.storage.model import State
from sluiceway.worker.control_channel import ControlChannel

_WITHOUT_VERSION = (State.UNASSIGNED, State.RESTARTING)


class StatusHeartbeat:
    """Writes one connector's status when it changes, and renews it every ``interval`` seconds. For the runner's thread.

    Raises FencedError after another driver's takeover.
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
        """Write the connector's state now. An unchanged state is only renewed, and not before that is due."""
        if (state, trace) == (self.state, self.trace):
            self.beat()
            return
        self.state, self.trace = state, trace
        self._channel.publish_connector(state, trace, version=self._version)
        self._next = self._clock() + self._interval

    def beat(self) -> None:
        """Renew the current state if that is due. The first time, this writes it."""
        if self._clock() >= self._next:
            self._channel.renew_connector(self.state, self.trace, version=self._version)
            self._next = self._clock() + self._interval

    @property
    def seconds_left(self) -> float:
        """Seconds until the current state must be renewed."""
        return max(0.0, self._next - self._clock())

    @property
    def _version(self) -> str | None:
        return None if self.state in _WITHOUT_VERSION else self.version
