"""Records when the steps of a connector's start were reached, from its creation or resume to its first record.

The driver of a single connector logs them in one line, and writes them to the status topic for ``sluiceway describe``.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, DataError, NotFoundError
from sluiceway.storage.codec import HOST_PREFIX
from sluiceway.storage.factory import Stores
from sluiceway.storage.model import State
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

log = logging.getLogger(__name__)

REQUESTED = "config or target state written"
CONNECTOR_RUNS = "connector RUNNING"
TASKS_RUN = "tasks RUNNING"
FIRST_RECORD = "first record"

_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 60.0  # after which the steps are reported without those that have not been reached

Times = Mapping[str, float]
"""Seconds since the epoch at which steps were reached, by step."""


def times_key(connector: str) -> bytes:
    """Return the key of the record of the status topic that holds a connector's last times, as a JSON object."""
    return f"{HOST_PREFIX}times-{connector}".encode()


def decode_times(value: bytes) -> Times:
    """Raises DataError for bytes that no driver has written."""
    try:
        return {str(step): float(at) for step, at in json.loads(value).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"The times of a connector's start cannot be read: {error!r}") from error


def steps(times: Times) -> Sequence[tuple[str, float, float]]:
    """Return each step with the seconds since the step before it and since the first, in order of time."""
    ordered = sorted(times.items(), key=lambda each: each[1])
    return [(step, at - ordered[max(number - 1, 0)][1], at - ordered[0][1]) for number, (step, at) in enumerate(ordered)]


def line(times: Times) -> str:
    """Return the steps as one line of a log."""
    found = steps(times)
    said = ", ".join(f"{step} {total:.1f}" for step, _, total in found)
    return f"Start, in seconds: {said}"


def read_times(worker: WorkerConfig, connector: str) -> Times:
    """Read the times of a connector's last start. Raises NotFoundError if no driver has written any, and ConnectError."""
    found: list[bytes | None] = [None]

    def note(key: bytes, value: bytes | None) -> None:
        if key == times_key(connector):
            found[0] = value

    store = KafkaStatusBackingStore(worker)
    store.on_message(note)
    store.start()
    store.stop()
    if found[0] is None:
        raise NotFoundError(
            f"The times of connector {connector}'s start are unknown. They are written for a connector that has a Spark "
            "application of its own, within a minute of its start."
        )
    return decode_times(found[0])


class StartTimes:
    """The times of one connector's start. Runs on the driver, on a thread of its own. Thread-safe.

    Args:
        connector: the connector's name.
        before: the times that the Airflow task has recorded.
        clock: seconds since the epoch.
    """

    def __init__(self, connector: str, before: Times, clock: Callable[[], float] = time.time) -> None:
        self._connector = connector
        self._times = dict(before)
        """Also read by the thread, which adds the last steps."""
        self._clock = clock
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def mark(self, step: str, at: float | None = None) -> None:
        """Record a step, as reached now or at ``at``."""
        self._times[step] = self._clock() if at is None else at

    def watch(self, stores: Stores) -> None:
        """Watch the connector's statuses and topics from now on, and report once its first record is seen."""
        entry = stores.config.snapshot().entry(self._connector)
        first = min(self._times.values(), default=self._clock())
        # An earlier change is no reason for this start, such as that of a driver which replaces one that died.
        if entry is not None and entry.target_state_at / 1000 > 0 and first - entry.target_state_at / 1000 < _PATIENCE_SECONDS:
            self.mark(REQUESTED, entry.target_state_at / 1000)
        known = set(stores.status.topics(self._connector))
        self._thread = threading.Thread(target=self._run, args=(stores, known), name="start-times", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching. A start that has not been reported stays unreported."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self, stores: Stores, known: set[str]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        began = int(self._clock() * 1000) / 1000  # as precise as the timestamps of statuses
        try:
            while not self._complete(stores, known, began) and time.monotonic() < deadline:
                if self._end.wait(_POLL_SECONDS):
                    return
            log.info("[%s|worker] %s", self._connector, line(self._times))
            if isinstance(stores.status, KafkaStatusBackingStore):
                stores.status.put_message(times_key(self._connector), json.dumps(self._times).encode())
        except ConnectError as error:
            log.info("[%s|worker] The times of its start are unknown: %s", self._connector, error)

    def _complete(self, stores: Stores, known: set[str], began: float) -> bool:
        """Note what is new; return whether nothing more is awaited. Topics that were in use before show no first record."""
        status = stores.status.connector(self._connector)
        if status is not None and status.state is State.RUNNING and status.timestamp / 1000 >= began:
            self._times.setdefault(CONNECTOR_RUNS, status.timestamp / 1000)
        tasks = list(stores.status.tasks(self._connector).values())
        if tasks and all(task.state is State.RUNNING and task.timestamp / 1000 >= began for task in tasks):
            self._times.setdefault(TASKS_RUN, max(task.timestamp for task in tasks) / 1000)
        if set(stores.status.topics(self._connector)) - known:
            self._times.setdefault(FIRST_RECORD, self._clock())
        return TASKS_RUN in self._times and (bool(known) or FIRST_RECORD in self._times)
