"""Dead letter topics, and what a dead letter in one says. The runtime writes them; people read and replay them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Message

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.kafka.admin import create_topic, partition_count
from sluiceway.kafka.clients import admin_client

CONTEXT_PREFIX = "__connect.errors."
"""Of Connect's headers, with ``topic``, ``partition``, ``offset``, ``connector.name``, ``task.id``, ``stage``, ..."""

_OWN_PREFIX = "__sluiceway.errors."
SOURCE_PARTITION = f"{_OWN_PREFIX}source.partition"
SOURCE_OFFSET = f"{_OWN_PREFIX}source.offset"
"""Of the dead letters of sources, which Connect has not: where the record was read, as JSON."""

REPLAYED = "__sluiceway.replayed"
"""How often a record was sent through again, as a decimal text."""


def ensure_dead_letter_topic(
    worker: WorkerConfig, topic: str, replication_factor: int, overrides: Mapping[str, str] | None = None
) -> None:
    """Create a dead letter topic of one partition unless it exists. ``overrides`` are ``admin.override.*`` keys.

    Raises KafkaClientError if it is missing and cannot be created, or the cluster cannot be asked.
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
class DeadLetterRecord:
    """A dead letter as it was read; ``timestamp`` in milliseconds since the epoch, None if it has none."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    @classmethod
    def of(cls, message: Message) -> DeadLetterRecord:
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
        """Return one of Connect's error headers, such as ``stage``; None if the letter does not have it."""
        return self.header(CONTEXT_PREFIX + name)

    def header(self, name: str) -> str | None:
        """Return the newest header of a name as text."""
        found = [value for key, value in self.headers if key == name]
        return found[-1].decode("utf-8", "replace") if found and found[-1] is not None else None

    @property
    def replayed(self) -> int:
        """How often the record was sent through again before."""
        text = self.header(REPLAYED) or ""
        return int(text) if text.isdecimal() else 0

    @property
    def of_source(self) -> bool:
        """Whether it comes from a source, so that its bytes are not those of any topic."""
        return self.header(SOURCE_PARTITION) is not None

    def kept_headers(self, *, keep: bool) -> list[tuple[str, bytes | None]]:
        """Return the headers to send along: the record's own, all with ``keep``, and the new count of replays."""
        kept = [
            (name, value)
            for name, value in self.headers
            if name != REPLAYED and (keep or not name.startswith((CONTEXT_PREFIX, _OWN_PREFIX)))
        ]
        return [*kept, (REPLAYED, str(self.replayed + 1).encode())]
