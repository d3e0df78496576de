"""Runs Java source tasks. Their records arrive converted, packed in parts of a batch, or as values for a chain in Python.

Tolerance of errors, producing, transactions and offsets are the runtime's, as for tasks in Python.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from sluiceway.api import Offset, Partition, SourceRecord, SourceTask
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.acknowledgements import SentRecords
from sluiceway.java_plugins.commit_calls import CommitCalls
from sluiceway.java_plugins.connector import stored_offsets
from sluiceway.java_plugins.errors import JavaProcessError
from sluiceway.java_plugins.host import JavaObject, Watch
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

    while_polling: Callable[[float], None] = staticmethod(lambda _seconds: None)
    """Called while ``poll`` lasts, with the seconds so far, for what must not wait for it: acknowledgements and commits."""

    may_poll_ahead: Callable[[], bool] = staticmethod(lambda: False)
    """Returns whether the task may poll while its last batch is produced. It polls ahead only if the class cannot notice."""

    in_step = False
    """True if ``poll`` waits for ``commitRecord`` and ``commit``, as in Connect with transactions, where one thread calls all."""

    polls_ahead = False
    """True if the task was asked for a batch that ``poll`` has not returned."""

    interval: Mapping[str, int] | None = None
    """The end of the run's interval and the most skew of clocks, for ``IntervalBound.java``; None to send all that is polled."""

    told: Callable[[Mapping[str, Any] | None], None] = staticmethod(lambda _found: None)
    """Called after each poll with what ``IntervalBound.java`` held back; with None if it returned nothing."""

    _object: JavaObject | None = None
    _stopping: StopWatch | None = None

    def prepare(
        self, config: Mapping[str, str], chain: Mapping[str, object] | None, must_stop: Callable[[], bool], stop_seconds: float
    ) -> None:
        """Create the Java task, without starting it.

        ``chain`` describes the transforms and converters that run in Java (see ``Chain.java``); None if they run in Python.
        ``must_stop`` is called while a call of the task lasts, and may raise to leave it. A call that goes on for
        ``stop_seconds`` after that is ended by ending its Java process. Raises JavaError, JavaProcessError.
        """
        stopping = self._stopping = StopWatch(must_stop, stop_seconds)
        self._values = None if chain else Values()
        slot = current_slot()
        arguments = {"plugin": reference(self.plugin, config["task.class"]), "chain": chain, "interval": self.interval}
        self._object = slot.host().new(
            "source", arguments, context=slot.context, handler=self._serve, watch=lambda task: stopping(task, "The constructor")
        )
        self._calls = CommitCalls(self._object, slot.context)

    @property
    def wants_acknowledgements(self) -> bool:
        """Whether the Java class overrides ``commitRecord``; known after ``prepare``."""
        return self._calls.overridden[0]

    @property
    def observes(self) -> bool:
        """Whether the Java class overrides ``commitRecord`` or ``commit``; known after ``prepare``."""
        return any(self._calls.overridden)

    def start(self, config: Mapping[str, str]) -> None:
        self._call("start", {"config": dict(config), "transactions": self.context.transaction_context is not None})

    def poll(self) -> Any:
        """Return the next records, None if there are none.

        With a chain in Java, the result is the batch's first part; ``next_part`` returns the others.
        """
        if self.in_step:
            self._calls.await_all(self._watch("commitRecord() or commit()", interrupt=False))
        else:
            self._calls.acknowledge()
            self._calls.await_some(self._watch("commitRecord()", interrupt=False))
        self.polls_ahead = False
        header, body = self._batch_call("poll", self._attend)
        if header is None:
            return None
        if self._values is None:
            return PackedPart.of(header, body)
        return self._records(self._values, header, body)

    def _attend(self, seconds: float) -> None:
        self.while_polling(seconds)
        self._calls.acknowledge()

    def next_part(self) -> PackedPart:
        """Return the next part of the batch. It starts with the record that failed, if one did."""
        return self._next("pack")

    def skip(self) -> PackedPart:
        """Leave out the record that failed and return the part after it."""
        return self._next("skip")

    def sent_records(self, batch: int) -> SentRecords:
        """Return what collects the places in Kafka of a batch's records. The task gets them once they are released."""
        return self._calls.acknowledgements.of(batch)

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
        self._calls.commit()

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        """Acknowledge a record of this task."""
        if isinstance(record, JavaSourceRecord) and record.sent is not None:
            record.sent.add(record.index, partition, offset)

    def stop(self) -> None:
        if self._object is None or not self._object.host.alive:
            return
        self._stop_watch().begin()
        self._object.call("settle", watch=self._watch("poll()"))  # only after a failure, a poll lasts still
        self._calls.await_all(self._watch("commitRecord() or commit()", interrupt=False))
        self._object.call("stop", watch=self._watch("stop()", interrupt=False))

    def _next(self, method: str) -> PackedPart:
        return PackedPart.of(*self._batch_call(method))

    def _batch_call(self, method: str, attend: Watch = lambda _seconds: None) -> tuple[Any, bytes]:
        header, body = self._call(method, attend=attend)
        if method == "poll":
            self.told(None if header is None else header.get("interval"))
        if header is None:
            return header, body
        if action := header.get("batchAction"):
            self._end_transaction(action)
        # Both processes work while Python produces the batch. The task cannot notice if no method of it is called then, and if it
        # can read again what is polled and not produced when its process is killed. If it is stopped, that is produced.
        whole = header["positioned"] and header["end"] == header["size"] > 0
        if whole and not self.observes and self.context.transaction_context is None and self.may_poll_ahead():
            with suppress(JavaProcessError):  # the process has ended: the next call says why
                self._started_object().begin("ahead")
            self.polls_ahead = True
        return header, body

    def _end_transaction(self, action: str, record: SourceRecord | None = None) -> None:
        transactions = self.context.transaction_context
        if transactions is not None:
            (transactions.commit_transaction if action == "COMMIT" else transactions.abort_transaction)(record)

    def _records(self, values: Values, header: Mapping[str, Any], body: bytes) -> list[JavaSourceRecord]:
        sent = self.sent_records(header["batch"]) if self.wants_acknowledgements else None
        if sent is not None:
            sent.release()  # the runtime acknowledges a record when the task may learn of it
        records = source_records(values, values.loads(body), sent)
        for index, action in header["actions"]:
            self._end_transaction(action, records[index])
        return records

    def _call(
        self, method: str, args: Mapping[str, object] | None = None, attend: Watch = lambda _seconds: None
    ) -> tuple[Any, bytes]:
        watch = self._watch(f"{method}()")

        def both(seconds: float) -> None:
            watch(seconds)
            attend(seconds)

        return self._started_object().call_for_bytes(method, args, watch=both)

    def _started_object(self) -> JavaObject:
        if self._object is None:
            raise ConnectError("The task is not started.")
        return self._object

    def _watch(self, what: str, *, interrupt: bool = True) -> Watch:
        stopping = self._stop_watch()
        return lambda _seconds: stopping(self._object, what, interrupt=interrupt)

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

    def __call__(self, task: JavaObject | None, what: str, *, interrupt: bool = True) -> None:
        """Check a call that lasts: interrupt the task's thread, or kill its process, if it is time to.

        Raises JavaProcessError once the process was killed, and what ``must_stop`` raises.
        """
        if self._since is None and not self._must_stop():
            return
        self.begin()
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
