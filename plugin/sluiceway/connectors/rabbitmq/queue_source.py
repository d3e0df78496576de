"""RabbitQueueSourceConnector and its task: take the messages of classic and quorum queues, whose position is the server's."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.api import ExactlyOnceSupport, Message, QueueLimits, QueueSourceTask, SourceConnector
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Range
from sluiceway.connectors.errors import RefusedError, UnreachableError
from sluiceway.connectors.keys import flag
from sluiceway.connectors.rabbitmq.connection import RabbitConnector
from sluiceway.connectors.rabbitmq.messages import (
    QUEUES,
    Records,
    SourceOptions,
    source_keys,
    source_options,
    topic_conflicts,
    try_queues,
)
from sluiceway.connectors.rabbitmq.session import Session, opened
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from pika.spec import BasicProperties

log = logging.getLogger(__name__)

PREFETCH, GLOBAL = "rabbitmq.prefetch.count", "rabbitmq.prefetch.global"
_QUEUES = "Queues"

CONFIG = ConfigDef(
    [
        *source_keys("queues"),
        ConfigKey(
            name=PREFETCH,
            type=Type.INT,
            default=2000,
            validator=Range(1, 65535),
            importance=Importance.MEDIUM,
            group=_QUEUES,
            doc="The most messages of each queue that a task has and Kafka has not. So many may be doubled when a task is "
            "killed, and no other consumer gets them meanwhile. Unlike in Confluent's connector, it cannot be 0 for no limit.",
        ),
        flag(
            name=GLOBAL,
            default=False,
            group=_QUEUES,
            doc=f"Whether {PREFETCH} is for all queues of a task together. Quorum queues do not have this.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The queues, and the most messages that a task holds."""

    source: SourceOptions
    prefetch: int
    is_global: bool

    @property
    def held(self) -> int:
        return self.prefetch if self.is_global else self.prefetch * len(self.source.queues)


def options_of(config: Mapping[str, str]) -> QueueOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    return QueueOptions(
        source=source_options(CONFIG, config),
        prefetch=int(str(values[PREFETCH])),
        is_global=bool(values[GLOBAL]),
    )


class RabbitQueueSourceTask(QueueSourceTask[int]):
    """Takes the messages of queues, and acknowledges them once Kafka has their records: a run of them at a time, in order.

    A handle is a delivery tag, which only its channel knows; each connection has one channel. A paused task consumes nothing and
    holds nothing, so that other consumers get the messages and no acknowledgement is late.
    """

    _session: Session | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._name = str(self.context.configs.get("name", ""))
        self._records = {queue: Records(options.source, queue) for queue in options.source.queues}
        self._received: deque[Message[int]] = deque()  # that the kit has not taken yet
        self._consumers: list[str] = []
        self._unacknowledged = 0  # of this connection, with those received
        self._acknowledged = 0
        self._backlog: int | None = None  # of the queues at first, for bounded runs
        self._redelivered = 0
        self._attempts = 0
        self._stays_paused = False
        self.limits = QueueLimits(held=options.held, longest_pause=options.source.server.longest_pause)
        super().start(config)

    def connect(self) -> None:
        options = self._options
        self._received.clear()
        self._consumers.clear()
        self._unacknowledged = 0
        self._session = session = opened(options.source.server, self._name, self._attempts)
        self._attempts += 1
        session.prefetch(options.prefetch, of_all=options.is_global)
        left = sum(map(session.count, options.source.queues))
        self._backlog = left if self._backlog is None else self._backlog

    def disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def receive(self, most: int, seconds: float) -> Sequence[Message[int]]:
        session = self._opened()
        if not self._consumers:
            self._consume(session)
        session.run(0 if self._received else seconds)
        return [self._received.popleft() for _ in range(min(most, len(self._received)))]

    def _consume(self, session: Session) -> None:
        for queue in self._options.source.queues:
            records = self._records[queue]

            def on_message(delivery: Any, properties: BasicProperties, body: bytes, records: Records = records) -> None:
                self._unacknowledged += 1
                self._redelivered += delivery.redelivered
                self._received.append(_message(records, delivery, properties, body))
                session.wake()

            try:
                # The default priority, which only streams refuse: acknowledgements do not move a position in them.
                self._consumers.append(session.consume(queue, on_message, x_priority=0))
            except RefusedError as error:
                if "x-priority" not in str(error):
                    raise
                raise ConnectError(f"{queue} is a stream. Read it with RabbitStreamSource.") from error

    def acknowledge(self, handles: Sequence[int]) -> None:
        # The kit hands over the oldest ones of this connection, so that no older one is left out.
        self._opened().channel.basic_ack(handles[-1], multiple=True)
        self._unacknowledged -= len(handles)
        self._acknowledged += len(handles)

    def give_back(self, handles: Sequence[int]) -> None:
        session = self._opened()
        self._stop_consuming(session)
        for tag in (*handles, *(each.handle for each in self._received)):
            session.channel.basic_nack(tag, requeue=True)
            self._unacknowledged -= 1
        self._received.clear()

    def _stop_consuming(self, session: Session) -> None:
        """Cancel the consumers: no more messages come after that."""
        consumers, self._consumers = self._consumers, []
        for each in consumers:
            session.cancel(each)

    def idle(self, seconds: float) -> None:
        session = self._opened()
        if self._stays_paused and self._consumers:
            self.give_back(())
        session.run(seconds)

    def paused(self) -> None:
        self._stays_paused = True
        super().paused()

    def resumed(self) -> None:
        self._stays_paused = False
        super().resumed()

    def wake(self) -> None:
        if (session := self._session) is not None:
            session.wake_threadsafe()

    def reached_end(self) -> bool:
        """Return whether as many messages are acknowledged as the queues had at first.

        A server that has just started may say that it has none: then ``drained`` decides.
        """
        return bool(self._backlog) and self._acknowledged >= (self._backlog or 0)

    def drained(self) -> bool:
        """Return whether the queues are empty: a server that is slow, or waits for acknowledgements, delivers nothing, too."""
        session = self._opened()
        return not self._unacknowledged and not any(map(session.count, self._options.source.queues)) and not self._received

    def metrics(self) -> Mapping[str, float]:
        """Return how many messages the server had delivered before, to this or another consumer."""
        found = super().metrics()
        return {**found, "messages-redelivered": self._redelivered} if found else found

    def _opened(self) -> Session:
        if self._session is None:
            raise UnreachableError("The connection is lost")
        return self._session


def _message(records: Records, delivery: Any, properties: BasicProperties, body: bytes) -> Message[int]:
    try:
        return Message(delivery.delivery_tag, (records.record(delivery, properties, body),))
    except DataError as error:
        return Message(delivery.delivery_tag, bad=((records.raw(delivery, properties, body), error),))


class RabbitQueueSourceConnector(RabbitConnector, SourceConnector):
    """Takes the messages of RabbitMQ's classic and quorum queues: a record for each message. All tasks share all queues."""

    task_class = RabbitQueueSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return topic_conflicts(values)

    @classmethod
    def try_server(cls, session: Session, found: Mapping[str, ValidatedValue]) -> None:
        try_queues(session, found[QUEUES])

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it takes messages off the queues"

    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        return (
            f"The position is that of the queues {config.get(QUEUES, '')} in RabbitMQ: a message is there until its record is in "
            "Kafka. What was taken cannot be read again; RabbitStreamSource reads streams from any offset."
        )

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # The queue's position is not in Kafka's transaction. RabbitStreamSource reads streams exactly once.
        return ExactlyOnceSupport.UNSUPPORTED
