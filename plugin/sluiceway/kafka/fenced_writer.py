"""Allows one writer at a time per transactional id: the one that fenced last writes, and Kafka rejects all earlier ones.

Serves as the lock on the config topic (``connect-cluster-<group.id>``, the id that Connect's leader uses) and as the lease
of a connector's driver (``<group.id>-<connector>-driver``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Producer

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError, KafkaClientError
from sluiceway.kafka.clients import internal_producer_config, producer
from sluiceway.kafka.errors import TOO_LARGE, to_connect_error
from sluiceway.kafka.topic_writer import DeliveryReports, Headers, ProducerRecord

log = logging.getLogger(__name__)
_TRANSACTION_SECONDS = 10  # for this long, a dead writer's open transaction hides later records from readers
_ATTEMPTS = 5
# If asked before its first connection is up, librdkafka retries to find the coordinator only after 0.5 s.
_CONNECT_SECONDS = 0.06


class FencedWriter:
    """Writes each batch of records in one transaction. Runs on the driver or in the API server.

    Not thread-safe: callers serialize their calls.
    """

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
        """Whether this writer has called ``fence`` and has not learned of a later writer since."""
        return self._producer is not None

    def fence(self) -> None:
        """Become the only writer: fence all earlier ones with this id, and complete or abort their open transactions.

        Takes about 70 ms.

        Raises:
            FencedError: another writer fenced at the same moment and won.
            KafkaClientError: the cluster did not answer.
        """
        self.close()
        client = producer(self._config)
        time.sleep(_CONNECT_SECONDS)
        self._retrying(lambda: client.init_transactions(_TRANSACTION_SECONDS), "take over the transactional id")
        self._producer = client

    def write(self, records: Sequence[ProducerRecord], headers: Headers = ()) -> dict[TopicPartition, int]:
        """Write records, each with these headers, in one transaction. Return the offset after the last one, by partition.

        Consumers with ``isolation.level=read_committed`` see them shortly after this method returns.

        Raises:
            FencedError: another writer has taken over. Nothing was written, unless the connection broke during the commit.
            KafkaClientError: the cluster did not answer in time. The records may or may not have been written. After this
                error and FencedError, call ``fence`` before the next write.
        """
        if self._producer is None:
            raise ConnectError(f"The writer {self.transactional_id} has not fenced or was fenced by another. Call fence() first.")
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                deliveries = self._transaction(self._producer, records, headers)
                if deliveries is not None:
                    return deliveries.ends
                log.info("The transaction of %s was aborted by the cluster (attempt %d)", self.transactional_id, attempt)
            raise KafkaClientError(
                f"Cannot write as {self.transactional_id}: the cluster aborted the transaction {_ATTEMPTS} times. Nothing was "
                "written. See the brokers' logs for the reason."
            )
        except ConnectError:
            self.close()  # the producer is fenced, or its state is unknown
            raise

    def close(self) -> None:
        """Close the producer. The next ``fence`` or the transaction timeout aborts an open transaction."""
        client, self._producer = self._producer, None
        if client is not None:
            with suppress(KafkaException):  # a fenced producer raises again
                client.purge()
                client.flush(0)

    def _transaction(self, client: Producer, records: Sequence[ProducerRecord], headers: Headers) -> DeliveryReports | None:
        """Write records in a transaction. Return None if the cluster aborted it."""
        deliveries = DeliveryReports()
        try:
            self._retrying(client.begin_transaction, "begin a transaction")
            deliveries.send(client, records, headers)
            self._retrying(lambda: client.commit_transaction(_TRANSACTION_SECONDS), "commit a transaction")
        except KafkaException as exception:
            error = exception.args[0]
            if not error.txn_requires_abort():
                raise self._error(_cause(client, error), "write") from exception
            self._retrying(lambda: client.abort_transaction(_TRANSACTION_SECONDS), "abort a transaction")
            if deliveries.failure is not None and deliveries.failure.name() in TOO_LARGE:
                raise self._error(deliveries.failure, "write") from exception
            return None
        return deliveries

    def _retrying(self, call: Callable[[], object], doing: str) -> None:
        """Repeat a call while its error is retriable, at most ``_ATTEMPTS`` times.

        An error that requires an abort is raised as KafkaException.
        """
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


def _cause(client: Producer, error: KafkaError) -> KafkaError:
    """Return what broke the producer. ``produce`` says only that something did, if another writer fences between two records."""
    if error.code() != KafkaError._FATAL:
        return error
    try:
        client.begin_transaction()
    except KafkaException as exception:
        return exception.args[0]  # type: ignore[no-any-return]
    return error
