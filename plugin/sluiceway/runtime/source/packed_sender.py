"""Produces the records of Java tasks, which arrive converted, without a loop in Python over the records."""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from sluiceway.api import Offset, Partition, SourceRecord
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.acknowledgements import SentRecords
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.source.failed_sends import FailedSends, is_record_error
from sluiceway.runtime.source.submitted_records import SubmittedPacked, SubmittedRecord, partition_and_offset

_Report = Callable[[Any, Any], None]


class ProduceOne(Protocol):
    """Produces a record, waiting while the buffer is full. Raises ConnectError with the client's error as its cause."""

    def __call__(self, topic: str, value: bytes | None, key: bytes | None, options: Mapping[str, Any], /) -> None: ...


class PackedSender:
    """Produces parts of batches, and collects where in Kafka their records are. Belongs to one ``RecordSender``.

    ``produce`` is the client's method and ``use`` is called with each topic before. ``rejected`` gets the delivery report of a
    record that Kafka did not accept. ``failed_sends`` is None if such a record fails the task. ``submit`` is called with what
    collects the places of a part's records before these are produced.
    """

    def __init__(
        self,
        produce: Callable[..., None],
        use: Callable[[str], None],
        produce_one: ProduceOne,
        rejected: Callable[[SourceRecord, SubmittedRecord | None, Any, Any], None],
        failed_sends: FailedSends | None,
        submit: Callable[[SentRecords], None],
        add_offset: Callable[[Partition | None, Offset | None], None],
    ) -> None:
        self._produce = produce
        self._use = use
        self._produce_one = produce_one
        self._rejected = rejected
        self._failed_sends = failed_sends
        self._submit = submit
        self._add_offset = add_offset

    def send(self, submitted: SubmittedPacked) -> None:
        """Produce a part in order.

        Raises ConnectError for a record that cannot be sent. The records before it have been produced and their offsets added.
        """
        part, sent = submitted.part, submitted.sent
        for topic in part.topics:
            self._use(topic)
        if sent is not None:
            self._submit(sent)
            sent.leave_out(submitted.left_out)
        values, keys, timestamps, headers = part.values, part.keys, part.timestamps, part.headers
        topics, reports = list(part.record_topics), self._reports(submitted)
        left, none = iter(values), itertools.repeat(None)
        to_topic, with_key, to_partition, then, at, with_headers = map(
            iter, (topics, keys, part.partitions, reports, timestamps, headers)
        )
        while True:
            try:
                # The fifth argument is an alias of the sixth and wins, even if it is None.
                produced = map(self._produce, to_topic, left, with_key, to_partition, then, none, at, with_headers)
                collections.deque(produced, maxlen=0)
                return
            except Exception:  # noqa: BLE001 (_send_one repeats it and handles the error)
                index = taken(values, left) - 1
                options = {"partition": part.partitions[index], "timestamp": timestamps[index], "headers": headers[index]}
                try:
                    self._send_one(submitted, index, {**options, "on_delivery": reports[index]})
                except (Exception, Interrupted):
                    for partition, offset in submitted.offsets_before(part.origins[index]):
                        self._add_offset(partition, offset)
                    raise

    def _send_one(self, submitted: SubmittedPacked, index: int, options: Mapping[str, Any]) -> None:
        part = submitted.part
        try:
            self._produce_one(part.topics[part.columns[1][index]], part.values[index], part.keys[index], options)
        except ConnectError as error:
            cause = error.__cause__
            if self._failed_sends is None or not isinstance(cause, ConnectError) or not is_record_error(cause):
                raise
            self._failed_sends.skip(part.record(index), self._waiting(submitted, index), cause)

    def _reports(self, submitted: SubmittedPacked) -> Sequence[_Report | None]:
        """Return a callback for the delivery report of each record, or None for those that need none."""
        indexes = range(len(submitted.part.origins))
        if submitted.sent is None and self._failed_sends is None:
            return [None] * len(indexes)
        return [functools.partial(self._on_delivery, submitted, index) for index in indexes]

    def _on_delivery(self, submitted: SubmittedPacked, index: int, error: Any, message: Any) -> None:
        if error is not None:
            self._rejected(submitted.part.record(index), self._waiting(submitted, index), error, message)
        else:
            self._delivered(submitted, index, *partition_and_offset(message))

    def _delivered(self, submitted: SubmittedPacked, index: int, partition: int, offset: int) -> None:
        if submitted.sent is not None:
            submitted.sent.add(submitted.part.origins[index], partition, offset)

    def _waiting(self, submitted: SubmittedPacked, index: int) -> SubmittedRecord | None:
        """Return what acknowledges a record that is sent again or skipped later."""
        if submitted.sent is None:
            return None
        return SubmittedRecord(submitted.part.record(index), 1, lambda _record, *place: self._delivered(submitted, index, *place))


def taken(values: Sequence[object], left: Iterator[object]) -> int:
    """Return how many values an iterator over them has returned."""
    return len(values) - operator.length_hint(left)
