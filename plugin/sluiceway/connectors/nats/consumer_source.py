"""NatsConsumerSourceConnector and its task: take the messages of a durable consumer, which has the position."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import ExactlyOnceSupport, Message, QueueLimits, QueueSourceTask, SourceConnector
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, EnumText, OrNull, Range
from sluiceway.connectors.errors import RefusedError, UnreachableError
from sluiceway.connectors.keys import text, whole
from sluiceway.connectors.nats.connection import NatsConnector
from sluiceway.connectors.nats.jetstream import (
    ConsumerState,
    consumer_state,
    durable_consumer,
    stream_state,
)
from sluiceway.connectors.nats.messages import (
    FILTER,
    Records,
    SourceOptions,
    check_names,
    source_keys,
    source_options,
    topic_conflicts,
)
from sluiceway.connectors.nats.pulls import ConsumerGoneError, Pull, delivery_of, fetch
from sluiceway.connectors.nats.session import Session, opened
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger(__name__)

STREAM, CONSUMER, BEGIN = "nats.stream", "nats.consumer", "nats.consumer.begin"
ACK_WAIT, HELD = "nats.consumer.ack.wait.ms", "nats.held"
_CONSUMER = "Consumer"
_FIRST, _NEXT = "first", "next"
_LOOK_SECONDS = 1.0  # between two looks at whether a bounded run has ended
_EXTEND_SECONDS = 0.5  # between two looks at whether deadlines must be extended
_MILLION = 1_000_000
_NAME = Check(check_names, "a name without dots")

CONFIG = ConfigDef(
    [
        *source_keys(
            _CONSUMER,
            "The subject of the messages to take, in which * stands for a token, and > at the end for all further ones. Without "
            "it, a consumer that is created takes all. One that exists must have the same.",
        ),
        text(name=STREAM, validator=_NAME, importance=Importance.HIGH, group=_CONSUMER, doc="The stream, which must exist."),
        text(
            name=CONSUMER,
            validator=_NAME,
            importance=Importance.HIGH,
            group=_CONSUMER,
            doc="The durable consumer, which all tasks share. It is created if there is none; else it must be a pull consumer "
            "with explicit acknowledgements.",
        ),
        text(
            name=BEGIN,
            default=_FIRST,
            validator=EnumText(_FIRST, _NEXT),
            group=_CONSUMER,
            doc="Where a consumer that is created begins: with the first message, or next for new messages only.",
        ),
        ConfigKey(
            name=ACK_WAIT,
            type=Type.LONG,
            default=None,
            validator=OrNull(Range(1000, 2**31 - 1)),
            importance=Importance.LOW,
            group=_CONSUMER,
            doc="Milliseconds after which a message that nobody has acknowledged is delivered again, of a consumer that is "
            "created: by default the server's 30 s. One that exists must have the same. Tasks that run keep theirs, however "
            "long Kafka takes.",
        ),
        whole(
            HELD,
            1000,
            1,
            _CONSUMER,
            "The most messages of a task that Kafka does not have yet. So many may be doubled when a task is killed. The "
            "consumer's max_ack_pending limits those of all tasks together.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """The consumer, and the most messages that a task holds. ``ack_wait`` is in nanoseconds."""

    source: SourceOptions
    stream: str
    consumer: str
    begin: str
    ack_wait: int | None
    held: int


def options_of(config: Mapping[str, str]) -> ConsumerOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    ack_wait = values[ACK_WAIT]
    return ConsumerOptions(
        source=source_options(CONFIG, config),
        stream=str(values[STREAM]),
        consumer=str(values[CONSUMER]),
        begin=str(values[BEGIN]).lower(),
        ack_wait=None if ack_wait is None else int(str(ack_wait)) * _MILLION,
        held=int(str(values[HELD])),
    )


class Taken(NamedTuple):
    """A message that was delivered to the task: its sequence, and the subject for its acknowledgement."""

    sequence: int
    reply: str


class NatsConsumerSourceTask(QueueSourceTask[Taken]):
    """Takes messages of a durable consumer, and acknowledges each once Kafka has its record.

    What it holds is told to be in work, so that the server does not deliver it to others. A paused or stopped task gives back
    what it has not sent to Kafka. Acknowledgements can be sent by another connection.
    """

    acknowledges_in_order = False
    handles_outlive_connections = True

    _session: Session | None = None
    _pull: Pull | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._name = str(self.context.configs.get("name", ""))
        self._records = Records(options.source, options.stream)
        self._held: set[int] = set()
        self._known = False  # the consumer was there
        self._deadline = 30.0
        self._next_extension = self._next_look = 0.0
        self._end: int | None = None  # the last sequence of the stream at first, for bounded runs
        self._redelivered = self._attempts = 0
        self.limits = QueueLimits(
            held=options.held,
            messages=options.held,
            extend=_EXTEND_SECONDS,
            longest_pause=options.source.server.longest_pause,
        )
        super().start(config)

    def connect(self) -> None:
        options = self._options
        self._session = session = opened(options.source.server, self._name, self._attempts)
        self._attempts += 1
        stream = stream_state(session, options.stream)
        self._end = stream.last if self._end is None else self._end
        consumer = consumer_state(session, options.stream, options.consumer)
        if consumer is None:
            if self._known:
                raise self._deleted()
            consumer = self._created(session)
        else:
            for reason in unusable(consumer, options):
                raise ConnectError(f"The consumer {options.consumer} of stream {options.stream} {reason}")
        self._known = True
        self._deadline = consumer.deadline
        self._next_extension = 0.0
        self._pull = Pull(session, options.stream, consumer.name)

    def _created(self, session: Session) -> ConsumerState:
        """Create the consumer."""
        options = self._options
        config: dict[str, Any] = {"deliver_policy": "all" if options.begin == _FIRST else "new"}
        if options.source.subject is not None:
            config["filter_subject"] = options.source.subject
        if options.ack_wait is not None:
            config["ack_wait"] = options.ack_wait
        try:
            consumer = durable_consumer(session, options.stream, options.consumer, config)
        except RefusedError as error:
            raise ConnectError(f"{error}. Check {FILTER}, and the stream {options.stream}.") from error
        log.info("Created the consumer %s of stream %s, from the %s message on", options.consumer, options.stream, options.begin)
        return consumer

    def _deleted(self) -> ConnectError:
        options = self._options
        return ConnectError(
            f"The consumer {options.consumer} of stream {options.stream} was deleted while it was read, with its position. "
            f"A restart of the task creates it again, and reads by {BEGIN}."
        )

    def disconnect(self) -> None:
        session, self._session, self._pull = self._session, None, None
        if session is not None:
            session.close()

    def receive(self, most: int, seconds: float) -> Sequence[Message[Taken]]:
        session, pull = self._opened()
        began = time.monotonic()
        try:
            fetch(session, [pull], most, seconds)
            if pull.silence > self._options.source.server.timeout and self._state(session) is None:
                raise self._deleted()
        except ConsumerGoneError as error:
            raise self._deleted() if self._state(session) is None else error from error
        messages = [each for message in pull.take() if (each := self._message(message)) is not None]
        if not messages and not pull.is_dry and (left := seconds - (time.monotonic() - began)) > 0:
            self.idle(left)  # requests of other tasks have what is there
        return messages

    def _message(self, message: Msg) -> Message[Taken] | None:
        """Return a message; None if the task has it already, because the server has delivered it twice."""
        delivery = delivery_of(message)
        self._redelivered += delivery.times > 1
        if delivery.sequence in self._held:
            return None
        self._held.add(delivery.sequence)
        taken = Taken(delivery.sequence, delivery.reply)
        try:
            return Message(taken, (self._records.record(message, delivery),))
        except DataError as error:
            return Message(taken, bad=((self._records.raw(message, delivery), error),))

    def acknowledge(self, handles: Sequence[Taken]) -> None:
        self._answer(handles, b"+ACK")
        self._held.difference_update(each.sequence for each in handles)

    def give_back(self, handles: Sequence[Taken]) -> None:
        self._answer(handles, b"-NAK")
        self._held.difference_update(each.sequence for each in handles)

    def _answer(self, handles: Sequence[Taken], answer: bytes) -> None:
        """Send an answer to each delivery, and wait until the server has read them."""
        session, _pull = self._opened()
        session.publish([each.reply for each in handles], answer)
        session.flush()

    def extend(self, handles: Sequence[Taken]) -> None:
        """Tell that messages are in work, three times as often as they must be acknowledged."""
        session, _pull = self._opened()
        now = time.monotonic()
        if now >= self._next_extension:
            self._next_extension = now + self._deadline / 3
            session.publish([each.reply for each in handles], b"+WPI")

    def reached_end(self) -> bool:
        """Return whether all is acknowledged up to the last sequence that the stream had at first."""
        if not self._end or time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + _LOOK_SECONDS
        session, _pull = self._opened()
        state = self._state(session)
        return state is not None and state.floor >= self._end

    def drained(self) -> bool:
        """Return whether the consumer has no message, not even one that waits for the acknowledgement of another client."""
        session, _pull = self._opened()
        state = self._state(session)
        return state is not None and not state.pending and not state.unacknowledged

    def _state(self, session: Session) -> ConsumerState | None:
        return consumer_state(session, self._options.stream, self._options.consumer)

    def metrics(self) -> Mapping[str, float]:
        """Return also how many messages were delivered before, to this or another client."""
        found = super().metrics()
        return {**found, "messages-redelivered": self._redelivered} if found else found

    def _opened(self) -> tuple[Session, Pull]:
        if self._session is None or self._pull is None:
            raise UnreachableError("The connection is lost")
        return self._session, self._pull


def unusable(consumer: ConsumerState, options: ConsumerOptions) -> list[str]:
    """Return why a consumer that exists cannot be used, or is not the one that the config describes."""
    config, reasons = consumer.config, list[str]()
    if config.get("deliver_subject"):
        reasons.append("is a push consumer. Create a pull consumer, or let the connector do that.")
    if config.get("ack_policy") != "explicit":
        reasons.append(
            f"has the acknowledgement policy {config.get('ack_policy')}, with which messages are lost. It must be explicit."
        )
    if config.get("headers_only"):
        reasons.append("delivers headers only. Create one without headers_only.")
    subjects = config.get("filter_subjects") or [config.get("filter_subject") or ">"]
    if options.source.subject is not None and subjects != [options.source.subject]:
        reasons.append(f"is for {', '.join(subjects)}. Remove {FILTER}, or choose another {CONSUMER}.")
    if options.ack_wait is not None and config.get("ack_wait") != options.ack_wait:
        wait = config.get("ack_wait", 0) // _MILLION
        reasons.append(f"waits {wait} ms for acknowledgements. Remove {ACK_WAIT}, or change the consumer.")
    if config.get("max_batch") or config.get("max_expires") or config.get("max_bytes"):
        reasons.append("limits the requests of its clients (max_batch, max_expires, or max_bytes). Remove these limits.")
    return reasons


class NatsConsumerSourceConnector(NatsConnector, SourceConnector):
    """Takes the messages of a durable consumer of NATS JetStream: a record for each message. All tasks share the consumer."""

    task_class = NatsConsumerSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return topic_conflicts(values, [str(values[STREAM])])

    @classmethod
    def try_server(cls, session: Session, found: Mapping[str, ValidatedValue]) -> None:
        options = options_of({name: str(each.value) for name, each in found.items() if name in _OWN and each.value is not None})
        try:
            stream_state(session, options.stream)
        except (UnreachableError, ConnectError) as error:
            found[STREAM].errors.append(str(error))
            return
        consumer = consumer_state(session, options.stream, options.consumer)
        if consumer is None:
            return
        for reason in unusable(consumer, options):
            key = next((key for key in (FILTER, ACK_WAIT) if key in reason), CONSUMER)
            found[key].errors.append(f"The consumer {options.consumer} of stream {options.stream} {reason}")

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it takes messages off the consumer, and creates it if there is none"

    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        return (
            f"The position is that of the consumer {config.get(CONSUMER, '')} of stream {config.get(STREAM, '')} in NATS. To "
            "read from elsewhere, delete the consumer, or create it where you want it to begin; NatsStreamSource reads from any "
            "sequence."
        )

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # The consumer's position is not in Kafka's transaction. NatsStreamSource reads streams exactly once.
        return ExactlyOnceSupport.UNSUPPORTED


_OWN = (STREAM, CONSUMER, FILTER, ACK_WAIT)
"""The keys that say which consumer is meant."""
