"""Reads a dead letter topic, and sends its letters through again. For people's commands: blocks until done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Message, Producer
from confluent_kafka import TopicPartition as KafkaPlace

from sluiceway.api.task import TopicPartition as Place
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, KafkaClientError, NotFoundError
from sluiceway.kafka.admin import beginning_offsets, end_offsets, group_offsets, partition_count
from sluiceway.kafka.clients import admin_client, consumer, consumer_config, producer, producer_config
from sluiceway.kafka.dead_letter_headers import DeadLetterRecord
from sluiceway.kafka.errors import mapped_errors, to_connect_error

_BATCH = 500
_READ_SECONDS = 1.0
_STALL_SECONDS = 30.0
_FLUSH_SECONDS = 60.0


@dataclass(slots=True)
class ReplayResult:
    """What a replay did: letters sent again, by topic, and left where they are, by reason."""

    sent: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.sent.values())


class DeadLetterTopic:
    """Reads one dead letter topic, up to the end that it has now; the letters of one connector only, if one is named.

    A letter without Connect's headers says of no connector that it is not its own.
    """

    def __init__(self, worker: WorkerConfig, topic: str, connector: str | None = None) -> None:
        """Raises NotFoundError if there is no such topic, KafkaClientError if the cluster cannot be asked."""
        self.topic = topic
        self._worker = worker
        self._connector = connector
        self._admin = admin_client(worker)
        count = partition_count(self._admin, topic)
        if count is None:
            raise NotFoundError(f"There is no topic {topic}: no dead letter has been written yet, or it was deleted.")
        places = [Place(topic, partition) for partition in range(count)]
        self._begins = beginning_offsets(self._admin, places)
        self._ends = end_offsets(self._admin, places)

    def count(self) -> int:
        """Return how many letters there are, whosever they are (compaction and transactions apart)."""
        return sum(self._ends[place] - begin for place, begin in self._begins.items())

    def not_replayed(self, group: str) -> int:
        """Return how many letters a group has not gone past yet."""
        return sum(self._ends[place] - start for place, start in self._starts(group).items())

    def records(self, group: str | None = None) -> Iterator[DeadLetterRecord]:
        """Yield letters in order within a partition, from where ``group`` stopped last, else from the first one."""
        with closing(self._consumer(group)) as reader:
            for message in self._messages(reader, self._begins if group is None else self._starts(group)):
                letter = DeadLetterRecord.of(message)
                if self._wanted(letter):
                    yield letter

    def newest(self, count: int) -> list[DeadLetterRecord]:
        """Return the newest letters, newest first: those of the connector among the last ``count`` records of each partition."""
        starts = {place: max(begin, self._ends[place] - count) for place, begin in self._begins.items()}
        with closing(self._consumer(None)) as reader:
            letters = [
                letter for message in self._messages(reader, starts) if self._wanted(letter := DeadLetterRecord.of(message))
            ]
        letters.sort(key=lambda letter: (letter.timestamp or 0, letter.partition, letter.offset), reverse=True)
        return letters[:count]

    def replay(
        self, group: str, *, to: str | None = None, keep_headers: bool = False, limit: int | None = None, dry_run: bool = False
    ) -> ReplayResult:
        """Send letters to the topic they came from, or to ``to``, from where ``group`` stopped last.

        The group's offsets are committed once Kafka has the records sent, so a replay that is broken off may send up to a
        batch again, and never leaves one out. Letters of other connectors are passed by; one that cannot be sent for lack
        of a topic ends the replay before it. With ``dry_run`` nothing is written.

        Raises:
            ConnectError: a letter says no topic (or is a source's, whose bytes fit none) and ``to`` is not given; what
                was sent before is committed.
            KafkaClientError: a record was not acknowledged, and nothing after the last commit counts as sent.
        """
        done = ReplayResult()
        with closing(self._consumer(group)) as reader:
            sender = _Sender(self._worker, group)
            ends: dict[Place, int] = {}
            try:
                for message in self._messages(reader, self._starts(group)):
                    if limit is not None and done.total >= limit:
                        break
                    letter = DeadLetterRecord.of(message)
                    if not self._wanted(letter):
                        done.skipped["of other connectors"] = done.skipped.get("of other connectors", 0) + 1
                    else:
                        target = to or _origin(letter)
                        if not dry_run:
                            sender.send(letter, target, keep_headers=keep_headers, original=to is None)
                        done.sent[target] = done.sent.get(target, 0) + 1
                    ends[Place(letter.topic, letter.partition)] = letter.offset + 1
                    if not dry_run and sender.unconfirmed >= _BATCH:
                        _commit(reader, sender, ends)
            finally:
                if not dry_run:
                    _commit(reader, sender, ends)
        return done

    def _wanted(self, letter: DeadLetterRecord) -> bool:
        return self._connector is None or letter.context("connector.name") in (None, self._connector)

    def _starts(self, group: str) -> dict[Place, int]:
        known = group_offsets(self._admin, group)
        return {place: min(max(begin, known.get(place, begin)), self._ends[place]) for place, begin in self._begins.items()}

    def _consumer(self, group: str | None) -> Consumer:
        name = group or "sluiceway-dlq-show"
        settings = {
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
            "queued.max.messages.kbytes": "8192",
        }
        return consumer(consumer_config(self._worker, name, name, settings))

    def _messages(self, reader: Consumer, starts: Mapping[Place, int]) -> Iterator[Message]:
        """Yield messages up to the ends; a partition's end is told by Kafka, since its last offset may be a marker."""
        open_places = {place for place, start in starts.items() if start < self._ends[place]}
        with mapped_errors(f"read topic {self.topic}"):
            reader.assign([KafkaPlace(*place, starts[place]) for place in open_places])
            silent = 0.0
            while open_places:
                messages = reader.consume(_BATCH, _READ_SECONDS) if silent else reader.consume(_BATCH, 0.1)
                silent = 0.0 if messages else silent + _READ_SECONDS
                if silent > _STALL_SECONDS:
                    raise ConnectError(f"Topic {self.topic} could not be read to its end within {_STALL_SECONDS:g} s.")
                for message in messages:
                    place = Place(message.topic(), message.partition())
                    error = message.error()
                    if error is not None and error.name() == "_PARTITION_EOF":
                        open_places.discard(place)
                    elif error is not None:
                        raise to_connect_error(error, f"read topic {self.topic}")
                    elif place in open_places and message.offset() < self._ends[place]:
                        yield message
                        if message.offset() + 1 >= self._ends[place]:
                            open_places.discard(place)
                    else:
                        open_places.discard(place)


class _Sender:
    """Sends records and says when all are in Kafka."""

    def __init__(self, worker: WorkerConfig, name: str) -> None:
        self._producer: Producer = producer(producer_config(worker, name, {"delivery.timeout.ms": "30000"}))
        self._failure: ConnectError | None = None
        self.unconfirmed = 0

    def send(self, letter: DeadLetterRecord, topic: str, *, keep_headers: bool, original: bool) -> None:
        options: dict[str, int] = {} if letter.timestamp is None else {"timestamp": letter.timestamp}
        partition = letter.context("partition")
        if original and partition is not None:
            options["partition"] = int(partition)
        with mapped_errors(f"write to topic {topic}"):
            self._producer.produce(
                topic,
                letter.value,
                letter.key,
                headers=letter.kept_headers(keep=keep_headers),
                on_delivery=self._delivered,
                **options,
            )
        self.unconfirmed += 1

    def confirm(self) -> None:
        """Wait for what was sent. Raises KafkaClientError."""
        left = self._producer.flush(_FLUSH_SECONDS)
        if self._failure is not None:
            raise self._failure
        if left:
            raise KafkaClientError(f"{left} records were not acknowledged within {_FLUSH_SECONDS:g} s.", "_TIMED_OUT")
        self.unconfirmed = 0

    def _delivered(self, error: Any, message: Message) -> None:
        if error is not None:
            self._failure = self._failure or to_connect_error(error, f"write to topic {message.topic()}")


def _commit(reader: Consumer, sender: _Sender, ends: dict[Place, int]) -> None:
    sender.confirm()
    if ends:
        with mapped_errors("commit how far dead letters were replayed"):
            reader.commit(offsets=[KafkaPlace(*place, offset) for place, offset in ends.items()], asynchronous=False)
        ends.clear()


def _origin(letter: DeadLetterRecord) -> str:
    topic = letter.context("topic")
    if letter.of_source:
        raise ConnectError(
            f"The dead letter at offset {letter.offset} of {letter.topic}-{letter.partition} is a source's: it is JSON, "
            f"whatever topic {topic} holds. Say with --topic where it is to go."
        )
    if topic is None:
        raise ConnectError(
            f"The dead letter at offset {letter.offset} of {letter.topic}-{letter.partition} does not say its topic: the "
            "connector has no errors.deadletterqueue.context.headers.enable=true. Say with --topic where it is to go."
        )
    return topic
