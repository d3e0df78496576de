"""Creates dead letter queue topics and reads the headers of their records.

The runtime writes the records; ``sluiceway dlq`` and the UI read and replay them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.java.numbers import whole_number
from sluiceway.kafka.admin import create_topic, partition_count
from sluiceway.kafka.clients import ConsumedMessage, admin_client

CONTEXT_PREFIX = "__connect.errors."
"""Prefix of Connect's context headers: ``topic``, ``partition``, ``offset``, ``connector.name``, ``task.id``, ``stage``, ..."""

_OWN_PREFIX = "__sluiceway.errors."
SOURCE_PARTITION = f"{_OWN_PREFIX}source.partition"
SOURCE_OFFSET = f"{_OWN_PREFIX}source.offset"
"""Headers with the source partition and offset of a source connector's record, as JSON. Connect has no such records."""

REPLAYED = "__sluiceway.replayed"
"""Header with the number of times that a record was replayed, as decimal text."""


def ensure_dead_letter_topic(
    worker: WorkerConfig, topic: str, replication_factor: int, overrides: Mapping[str, str] | None = None
) -> None:
    """Create a dead letter queue topic with one partition if it is missing. ``overrides`` are ``admin.override.*`` keys.

    Raises KafkaClientError if it cannot be created or the cluster does not answer.
    """
    admin = admin_client(worker, overrides)
    if partition_count(admin, topic) is not None:
        return
    try:
        create_topic(admin, topic, 1, replication_factor)
    except KafkaClientError as error:
        raise KafkaClientError(
            f"Could not initialize dead letter queue with topic={topic}: {error} Create the topic, or change "
            "errors.deadletterqueue.topic.replication.factor.",
            error.code,
        ) from error


@dataclass(frozen=True, slots=True)
class ConsumedDeadLetter:
    """A record read from a dead letter queue. ``timestamp`` is in milliseconds since the epoch, None if it has none."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    @classmethod
    def of(cls, message: ConsumedMessage) -> ConsumedDeadLetter:
        """Return the record in a consumed message."""
        kind, timestamp = message.timestamp()
        return cls(
            message.topic(),
            message.partition(),
            message.offset(),
            timestamp if kind else None,
            message.key(),
            message.value(),
            list(message.headers() or ()),
        )

    def context(self, name: str) -> str | None:
        """Return the value of one of Connect's context headers, such as ``stage``. None if it is missing."""
        return self.header(CONTEXT_PREFIX + name)

    def header(self, name: str) -> str | None:
        """Return the newest header of this name as text. None if it is missing or null."""
        found = [value for key, value in self.headers if key == name]
        return found[-1].decode("utf-8", "replace") if found and found[-1] is not None else None

    @property
    def replayed(self) -> int:
        """The number of times that the record was replayed."""
        return whole_number(self.header(REPLAYED) or "") or 0

    @property
    def is_from_source(self) -> bool:
        """Whether a source connector failed on the record, so that its bytes come from no topic."""
        return self.header(SOURCE_PARTITION) is not None

    def replay_headers(self, *, keep_context: bool) -> list[tuple[str, bytes | None]]:
        """Return the headers for the replayed record: its own and the new replay count.

        ``keep_context`` also keeps the headers that describe the error.
        """
        kept = [
            (name, value)
            for name, value in self.headers
            if name != REPLAYED and (keep_context or not name.startswith((CONTEXT_PREFIX, _OWN_PREFIX)))
        ]
        return [*kept, (REPLAYED, str(self.replayed + 1).encode())]
