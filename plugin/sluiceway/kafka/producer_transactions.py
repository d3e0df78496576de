"""Manages the transactions of an exactly-once source task's producer. Runs on executors, one thread per producer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException, Producer

from sluiceway.errors import ConnectError
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.kafka.topic_writer import ProducerRecord

log = logging.getLogger(__name__)

_CALL_SECONDS = 1.0
_WARNING_SECONDS = 30.0
# If asked before its first connection is up, librdkafka retries to find the coordinator only after 0.5 s.
_CONNECT_SECONDS = 0.06
_DELIVERY_SECONDS = 5.0

WITHOUT_CAUSE = frozenset({"_FATAL", "_STATE"})
"""The names of errors that say that the producer cannot continue, for a cause it reported before."""

Check = Callable[[], None]
"""Called about once a second while waiting for the cluster; raises an exception to stop waiting."""


class ProducerTransactions:
    """Begins, commits and aborts transactions, and waits for an unreachable cluster up to the transaction timeout.

    Every method raises FencedError once a newer producer uses the transactional id, and KafkaClientError for any other
    error that retrying cannot solve. After either, only ``abort`` may be called.
    """

    def __init__(self, client: Producer, transactional_id: str) -> None:
        self._client = client
        self._id = transactional_id
        self.open = False

    def fence(self, check: Check) -> None:
        """Fence all earlier producers with the transactional id, and complete or abort their open transactions."""
        time.sleep(_CONNECT_SECONDS)
        self._wait(self._client.init_transactions, "take over the transactional id", check)

    def begin(self) -> None:
        """Begin a transaction, unless one is open."""
        if not self.open:
            with mapped_errors(f"begin a transaction as {self._id}"):
                self._client.begin_transaction()
            self.open = True

    def send(self, records: Sequence[ProducerRecord], check: Check) -> None:
        """Add records to the open transaction. Waits while the producer's buffer is full."""
        for topic, key, value in records:
            with mapped_errors(f"write to topic {topic} as {self._id}"):
                while True:
                    try:
                        self._client.produce(topic, key=key, value=value)
                        break
                    except BufferError:
                        self._client.poll(_CALL_SECONDS)
                        check()

    def commit(self, check: Check) -> None:
        """Wait until all records sent are acknowledged, then commit the transaction."""
        self._wait(self._client.commit_transaction, "commit a transaction", check)
        self.open = False

    def await_delivery(self) -> None:
        """Wait some seconds until the records sent are acknowledged, and with them their partitions.

        Called before an abort of a healthy transaction, which otherwise fails with INVALID_TXN_STATE while the coordinator has
        accepted none of the transaction's partitions (librdkafka issue 4849).
        """
        self._client.flush(_DELIVERY_SECONDS)

    def abort(self, check: Check) -> None:
        """Abort the open transaction with all its records, acknowledged or not."""
        self.open = False
        self._wait(self._client.abort_transaction, "abort a transaction", check)

    def error(self, error: ConnectError) -> ConnectError:
        """Return the cause of an error that only says that the producer cannot continue, or ``error`` if none is known."""
        try:
            self._client.begin_transaction()
        except KafkaException as exception:
            cause: KafkaError = exception.args[0]
            return error if cause.name() in WITHOUT_CAUSE else to_connect_error(cause, f"write as {self._id}")
        self.open = True
        return error

    def _wait(self, call: Callable[[float], object], doing: str, check: Check) -> None:
        """Repeat a call until it is done; librdkafka resumes it after a timeout."""
        next_warning = time.monotonic() + _WARNING_SECONDS
        while True:
            try:
                call(_CALL_SECONDS)
                return
            except KafkaException as exception:
                error: KafkaError = exception.args[0]
                if not error.retriable() or error.txn_requires_abort() or error.fatal():
                    raise to_connect_error(error, f"{doing} as {self._id}") from exception
            if time.monotonic() >= next_warning:
                next_warning += _WARNING_SECONDS
                log.warning("Still waiting to %s as %s: %s", doing, self._id, error.str())
            check()
