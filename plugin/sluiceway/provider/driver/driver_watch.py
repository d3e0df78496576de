"""Watches a running driver from a thread of the Airflow task: drains it when the DAG is paused, cleans up after its JVM."""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from sluiceway.provider.driver.outage import Outage

log = logging.getLogger(__name__)

_JVM_GRACE_SECONDS = 5.0
_PAUSE_SYNC_SECONDS = 2.0


class Processes(Protocol):
    """The operations on a driver's processes that the watch needs (``DriverProcesses``)."""

    def refresh(self) -> None: ...

    def drain(self) -> bool: ...

    def kill(self) -> int: ...


class DrainAction(enum.Enum):
    """The next action on a driver that must drain."""

    WAIT = "wait"
    SIGTERM = "sigterm"
    SIGKILL = "sigkill"


def drain_action(elapsed: float, timeout: float, *, signalled: bool) -> DrainAction:
    """Return the action ``elapsed`` seconds after the pause: wait for ``timeout``, then SIGTERM, then SIGKILL. No I/O."""
    if elapsed >= 2 * timeout:
        return DrainAction.SIGKILL
    if elapsed >= timeout and not signalled:
        return DrainAction.SIGTERM
    return DrainAction.WAIT


class DriverWatch:
    """A context manager that runs the watch in a daemon thread, while the task's main thread blocks in spark-submit.

    Args:
        name: the connector, for the log.
        is_paused: reads the DAG's paused flag from Airflow. An exception is logged, and the next check reads it again.
        on_pause: called if the driver still runs 2 s after the flag was set. The pause sync in the API server normally sets the
            connector's target state within that time; if it does not run, this callback must set it.
        processes: returns the driver's processes; None before they exist, and always None in cluster mode.
        submit_ended: returns whether the spark-submit process has ended.
        interval: seconds between two checks.
        drain_timeout: seconds that the driver may take to drain by itself before SIGTERM, and again before SIGKILL.

    ``paused`` is the DAG's flag as last read.
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
        drain_timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.paused = False
        self._name = name
        self._is_paused = is_paused
        self._on_pause = on_pause
        self._processes = processes
        self._submit_ended = submit_ended
        self._interval = interval
        self._drain_timeout = drain_timeout
        self._clock = clock
        self._paused_at: float | None = None
        self._target_is_set = False
        self._pause_is_final = False
        self._signalled = False
        self._jvm_gone_at: float | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{name}", daemon=True)

    def __enter__(self) -> DriverWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        outage = Outage(f"[{self._name}|worker] Cannot check the driver and its DAG's paused flag")
        while not self._end.wait(self._interval):
            try:
                self.check()
            except Exception as error:  # noqa: BLE001 (an outage of the API server or of Kafka must not end a running driver)
                outage.failed(error)
            else:
                outage.answered()

    def check(self) -> None:
        """Check flag and processes once. The thread calls this at each interval."""
        processes = self._processes()
        if processes is not None:
            processes.refresh()
            if self._submit_ended():
                self._kill_orphans(processes)
                return
        if not self._pause_is_final:
            self._read_flag()
        if self._paused_at is not None:
            self._enforce_drain(processes, self._clock() - self._paused_at)

    def _read_flag(self) -> None:
        """Read the DAG's flag; a resume cancels the pause until the target state is set or a signal is sent."""
        paused = self._is_paused()
        if paused and not self.paused:
            self._paused_at = self._clock()
            log.info("[%s|worker] The DAG is paused; the driver drains", self._name)
        elif not paused:
            self._paused_at = None
        self.paused = paused

    def _enforce_drain(self, processes: Processes | None, elapsed: float) -> None:
        action = drain_action(elapsed, self._drain_timeout, signalled=self._signalled)
        if processes is None:
            pass  # a driver in a cluster is reached through the target state only
        elif action is DrainAction.SIGTERM:
            self._signalled = self._pause_is_final = True
            log.warning("[%s|worker] The driver has not drained within %g s; sending SIGTERM", self._name, elapsed)
            processes.drain()
        elif action is DrainAction.SIGKILL:
            log.warning("[%s|worker] The driver has not drained within %g s; killing it", self._name, elapsed)
            processes.kill()
        if not self._target_is_set and elapsed >= _PAUSE_SYNC_SECONDS:
            self._on_pause()
            self._target_is_set = self._pause_is_final = True

    def _kill_orphans(self, processes: Processes) -> None:
        """Kill processes that outlive the JVM: spark-submit's log stays open until its last writer ends, and blocks the task."""
        if self._jvm_gone_at is None:
            self._jvm_gone_at = self._clock()
        elif self._clock() - self._jvm_gone_at >= _JVM_GRACE_SECONDS and (killed := processes.kill()):
            log.warning("[%s|worker] Spark's JVM has ended; killed %d process(es) that it left behind", self._name, killed)
