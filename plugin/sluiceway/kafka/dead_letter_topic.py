"""Reads and replays the records of a dead letter queue topic, for commands and the UI. Blocks until done."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConnectError, KafkaClientError, NotFoundError
from sluiceway.kafka.admin import beginning_offsets, end_offsets, partition_count
from sluiceway.kafka.clients import ConsumedMessage, admin_client, consumer, consumer_config, producer, producer_config
from sluiceway.kafka.committed_offsets import CommittedOffsets
from sluiceway.kafka.dead_letter_headers import ConsumedDeadLetter
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.kafka.topic_writer import produce

_BATCH = 500
_POLL_SECONDS = 1.0
_STALL_SECONDS = 30.0
_FLUSH_SECONDS = 60.0
_NAME_TOPIC = "Name the topic to send it to with --topic, or with topic in a REST request."
_OTHER_CONNECTORS = "of other connectors"


class DeadLetterPosition(NamedTuple):
    """The position of a record in a dead letter queue topic."""

    partition: int
    offset: int


@dataclass(slots=True)
class ReplayResult:
    """The number of records that a replay sent, by topic, and skipped, by reason."""

    sent: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.sent.values())


class DeadLetterTopic:
    """Reads a dead letter queue topic up to its end at the time of construction, optionally for one connector only.

    Records without Connect's error headers match any connector.
    """

    def __init__(self, worker: WorkerConfig, topic: str, connector: str | None = None) -> None:
        """Raise NotFoundError if there is no such topic, KafkaClientError if the cluster does not answer."""
        self.topic = topic
        self._worker = worker
        self._connector = connector
        self._admin = admin_client(worker)
        count = partition_count(self._admin, topic)
        if count is None:
            raise NotFoundError(f"Topic {topic} does not exist: no dead letter queue record was written yet, or it was deleted.")
        partitions = [TopicPartition(topic, partition) for partition in range(count)]
        self._beginnings = beginning_offsets(self._admin, partitions)
        self._ends = end_offsets(self._admin, partitions)

    def count(self) -> int:
        """Return the number of records of all connectors, as the difference of the offsets."""
        return sum(self._ends[partition] - beginning for partition, beginning in self._beginnings.items())

    def not_replayed(self, group: str) -> int:
        """Return the number of records after the committed offsets of ``group``."""
        return sum(self._ends[partition] - start for partition, start in self._starts(group).items())

    def records(self, group: str | None = None) -> Iterator[ConsumedDeadLetter]:
        """Yield the records, in order within a partition, from the committed offsets of ``group`` or from the beginning."""
        with closing(self._consumer(group)) as reader:
            for message in self._messages(reader, self._beginnings if group is None else self._starts(group)):
                record = ConsumedDeadLetter.of(message)
                if self._matches(record):
                    yield record

    def newest(self, count: int) -> list[ConsumedDeadLetter]:
        """Return up to ``count`` of the connector's newest records, newest first.

        Reads the last ``count`` records of each partition.
        """
        starts = {partition: max(first, self._ends[partition] - count) for partition, first in self._beginnings.items()}
        with closing(self._consumer(None)) as reader:
            records = [ConsumedDeadLetter.of(message) for message in self._messages(reader, starts)]
        found = [record for record in records if self._matches(record)]
        found.sort(key=lambda record: (record.timestamp or 0, record.partition, record.offset), reverse=True)
        return found[:count]

    def chosen(self, positions: Collection[DeadLetterPosition]) -> list[ConsumedDeadLetter]:
        """Return the records at these positions. Raises NotFoundError if one is missing or of another connector."""
        wanted = set(positions)
        starts: dict[TopicPartition, int] = {}
        for number, offset in wanted:
            partition = TopicPartition(self.topic, number)
            starts[partition] = min(offset, starts.get(partition, offset))
        found: dict[DeadLetterPosition, ConsumedDeadLetter] = {}
        known = {
            partition: max(first, self._beginnings[partition]) for partition, first in starts.items() if partition in self._ends
        }
        with closing(self._consumer(None)) as reader:
            for message in self._messages(reader, known):
                position = DeadLetterPosition(message.partition(), message.offset())
                if position in wanted and self._matches(record := ConsumedDeadLetter.of(message)):
                    found[position] = record
                if len(found) == len(wanted):
                    break
        missing = sorted(wanted - found.keys())
        if missing:
            raise NotFoundError(
                f"Topic {self.topic} has no dead letter queue record of this connector at {missing[0].partition}:"
                f"{missing[0].offset}. It may have been deleted meanwhile; list the records again."
            )
        return [found[position] for position in sorted(found)]

    def replay_chosen(self, positions: Collection[DeadLetterPosition], *, to: str | None = None) -> ReplayResult:
        """Send the records at these positions to the topics they came from, or to ``to``. Commits no offsets.

        Nothing is sent if a record is missing or has no topic to send it to. Raises as ``chosen`` and ``replay`` do.
        """
        records = self.chosen(positions)
        targets = [to or _original_topic(record) for record in records]
        result = ReplayResult()
        sender = _Sender(self._worker, "sluiceway-dlq-replay")
        for record, target in zip(records, targets, strict=True):
            sender.send(record, target, keep_headers=False, keep_partition=to is None)
            result.sent[target] = result.sent.get(target, 0) + 1
        sender.confirm()
        return result

    def replay(
        self, group: str, *, to: str | None = None, keep_headers: bool = False, limit: int | None = None, dry_run: bool = False
    ) -> ReplayResult:
        """Send records to the topic they came from, or to ``to``, starting at the committed offsets of ``group``.

        Offsets are committed once Kafka has acknowledged the records, so an interrupted replay may send up to a batch
        twice and never loses one. Records of other connectors are skipped. A record without a topic to send to ends the
        replay before it. With ``dry_run`` nothing is written.

        Raises:
            BadRequestError: a record has no topic header, or is from a source, and ``to`` is not given. What was sent before
                is committed.
            KafkaClientError: a record was not acknowledged. Records after the last commit may have been sent or not.
        """
        result = ReplayResult()
        with closing(self._consumer(group)) as reader:
            sender = _Sender(self._worker, group)
            ends: dict[TopicPartition, int] = {}
            try:
                for message in self._messages(reader, self._starts(group)):
                    if limit is not None and result.total >= limit:
                        break
                    record = ConsumedDeadLetter.of(message)
                    if not self._matches(record):
                        result.skipped[_OTHER_CONNECTORS] = result.skipped.get(_OTHER_CONNECTORS, 0) + 1
                    else:
                        target = to or _original_topic(record)
                        if not dry_run:
                            sender.send(record, target, keep_headers=keep_headers, keep_partition=to is None)
                        result.sent[target] = result.sent.get(target, 0) + 1
                    ends[TopicPartition(record.topic, record.partition)] = record.offset + 1
                    if not dry_run and sender.unconfirmed >= _BATCH:
                        _commit(reader, sender, ends)
            finally:
                if not dry_run:
                    _commit(reader, sender, ends)
        return result

    def _matches(self, record: ConsumedDeadLetter) -> bool:
        return self._connector is None or record.context("connector.name") in (None, self._connector)

    def _starts(self, group: str) -> dict[TopicPartition, int]:
        committed = CommittedOffsets(self._worker).read(group, self._beginnings)
        return {
            partition: min(max(first, committed.get(partition, (first, ""))[0]), self._ends[partition])
            for partition, first in self._beginnings.items()
        }

    def _consumer(self, group: str | None) -> Consumer:
        name = group or "sluiceway-dlq-show"
        settings = {
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
            "queued.max.messages.kbytes": "8192",
        }
        return consumer(consumer_config(self._worker, name, name, settings))

    def _messages(self, reader: Consumer, starts: Mapping[TopicPartition, int]) -> Iterator[ConsumedMessage]:
        """Yield messages up to the ends. Relies on end-of-partition events: the last offset may be a transaction marker."""
        unfinished = {partition for partition, start in starts.items() if start < self._ends[partition]}
        with mapped_errors(f"read topic {self.topic}"):
            reader.assign([TopicPartitionOffset(*partition, starts[partition]) for partition in unfinished])
            silent_seconds = 0.0
            while unfinished:
                messages = reader.consume(_BATCH, _POLL_SECONDS if silent_seconds else 0.1)
                silent_seconds = 0.0 if messages else silent_seconds + _POLL_SECONDS
                if silent_seconds > _STALL_SECONDS:
                    raise ConnectError(
                        f"Topic {self.topic} could not be read to its end: no record came for {_STALL_SECONDS:g} s. Check that "
                        "the cluster is up."
                    )
                for message in cast("list[ConsumedMessage]", messages):
                    partition = TopicPartition(message.topic(), message.partition())
                    error = message.error()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise to_connect_error(error, f"read topic {self.topic}")
                    is_wanted = error is None and partition in unfinished and message.offset() < self._ends[partition]
                    if is_wanted:
                        yield message
                    if not is_wanted or message.offset() + 1 >= self._ends[partition]:
                        unfinished.discard(partition)


class _Sender:
    """Sends records and waits until Kafka has acknowledged all of them."""

    def __init__(self, worker: WorkerConfig, name: str) -> None:
        self._producer: Producer = producer(producer_config(worker, name, {"delivery.timeout.ms": "30000"}))
        self._failure: ConnectError | None = None
        self.unconfirmed = 0

    def send(self, record: ConsumedDeadLetter, topic: str, *, keep_headers: bool, keep_partition: bool) -> None:
        """Pass a record to the producer, to the partition it came from with ``keep_partition``."""
        options: dict[str, Any] = {} if record.timestamp is None else {"timestamp": record.timestamp}
        partition = record.context("partition")
        if keep_partition and partition is not None:
            options["partition"] = int(partition)
        headers: list[tuple[str, str | bytes | None]] = [*record.replay_headers(keep_context=keep_headers)]
        with mapped_errors(f"write to topic {topic}"):
            more = {"headers": headers, "on_delivery": self._delivered, **options}
            produce(self._producer, topic, value=record.value, key=record.key, **more)
        self.unconfirmed += 1

    def confirm(self) -> None:
        """Wait until all records are acknowledged. Raises KafkaClientError."""
        left = self._producer.flush(_FLUSH_SECONDS)
        if self._failure is not None:
            raise self._failure
        if left:
            raise KafkaClientError(f"{left} records were not acknowledged within {_FLUSH_SECONDS:g} s.", "_TIMED_OUT")
        self.unconfirmed = 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = self._failure or to_connect_error(error, f"write to topic {message.topic()}")


def _commit(reader: Consumer, sender: _Sender, ends: dict[TopicPartition, int]) -> None:
    sender.confirm()
    if ends:
        with mapped_errors("commit the offsets of the replay"):
            reader.commit(offsets=[TopicPartitionOffset(*each, offset) for each, offset in ends.items()], asynchronous=False)
        ends.clear()


def _original_topic(record: ConsumedDeadLetter) -> str:
    topic = record.context("topic")
    where = f"The dead letter queue record at offset {record.offset} of {record.topic}-{record.partition}"
    if record.is_from_source:
        raise BadRequestError(f"{where} is from a source connector: it is JSON, whatever format topic {topic} has. {_NAME_TOPIC}")
    if topic is None:
        raise BadRequestError(
            f"{where} has no header with its topic: the connector does not set "
            f"errors.deadletterqueue.context.headers.enable=true. {_NAME_TOPIC}"
        )
    return topic
