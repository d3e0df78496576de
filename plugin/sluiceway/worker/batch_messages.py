"""The records of the status topic through which Airflow tasks request micro-batches from shared applications.

A task writes a request, and a cancellation if it gives the batch up. The application's driver writes a report. Each has a key for
each connector, so that only the last record counts. A request is open until a final report or a cancellation has its id.
"""

from __future__ import annotations

import enum
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sluiceway.errors import DataError
from sluiceway.storage.codec import HOST_PREFIX
from sluiceway.storage.interfaces import StatusBackingStore
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

T = TypeVar("T")

log = logging.getLogger(__name__)

_REQUEST, _CANCELLATION, _REPORT = (f"{HOST_PREFIX}batch-{each}-" for each in ("request", "cancel", "report"))

Offsets = Sequence[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]


class BatchState(enum.Enum):
    """The state of a requested micro-batch."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    FENCED = "fenced"
    """Another driver has taken the connector over."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The report of the application's driver about the batch ``id``.

    Attributes:
        before: the connector's offsets at the batch's start; None if they could not be read.
        records: number of records that the batch has moved; None if unknown, because an earlier driver has begun it.
        seconds: duration of the batch.
        trace: why it failed.
    """

    id: str
    state: BatchState
    before: Offsets | None = None
    records: int | None = None
    seconds: float = 0.0
    trace: str | None = None


def request_key(connector: str) -> bytes:
    """Return the key of requests, whose value is the batch's id."""
    return f"{_REQUEST}{connector}".encode()


def cancellation_key(connector: str) -> bytes:
    """Return the key of cancellations, whose value is the batch's id. It is not the request's, which may be a newer batch's."""
    return f"{_CANCELLATION}{connector}".encode()


def report_key(connector: str) -> bytes:
    """Return the key of reports."""
    return f"{_REPORT}{connector}".encode()


def encode_report(report: BatchReport) -> bytes:
    fields = {
        "id": report.id,
        "state": report.state.value,
        "before": None if report.before is None else [list(each) for each in report.before],
        "records": report.records,
        "seconds": report.seconds,
        "trace": report.trace,
    }
    return json.dumps(fields, default=str).encode()


def decode_report(value: bytes) -> BatchReport:
    """Raises DataError for bytes that no driver of this version has written."""
    try:
        fields = json.loads(value)
        before = fields["before"]
        return BatchReport(
            id=str(fields["id"]),
            state=BatchState(fields["state"]),
            before=None if before is None else [(partition, offset) for partition, offset in before],
            records=fields["records"],
            seconds=float(fields["seconds"]),
            trace=fields["trace"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"The report of a micro-batch cannot be read: {error!r}") from error


class BatchMessages:
    """The last request, cancellation and report of each connector. Thread-safe.

    Args:
        status: the store that reads them. Without Kafka there are none.
        changed: called on the reader's thread after each of them.
    """

    def __init__(self, status: StatusBackingStore, changed: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, str] = {}
        self._canceled: dict[str, str] = {}
        self._reports: dict[str, BatchReport] = {}
        self._changed = changed
        if isinstance(status, KafkaStatusBackingStore):
            status.on_message(self._read)

    def requested(self) -> dict[str, str]:
        """Return the id of the last batch that was requested, by connector."""
        with self._lock:
            return dict(self._requests)

    def request(self, connector: str) -> str | None:
        """Return the id of the last batch that was requested for a connector."""
        with self._lock:
            return self._requests.get(connector)

    def report(self, connector: str) -> BatchReport | None:
        with self._lock:
            return self._reports.get(connector)

    def is_open(self, connector: str, batch: str) -> bool:
        """Return whether a batch is the last one requested, was not canceled, and has no final report."""
        with self._lock:
            report = self._reports.get(connector)
            ended = report is not None and report.id == batch and report.state is not BatchState.RUNNING
            return self._requests.get(connector) == batch and self._canceled.get(connector) != batch and not ended

    def _read(self, key: bytes, value: bytes | None) -> None:
        text = key.decode()
        try:
            with self._lock:
                if text.startswith(_REQUEST):
                    _put(self._requests, text[len(_REQUEST) :], None if value is None else value.decode())
                elif text.startswith(_CANCELLATION):
                    _put(self._canceled, text[len(_CANCELLATION) :], None if value is None else value.decode())
                elif text.startswith(_REPORT):
                    _put(self._reports, text[len(_REPORT) :], None if value is None else decode_report(value))
                else:
                    return
        except DataError as error:
            log.warning("%s", error)
            return
        self._changed()


def _put(values: dict[str, T], name: str, value: T | None) -> None:
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
