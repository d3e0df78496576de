"""Runs the micro-batches that Airflow tasks request from a shared application. Runs on the application's driver.

A batch is a bounded runner of its connector. It is repeated by the next driver if this one ends before the report.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder import Herder
from sluiceway.storage.factory import Stores
from sluiceway.storage.model import ConnectorEntry, State, TargetState
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from sluiceway.worker.batch_messages import BatchMessages, BatchReport, BatchState, Offsets, encode_report, report_key
from sluiceway.worker.connector_runner import ConnectorRunner, RunnerOutcome

log = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0
_MAX_OFFSETS = 1000  # of a report, as in a run's summary
_MAX_TRACE = 20_000  # characters
_STATES = {RunnerOutcome.FENCED: BatchState.FENCED, RunnerOutcome.FAILED: BatchState.FAILED}


@dataclass
class _Batch:
    """A batch that is prepared or runs. ``resumed``: an earlier driver has begun it."""

    report: BatchReport
    resumed: bool
    launched: bool = False
    started: float = field(default_factory=time.monotonic)


class Batches:
    """The micro-batches of one application. Thread-safe. ``stores`` are started; those of the offsets need not be."""

    def __init__(self, worker: WorkerConfig, stores: Stores) -> None:
        self._wake = threading.Event()
        self._messages = BatchMessages(stores.status, self._wake.set)
        self._worker = worker
        self._stores = stores
        self._herder: Herder | None = None
        self._offsets_store: KafkaOffsetBackingStore | None = None
        self._lock = threading.RLock()
        self._batches: dict[str, _Batch] = {}
        self._unwritten: dict[str, BatchReport] = {}
        self._served: dict[str, str] = {}
        """The last batch of each connector that has ended, whose report this driver may not have read yet."""
        self._closing = False
        self._is_member: Callable[[ConnectorEntry], bool] = lambda entry: False
        self._ready: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)

    def start(self, is_member: Callable[[ConnectorEntry], bool], ready: Callable[[], None]) -> None:
        """Serve requests for connectors of this application. ``ready`` is called when a batch can be launched or must end."""
        self._is_member, self._ready = is_member, ready
        self._stores.config.on_change(lambda _kind, _name: self._wake.set())
        self._thread.start()

    def close(self) -> None:
        """Write the last reports and end."""
        self._closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        if self._offsets_store is not None:
            self._offsets_store.stop()

    def is_due(self, connector: str) -> bool:
        """Return whether a batch of the connector must run now, or go on."""
        with self._lock:
            batch = self._batches.get(connector)
            return batch is not None and self._messages.is_open(connector, batch.report.id)

    def launched(self, connector: str) -> None:
        """Note that the connector's batch has a runner."""
        with self._lock:
            if connector in self._batches:
                self._batches[connector].launched = True

    def ended(self, runner: ConnectorRunner) -> None:
        """Report a runner's result. One that drained, such as for a pause, has none: the batch stays open."""
        name = runner.connector_name
        with self._lock:
            batch = self._batches.pop(name, None)
            if batch is None:
                return
            self._wake.set()
            state = BatchState.DONE if runner.batch_ended else _STATES.get(runner.outcome or RunnerOutcome.FAILED)
            if state is None:
                return
            report = replace(
                batch.report,
                state=state,
                records=None if batch.resumed else runner.records,
                seconds=round(time.monotonic() - batch.started, 3),
                trace=None if state is BatchState.DONE else self._trace(runner),
            )
            log.info("[%s|worker] Micro-batch %s: %s after %g s", name, report.id, state.value, report.seconds)
            self._served[name] = report.id
            self._unwritten[name] = report

    def _trace(self, runner: ConnectorRunner) -> str:
        """Return why a runner failed, with the traces of what is FAILED."""
        found = self._stores.status.snapshot().get(runner.connector_name)
        traces = [runner.failure or ""]
        if found is not None:
            own = [("Connector", found.connector)] if found.connector is not None else []
            statuses = [*own, *((f"Task {number}", status) for number, status in found.tasks.items())]
            traces += [f"{who}: {status.trace}" for who, status in statuses if status.state is State.FAILED and status.trace]
        return "\n".join(filter(None, traces))[:_MAX_TRACE]

    # The thread.

    def _run(self) -> None:
        while not self._closing or self._unwritten:
            self._wake.wait(_CHECK_SECONDS)
            self._wake.clear()
            try:
                self._write_reports()
                if not self._closing:
                    self._serve()
            except ConnectError as error:
                log.warning("Cannot serve the requests for micro-batches; trying again in a second: %s", error)
                if self._closing:
                    return
                time.sleep(_CHECK_SECONDS)
            self._ready()

    def _serve(self) -> None:
        """Prepare the batches that are requested and do not run yet."""
        state = self._stores.config.snapshot()
        if self._herder is None and any(
            self._is_member(entry) for entry in state.connectors.values() if entry.config is not None
        ):
            self._reader()  # before the first request, which must not wait for it
        for name, batch in self._messages.requested().items():
            entry = state.entry(name)
            if entry is None or entry.target_state is not TargetState.STARTED or not self._is_member(entry):
                continue
            with self._lock:
                known = self._batches.get(name)
                if known is not None and not known.launched and not self._messages.is_open(name, known.report.id):
                    del self._batches[name]  # canceled before it had a runner
                if name in self._batches or self._served.get(name) == batch or not self._messages.is_open(name, batch):
                    continue
            self._prepare(name, batch)

    def _prepare(self, name: str, batch: str) -> None:
        """Read the offsets before the batch, once: the next driver must not report what this one has moved as its start."""
        last = self._messages.report(name)
        resumed = last is not None and last.id == batch
        if last is None or not resumed:
            last = BatchReport(batch, BatchState.RUNNING, self._offsets(name))
            self._write(name, last)
        log.info("[%s|worker] Micro-batch %s begins%s", name, batch, " again" if resumed else "")
        with self._lock:
            self._batches[name] = _Batch(last, resumed)

    def _offsets(self, name: str) -> Offsets | None:
        try:
            return self._reader().offsets(name)[:_MAX_OFFSETS]
        except ConnectError as error:  # such as a config that cannot be resolved, which the runner will report
            log.warning("[%s|worker] Cannot read the offsets before its micro-batch: %s", name, error)
            return None

    def _reader(self) -> Herder:
        """Return what reads offsets. The first call reads the offsets topic, which only micro-batches need on the driver."""
        if self._herder is None:
            store = KafkaOffsetBackingStore(self._worker)
            store.start()
            self._offsets_store = store
            self._herder = Herder(self._worker, self._stores.config, self._stores.status, store)
        return self._herder

    def _write_reports(self) -> None:
        with self._lock:
            reports = dict(self._unwritten)
        for name, report in reports.items():
            self._write(name, report)
            with self._lock:
                if self._unwritten.get(name) is report:
                    del self._unwritten[name]

    def _write(self, name: str, report: BatchReport) -> None:
        self._stores.status.put_message(report_key(name), encode_report(report))  # type: ignore[attr-defined]
