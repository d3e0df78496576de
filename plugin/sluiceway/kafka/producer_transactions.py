"""The transactions of a producer that sends records one by one: an exactly-once task's. Executor; one thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException, Producer

from sluiceway.errors import ConnectError, FencedError
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.kafka.topic_writer import Write

log = logging.getLogger(__name__)

_SLICE_SECONDS = 1.0
_REMIND_SECONDS = 30.0
# Asked before its first connection stands, librdkafka looks for the coordinator again only 0.5 s later.
_CONNECT_SECONDS = 0.06

Check = Callable[[], None]
"""Called about once a second while a call waits for the cluster; raises to give up."""


class ProducerTransactions:
    """Begins and ends transactions. A cluster that is away is waited for, for as long as the transaction may last.

    Every method raises FencedError once a newer producer has the transactional id, and KafkaClientError for all else that
    cannot be waited out; then only ``abort`` is of use.
    """

    def __init__(self, client: Producer, transactional_id: str) -> None:
        self._client = client
        self._id = transactional_id
        self.open = False

    def fence(self, check: Check) -> None:
        """Take the transactional id over from all earlier producers, and finish or abort what they left open."""
        time.sleep(_CONNECT_SECONDS)
        self._wait(self._client.init_transactions, "take over the transactional id", check)

    def begin(self) -> None:
        """Begin a transaction, unless one is open."""
        if not self.open:
            with mapped_errors(f"begin a transaction as {self._id}"):
                self._client.begin_transaction()
            self.open = True

    def send(self, records: Sequence[Write], check: Check) -> None:
        """Hand further records to the open transaction, waiting while the producer's buffer is full."""
        for topic, key, value in records:
            with mapped_errors(f"write to topic {topic} as {self._id}"):
                while True:
                    try:
                        self._client.produce(topic, key=key, value=value)
                        break
                    except BufferError:
                        self._client.poll(_SLICE_SECONDS)
                        check()

    def commit(self, check: Check) -> None:
        """Wait until everything sent has arrived, and commit it."""
        self._wait(self._client.commit_transaction, "commit a transaction", check)
        self.open = False

    def abort(self, check: Check) -> None:
        """Drop what the open transaction holds, sent or not."""
        self.open = False
        self._wait(self._client.abort_transaction, "abort a transaction", check)

    def error(self, error: ConnectError) -> ConnectError:
        """Return the error that made the producer fail for good where ``error`` only says that it has; else ``error``."""
        try:
            self._client.begin_transaction()
        except KafkaException as exception:
            cause = to_connect_error(exception.args[0], f"write as {self._id}")
            return cause if isinstance(cause, FencedError) else error
        self.open = True
        return error

    def _wait(self, call: Callable[[float], object], doing: str, check: Check) -> None:
        """Call until it is done. Each call goes on where the last one ran out of time."""
        remind = time.monotonic() + _REMIND_SECONDS
        while True:
            try:
                call(_SLICE_SECONDS)
                return
            except KafkaException as exception:
                error: KafkaError = exception.args[0]
                if not error.retriable() or error.txn_requires_abort() or error.fatal():
                    raise to_connect_error(error, f"{doing} as {self._id}") from exception
            if time.monotonic() >= remind:
                remind += _REMIND_SECONDS
                log.warning("Still waiting to %s as %s: %s", doing, self._id, error.str())
            check()
