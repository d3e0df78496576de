"""A writer of which there is one at a time: whoever fences last writes, all earlier ones are refused by Kafka itself.

Used as the lock on the config topic (``connect-cluster-<group.id>``, as Connect's leader does) and as the lease of a
connector's driver (``<group.id>-<connector>-driver``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Producer

from sluiceway.api.task import TopicPartition as Place
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError, KafkaClientError
from sluiceway.kafka.clients import internal_producer_config, producer
from sluiceway.kafka.errors import to_connect_error
from sluiceway.kafka.topic_writer import DeliveryReports, Write

log = logging.getLogger(__name__)
_TRANSACTION_SECONDS = 10  # how long a dead writer's open transaction can hide later records from readers
_ATTEMPTS = 5
# Asked before its first connection stands, librdkafka looks for the coordinator again only 0.5 s later.
_CONNECT_SECONDS = 0.06


class FencedWriter:
    """Writes each batch of records in a transaction of its own, or not at all. Driver or API server; one thread at a time."""

    def __init__(self, worker: WorkerConfig, transactional_id: str, client_id: str) -> None:
        self.transactional_id = transactional_id
        self._config = internal_producer_config(
            worker,
            client_id,
            **{
                "transactional.id": transactional_id,
                "transaction.timeout.ms": str(_TRANSACTION_SECONDS * 1000),
                "delivery.timeout.ms": str(_TRANSACTION_SECONDS * 1000),
            },
        )
        self._producer: Producer | None = None

    @property
    def active(self) -> bool:
        """Whether this writer has fenced and, as far as it knows, has not been fenced since."""
        return self._producer is not None

    def fence(self) -> None:
        """Shut out all earlier writers with this id, finish or abort what they left open, and become the one that writes.

        Takes some 70 ms.

        Raises:
            FencedError: another writer fenced at the same moment and won.
            KafkaClientError: the cluster did not answer.
        """
        self.close()
        client = producer(self._config)
        time.sleep(_CONNECT_SECONDS)
        self._retrying(lambda: client.init_transactions(_TRANSACTION_SECONDS), "take over the transactional id")
        self._producer = client

    def write(self, records: Sequence[Write]) -> dict[Place, int]:
        """Write records in one transaction; return, by partition, the offset after the last one.

        Readers that read committed records see them a moment later than this returns.

        Raises:
            FencedError: another writer has taken over; nothing was written, unless the cluster was lost while it answered.
            KafkaClientError: the cluster did not answer in time; the records may or may not be there. After this error
                and FencedError the writer needs ``fence`` before it can write again.
        """
        if self._producer is None:
            raise ConnectError(f"The writer {self.transactional_id} has not fenced, or lost its place; call fence() first.")
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                deliveries = self._transaction(self._producer, records)
                if deliveries is not None:
                    return deliveries.ends
                log.info("The transaction of %s was aborted by the cluster (attempt %d)", self.transactional_id, attempt)
            raise KafkaClientError(
                f"Cannot write as {self.transactional_id}: the cluster aborted the transaction {_ATTEMPTS} times. Nothing was "
                "written; see the brokers' logs."
            )
        except ConnectError:
            self.close()  # the producer's state is not known, or it is fenced for good
            raise

    def close(self) -> None:
        """Let go of the producer. An open transaction is left for the next ``fence``, or the timeout, to abort."""
        client, self._producer = self._producer, None
        if client is not None:
            with suppress(KafkaException):  # a producer that was fenced says so once more
                client.purge()
                client.flush(0)

    def _transaction(self, client: Producer, records: Sequence[Write]) -> DeliveryReports | None:
        """Write records, or return None if the cluster had the transaction aborted."""
        deliveries = DeliveryReports()
        try:
            self._retrying(client.begin_transaction, "begin a transaction")
            deliveries.send(client, records)
            self._retrying(lambda: client.commit_transaction(_TRANSACTION_SECONDS), "commit a transaction")
        except KafkaException as exception:
            error = exception.args[0]
            if not error.txn_requires_abort():
                raise self._error(error, "write") from exception
            self._retrying(lambda: client.abort_transaction(_TRANSACTION_SECONDS), "abort a transaction")
            return None
        return deliveries

    def _retrying(self, call: Callable[[], object], doing: str) -> None:
        """Call until it works, at most ``_ATTEMPTS`` times; an error that asks for an abort leaves as it is."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                call()
            except KafkaException as exception:
                error = exception.args[0]
                if error.txn_requires_abort() and not error.fatal():
                    raise
                if not error.retriable() or attempt == _ATTEMPTS:
                    raise self._error(error, doing) from exception
                log.warning("Cannot %s as %s yet: %s", doing, self.transactional_id, error.str())
            else:
                return

    def _error(self, error: KafkaError, doing: str) -> ConnectError:
        mapped = to_connect_error(error, f"{doing} as {self.transactional_id}")
        if not isinstance(mapped, FencedError):
            log.warning("%s", mapped)
        return mapped
