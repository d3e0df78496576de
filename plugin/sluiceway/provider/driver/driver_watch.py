"""Watches over a running driver from a thread of the Airflow task: sees that the DAG is paused, sees that the JVM is gone."""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger(__name__)

_JVM_GRACE_SECONDS = 5.0
_MIRROR_SECONDS = 2.0


class Processes(Protocol):
    """What the watch does to a driver's processes (``DriverProcesses``)."""

    def look(self) -> None: ...

    def drain(self) -> bool: ...

    def kill(self) -> int: ...


class Step(enum.Enum):
    """The next thing to do to a driver that is to end."""

    WAIT = "wait"
    SIGTERM = "sigterm"
    KILL = "kill"


def next_step(elapsed: float, patience: float, *, signalled: bool) -> Step:
    """Return what to do ``elapsed`` seconds after a driver was to begin draining by itself: nothing, SIGTERM, kill. Pure."""
    if elapsed >= 2 * patience:
        return Step.KILL
    if elapsed >= patience and not signalled:
        return Step.SIGTERM
    return Step.WAIT


class DriverWatch:
    """A thread beside the blocking spark-submit.

    Args:
        name: the connector, for the log.
        is_paused: asks Airflow for the DAG's flag; may raise, which is logged and asked again.
        on_pause: called when the driver still runs some seconds after the flag was set, which means that no mirror has passed
            it on; sees to it that the connector's target state says so too.
        processes: returns the driver's processes; None before there are any, and where they are not ours (cluster mode).
        submit_ended: whether spark-submit is gone.
        interval: seconds between two looks.
        patience: seconds that the driver may take to drain by itself before SIGTERM, and as long again before it is killed.
    """

    def __init__(
        self,
        name: str,
        *,
        is_paused: Callable[[], bool],
        on_pause: Callable[[], None],
        processes: Callable[[], Processes | None],
        submit_ended: Callable[[], bool],
        interval: float,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.paused = False
        self._name = name
        self._is_paused = is_paused
        self._on_pause = on_pause
        self._processes = processes
        self._submit_ended = submit_ended
        self._interval = interval
        self._patience = patience
        self._clock = clock
        self._pause_seen: float | None = None
        self._target_is_set = False
        self._acted = False
        self._signalled = False
        self._jvm_gone: float | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{name}", daemon=True)

    def __enter__(self) -> DriverWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._end.wait(self._interval):
            try:
                self.look()
            except Exception:  # an outage of the API server or of Kafka must not end a running driver
                log.exception("[%s|worker] Could not look after the driver; trying again", self._name)

    def look(self) -> None:
        """Look once. The thread does so at each interval."""
        processes = self._processes()
        if processes is not None:
            processes.look()
            if self._submit_ended():
                self._after_the_jvm(processes)
                return
        if not self._acted:
            self._see_the_flag()
        if self._pause_seen is not None:
            self._see_it_drain(processes, self._clock() - self._pause_seen)

    def _see_the_flag(self) -> None:
        """A resume counts as well, as long as nothing was done here about the pause."""
        paused = self._is_paused()
        if paused and not self.paused:
            self._pause_seen = self._clock()
            log.info("[%s|worker] The DAG is paused; the driver drains", self._name)
        elif not paused:
            self._pause_seen = None
        self.paused = paused

    def _see_it_drain(self, processes: Processes | None, elapsed: float) -> None:
        step = next_step(elapsed, self._patience, signalled=self._signalled)
        if processes is None:
            pass  # the target state is all that reaches a driver elsewhere
        elif step is Step.SIGTERM:
            self._signalled = self._acted = True
            log.warning("[%s|worker] The driver has not drained within %g s; sending SIGTERM", self._name, elapsed)
            processes.drain()
        elif step is Step.KILL:
            log.warning("[%s|worker] The driver has not drained within %g s; killing it", self._name, elapsed)
            processes.kill()
        if not self._target_is_set and elapsed >= _MIRROR_SECONDS:
            self._on_pause()
            self._target_is_set = self._acted = True

    def _after_the_jvm(self, processes: Processes) -> None:
        """Spark-submit's log is read until its last writer is gone, so a Python driver left behind would hold up the task."""
        if self._jvm_gone is None:
            self._jvm_gone = self._clock()
        elif self._clock() - self._jvm_gone >= _JVM_GRACE_SECONDS and (killed := processes.kill()):
            log.warning("[%s|worker] Spark's JVM is gone; killed %d process(es) that it left behind", self._name, killed)
