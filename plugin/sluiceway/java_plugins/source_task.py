"""Runs Java source tasks. Their records arrive converted, packed in parts of a batch, or as values for a chain in Python.

Tolerance of errors, producing, transactions and offsets are the runtime's, as for tasks in Python.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sluiceway.api import Offset, Partition, SourceRecord, SourceTask
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.acknowledgements import Acknowledgements, SentRecords
from sluiceway.java_plugins.connector import stored_offsets
from sluiceway.java_plugins.errors import JavaProcessError
from sluiceway.java_plugins.host import JavaObject
from sluiceway.java_plugins.hosts import PluginLocation, current_slot, reference
from sluiceway.java_plugins.packed import PackedPart, source_offsets
from sluiceway.java_plugins.records import JavaSourceRecord, source_records
from sluiceway.java_plugins.values import Values

log = logging.getLogger(__name__)

_INTERRUPT_SHARE = 0.3  # of the time a task may take to stop: afterwards its thread is interrupted
_KILL_SHARE = 0.8  # afterwards its process is killed, while there is time left to report that


class JavaSourceTask(SourceTask):
    """A source task whose class is Java. Each plugin has a subclass of this class, with its ``plugin``.

    Call ``prepare`` before ``start``.
    """

    plugin: ClassVar[PluginLocation]

    _object: JavaObject | None = None
    _stopping: StopWatch | None = None
    _aborted = False

    def prepare(
        self, config: Mapping[str, str], chain: Mapping[str, object] | None, must_stop: Callable[[], bool], stop_seconds: float
    ) -> None:
        """Create the Java task, without starting it.

        ``chain`` describes the transforms and converters that run in Java (see ``Chain.java``); None if they run in Python.
        ``must_stop`` is called while a call of the task lasts, and may raise to leave it. A call that goes on for
        ``stop_seconds`` after that is ended by ending its Java process. Raises JavaError, JavaProcessError.
        """
        stopping = self._stopping = StopWatch(must_stop, stop_seconds)
        self._acknowledgements = Acknowledgements()
        self._values = None if chain else Values()
        slot = current_slot()
        arguments = {"plugin": reference(self.plugin, config["task.class"]), "chain": chain}
        self._object = slot.host().new(
            "source", arguments, context=slot.context, handler=self._serve, watch=lambda task: stopping(task, "The constructor")
        )
        self.wants_acknowledgements = bool(self._object.call("overridesCommitRecord"))

    wants_acknowledgements = True
    """Whether the Java class overrides ``commitRecord``; known after ``prepare``."""

    def start(self, config: Mapping[str, str]) -> None:
        self._call("start", {"config": dict(config), "transactions": self.context.transaction_context is not None})

    def poll(self) -> Any:
        """Return the next records, None if there are none.

        With a chain in Java, the result is the batch's first part; ``next_part`` returns the others.
        """
        header, body = self._batch_call("poll")
        if header is None:
            return None
        if self._values is None:
            return self._packed(header, body)
        return self._records(self._values, header, body)

    def next_part(self) -> PackedPart:
        """Return the next part of the batch. It starts with the record that failed, if one did."""
        return self._next("pack")

    def skip(self) -> PackedPart:
        """Leave out the record that failed and return the part after it."""
        return self._next("skip")

    def expect(self, batch: int, start: int, end: int, left: int) -> SentRecords:
        """Return the object that collects the places in Kafka of ``left`` records of a range; the others are left out.

        The task gets them with the call after ``confirm``.
        """
        return self._acknowledgements.expect(batch, start, end, left)

    def offsets_before(self, batch: int, index: int) -> list[tuple[Partition, Offset | None]]:
        """Return the newest offset of each source partition among a batch's records before an index.

        For a task that ends in this batch. The next batch may be polled already: a poll that lasts is ended as by ``stop``. The
        result is empty if the Java process ended.
        """
        self._stop_watch().begin()
        try:
            found = self._call("offsetsBefore", {"batch": batch, "index": index})[0]
        except ConnectError as error:
            log.warning("The offsets of records before the one that failed are not stored: %s", error)
            return []
        return source_offsets(found)

    def commit(self) -> None:
        self._call("commit")

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        """Acknowledge a record of this task."""
        if isinstance(record, JavaSourceRecord) and record.sent is not None:
            record.sent.add(record.index, partition, offset)
            if not record.sent.left:
                record.sent.confirm()

    def stop(self) -> None:
        if self._object is None or not self._object.host.alive:
            return
        stopping = self._stop_watch()
        stopping.begin()
        # The next batch may be polled already; nothing of it was produced.
        self._object.call("settle", watch=lambda _: stopping.end_late_call(self._object, "poll()"))
        self._object.call("stop", watch=lambda _: stopping.end_late_call(self._object, "stop()", interrupt=False))

    def _next(self, method: str) -> PackedPart:
        return self._packed(*self._batch_call(method))

    def _batch_call(self, method: str) -> tuple[Any, bytes]:
        if self._aborted:  # the transaction with all records that are not acknowledged
            self._acknowledgements = Acknowledgements()
        header, body = self._call(method)
        self._aborted = False
        if header is not None and (action := header.get("batchAction")):
            self._end_transaction(action)
        return header, body

    def _end_transaction(self, action: str, record: SourceRecord | None = None) -> None:
        transactions = self.context.transaction_context
        if transactions is not None:
            (transactions.commit_transaction if action == "COMMIT" else transactions.abort_transaction)(record)
        self._aborted |= action == "ABORT"

    def _packed(self, header: Mapping[str, Any], body: bytes) -> PackedPart:
        part = PackedPart.of(header, body)
        self._aborted |= part.action == "ABORT"
        return part

    def _records(self, values: Values, header: Mapping[str, Any], body: bytes) -> list[JavaSourceRecord]:
        size = header["size"]
        sent = self.expect(header["batch"], 0, size, size) if self.wants_acknowledgements else None
        records = source_records(values, values.loads(body), sent)
        for index, action in header["actions"]:
            self._end_transaction(action, records[index])
        return records

    def _call(self, method: str, args: Mapping[str, object] | None = None) -> tuple[Any, bytes]:
        if self._object is None:
            raise ConnectError("The task is not started.")
        ranges, places = self._acknowledgements.take()
        arguments = {**(args or {}), "acknowledged": ranges}
        watch = self._stop_watch()
        return self._object.call_for_bytes(method, arguments, places, watch=lambda _: watch(self._object, f"{method}()"))

    def _stop_watch(self) -> StopWatch:
        if self._stopping is None:
            raise ConnectError("The task is not prepared.")
        return self._stopping

    def _serve(self, method: str, args: Any) -> object:
        if method == "offsets":
            return stored_offsets(self.context.offset_storage_reader.offsets, args)
        raise ConnectError(f"Sluiceway does not serve {method} to source tasks.")


class StopWatch:
    """Ends a call of a task that lasts on when the task must stop: first by an interrupt, then by killing its process."""

    def __init__(self, must_stop: Callable[[], bool], seconds: float, interrupt_share: float = _INTERRUPT_SHARE) -> None:
        self._must_stop = must_stop
        self._seconds = seconds
        self._interrupt_share = interrupt_share
        self._since: float | None = None
        self.interrupted = False
        """True once a call was interrupted."""

    def begin(self) -> None:
        """Start the time that the task has to stop, unless it has started already."""
        if self._since is None:
            self._since = time.monotonic()

    def __call__(self, task: JavaObject | None, what: str) -> None:
        """Check a call that lasts. Raises JavaProcessError once its process was killed, and what ``must_stop`` raises."""
        if self._since is None and not self._must_stop():
            return
        self.begin()
        self.end_late_call(task, what)

    def end_late_call(self, task: JavaObject | None, what: str, *, interrupt: bool = True) -> None:
        """Interrupt the task's thread, or kill its process, if it is time to. Raises JavaProcessError after the latter."""
        if task is None or self._since is None:
            return
        waited = time.monotonic() - self._since
        if waited >= self._seconds * _KILL_SHARE:
            task.host.kill()
            raise JavaProcessError(
                f"{what} of the task did not return within {waited:.1f} s after the task had to stop, nor when it was "
                "interrupted. Its Java process was killed. Raise task.shutdown.graceful.timeout.ms if it needs longer."
            )
        if interrupt and not self.interrupted and waited >= self._seconds * self._interrupt_share:
            self.interrupted = True
            task.interrupt()
