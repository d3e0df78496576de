"""MqttSourceConnector and its task: take the messages of topics, and acknowledge each once Kafka has its record."""

from __future__ import annotations

import functools
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import ExactlyOnceSupport, Message, QueueLimits, QueueSourceTask, SourceConnector, SourceRecord
from sluiceway.config.connector import NAME
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, EnumText, NonEmptyString, OrNull, Range
from sluiceway.connectors.keys import text
from sluiceway.connectors.mqtt.connection import (
    MOST_IN_FLIGHT,
    NAME_PLACEHOLDER,
    TASK,
    TASK_PLACEHOLDER,
    Broker,
    MqttConnector,
    Session,
    broker_of,
    connection_keys,
)
from sluiceway.data import BOOLEAN_SCHEMA, BYTES_SCHEMA, INT32_SCHEMA, STRING_SCHEMA, Header, Headers, Schema
from sluiceway.errors import ConfigError, DataError

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

FILTERS, QOS, TOPIC = "mqtt.topics", "mqtt.qos", "kafka.topic"
SHARE, EXPIRY, HELD, VALUES = "mqtt.share.name", "mqtt.session.expiry.seconds", "mqtt.held", "mqtt.values"
TOPIC_PLACEHOLDER = "${topic}"
_MESSAGES, _RECORDS = "Messages", "Records"
_DAY = 86_400
_KNOWN_TOPICS = 10_000
_NOT_IN_TOPICS = re.compile(r"[^a-zA-Z0-9._-]")


def _check_filters(name: str, value: ConfigValue) -> None:
    filters = value if isinstance(value, list) else []
    if not filters:
        raise ConfigError(name, None, "needs a topic of MQTT, such as plant/+/temperature or plant/#")
    for each in filters:
        levels = each.split("/")
        is_wild = any(("#" in level and (level != "#" or number < len(levels) - 1)) for number, level in enumerate(levels))
        if is_wild or any("+" in level and level != "+" for level in levels) or "\0" in each:
            raise ConfigError(
                name, each, "may have + as a whole level, and # as the last one, as in plant/+/temperature or plant/#"
            )
        if each.startswith("$share/"):
            raise ConfigError(name, each, f"must not have a shared subscription: set {SHARE}")


def _check_qos(name: str, value: ConfigValue) -> None:
    if value == 2:
        raise ConfigError(
            name,
            value,
            "must be 0 or 1. With 2, a message is confirmed before Kafka has it, and would be lost in a crash; with 1, none is, "
            "also of those that are published with 2",
        )
    if value not in (0, 1):
        raise ConfigError(name, value, "must be 0 or 1")


CONFIG = ConfigDef(
    [
        *connection_keys(f"sluiceway-{NAME_PLACEHOLDER}-{TASK_PLACEHOLDER}"),
        ConfigKey(
            name=FILTERS,
            type=Type.LIST,
            validator=Check(_check_filters, "topics of MQTT"),
            importance=Importance.HIGH,
            group=_MESSAGES,
            doc="The topics of MQTT, separated by commas. + stands for a level, # for all further ones: plant/+/temperature.",
        ),
        ConfigKey(
            name=QOS,
            type=Type.INT,
            default=1,
            validator=Check(_check_qos, "0 or 1"),
            importance=Importance.MEDIUM,
            group=_MESSAGES,
            doc="The highest quality of service. 1: a message is acknowledged once Kafka has it, and comes again after a crash. "
            "0: it is lost then. A message that was published with less has less.",
        ),
        text(
            name=SHARE,
            default=None,
            validator=OrNull(NonEmptyString()),
            group=_MESSAGES,
            doc="The name of a shared subscription, of which the broker gives each message to one client: with it, all tasks "
            "take what they can. Without it, one task reads all topics, in order. Retained messages are not shared.",
        ),
        ConfigKey(
            name=EXPIRY,
            type=Type.LONG,
            default=_DAY,
            validator=Range(1, 2**32 - 1),
            importance=Importance.MEDIUM,
            group=_MESSAGES,
            doc="Seconds that the broker keeps messages for a task that is not connected, with version 5; 4294967295 is without "
            "end. With version 3.1.1, the broker decides.",
        ),
        ConfigKey(
            name=HELD,
            type=Type.INT,
            default=1000,
            validator=Range(1, MOST_IN_FLIGHT),
            importance=Importance.LOW,
            group=_MESSAGES,
            doc="The most messages of a task that Kafka does not have yet. So many may be doubled. With version 3.1.1, the "
            "broker may send fewer at a time.",
        ),
        text(
            name=TOPIC,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc=f"The topic of Kafka; {TOPIC_PLACEHOLDER} is that of MQTT, with dots for slashes.",
        ),
        text(
            name=VALUES,
            default="bytes",
            validator=EnumText("bytes", "string"),
            importance=Importance.LOW,
            group=_RECORDS,
            doc="The type of values. string: a payload that is not UTF-8 is a bad record, handled by errors.tolerance.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The broker, what a task reads there, and the form of its records. ``expiry`` is in seconds."""

    broker: Broker
    filters: Sequence[str]
    share: str | None
    qos: int
    expiry: int
    held: int
    topic: str
    as_text: bool

    @property
    def subscriptions(self) -> list[str]:
        """The filters as the broker gets them."""
        return [each if self.share is None else f"$share/{self.share}/{each}" for each in self.filters]


def options_of(config: Mapping[str, str]) -> SourceOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    filters = values[FILTERS]
    assert isinstance(filters, list)  # noqa: S101 (parsed as such)
    share = values[SHARE]
    return SourceOptions(
        broker=broker_of(values, config.get(NAME, "")),
        filters=[str(each) for each in filters],
        share=None if share is None else str(share),
        qos=int(str(values[QOS])),
        expiry=int(str(values[EXPIRY])),
        held=int(str(values[HELD])),
        topic=str(values[TOPIC]),
        as_text=str(values[VALUES]).lower() == "string",
    )


class Delivery(NamedTuple):
    """A message as the broker knows it: its number in the connection, and its quality of service."""

    number: int
    qos: int


class MqttSourceTask(QueueSourceTask[Delivery]):
    """Takes messages of a session that outlives the connection, and acknowledges each once Kafka has its record.

    The receiver's thread turns the client, so that pings are answered while Kafka is slow or the task is paused. A paused task
    keeps what it has: MQTT has no way to give a message back. Acknowledgements have the order of the messages, as the protocol
    wants.
    """

    _session: Session | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._arrived: deque[MQTTMessage] = deque()
        self._unwanted = 0
        self._is_wanted = functools.lru_cache(_KNOWN_TOPICS)(self._matches)
        self.limits = QueueLimits(held=options.held, messages=options.held)
        super().start(config)

    def connect(self) -> None:
        options = self._options
        self._arrived.clear()
        self._session = session = Session(
            options.broker,
            clean=False,
            in_flight=options.held,
            expiry=options.expiry,
            on_message=self._arrived.append,
        )
        session.open()
        session.subscribe(options.subscriptions, options.qos)

    def disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def receive(self, most: int, seconds: float) -> Sequence[Message[Delivery]]:
        session, arrived = self._opened(), self._arrived
        ends = time.monotonic() + seconds
        while not arrived and (left := ends - time.monotonic()) > 0:
            session.turn(left)
        self._read_on(session, most)
        return [self._message(arrived.popleft()) for _ in range(min(most, len(arrived)))]

    def idle(self, seconds: float) -> None:
        session = self._opened()
        session.turn(0.0)
        self._read_on(session, self._options.held)  # else the answers to pings would stand behind messages without end
        super().idle(seconds)

    def _read_on(self, session: Session, most: int) -> None:
        """Read messages that are there, until there are so many."""
        before = -1
        while before < len(self._arrived) < most:
            before = len(self._arrived)
            session.read_on()

    def acknowledge(self, handles: Sequence[Delivery]) -> None:
        self._opened().acknowledge(handles)

    def metrics(self) -> Mapping[str, float]:
        """Return the number of messages of topics that the config does not name, as of an earlier one."""
        found = super().metrics()
        return {**found, "messages-unwanted": self._unwanted} if found else found

    def _message(self, message: MQTTMessage) -> Message[Delivery]:
        delivery = Delivery(message.mid, message.qos)
        try:
            name = message.topic
        except UnicodeDecodeError as error:
            return Message(delivery, bad=((self._raw(message, None), DataError(f"A topic of MQTT is not UTF-8: {error}")),))
        if not self._is_wanted(name):
            self._unwanted += 1
            return Message(delivery)
        try:
            return Message(delivery, (self._record(name, message),))
        except DataError as error:
            return Message(delivery, bad=((self._raw(message, name), error),))

    def _matches(self, topic: str) -> bool:
        """Return whether the config has a topic; the session may have subscriptions of an earlier one."""
        from paho.mqtt.client import topic_matches_sub

        return any(topic_matches_sub(each, topic) for each in self._options.filters)

    def _record(self, name: str, message: MQTTMessage) -> SourceRecord:
        topic = self._options.topic.replace(TOPIC_PLACEHOLDER, name.replace("/", "."))
        if TOPIC_PLACEHOLDER in self._options.topic and (_NOT_IN_TOPICS.search(topic) or topic in ("", ".", "..")):
            raise DataError(
                f"The topic {name} of MQTT cannot name one of Kafka, which has letters, digits, '.', '_', and '-' only: set "
                f"{TOPIC} without {TOPIC_PLACEHOLDER}."
            )
        value: Any = bytes(message.payload)
        schema: Schema = BYTES_SCHEMA
        if self._options.as_text:
            try:
                value, schema = value.decode(), STRING_SCHEMA
            except UnicodeDecodeError as error:
                raise DataError(f"A message of topic {name} is not UTF-8 ({error}). Set {VALUES}=bytes.") from error
        return SourceRecord(None, None, topic, value, schema, name, STRING_SCHEMA, headers=_headers(message))

    def _raw(self, message: MQTTMessage, name: str | None) -> SourceRecord:
        """Return a record for the dead letter queue of a message that is a bad record."""
        schema = None if name is None else STRING_SCHEMA
        return SourceRecord(None, None, self._options.topic, bytes(message.payload), BYTES_SCHEMA, name, schema)

    def _opened(self) -> Session:
        if self._session is None:
            raise ConnectionError("The connection to the MQTT broker is lost")
        return self._session


def _headers(message: MQTTMessage) -> Headers:
    """Return what the protocol says of a message, by the names that Confluent's connector has, and version 5's properties."""
    found = [
        Header("mqtt.message.id", message.mid, INT32_SCHEMA),
        Header("mqtt.qos", message.qos, INT32_SCHEMA),
        Header("mqtt.retained", bool(message.retain), BOOLEAN_SCHEMA),
        Header("mqtt.duplicate", bool(message.dup), BOOLEAN_SCHEMA),
    ]
    properties: Any = message.properties
    if properties is None:
        return tuple(found)
    for name, given in (("mqtt.content.type", "ContentType"), ("mqtt.response.topic", "ResponseTopic")):
        if hasattr(properties, given):
            found.append(Header(name, str(getattr(properties, given)), STRING_SCHEMA))
    if hasattr(properties, "CorrelationData"):
        found.append(Header("mqtt.correlation.data", bytes(properties.CorrelationData), BYTES_SCHEMA))
    own = (Header(name, value, STRING_SCHEMA) for name, value in getattr(properties, "UserProperty", ()))
    return (*found, *own)


class MqttSourceConnector(MqttConnector, SourceConnector):
    """Takes messages of an MQTT broker: a record for each, whose key is its topic."""

    task_class = MqttSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it begins a session at the broker, which then keeps messages for it, and takes them"

    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        return (
            "The broker keeps the session of the task, with the messages that it has not acknowledged. MQTT has no older ones to "
            "read again. To begin without those that wait, stop the connector and have the broker end the session."
        )

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return a config for each task if they share a subscription, else for one."""
        tasks = max_tasks if self._config.get(SHARE) else 1
        return [{**self._config, TASK: str(number)} for number in range(tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.UNSUPPORTED  # the session's position is not in Kafka's transaction
