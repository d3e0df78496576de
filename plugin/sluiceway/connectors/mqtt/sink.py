"""MqttSinkConnector and its task: publish records, with as many in flight as a batch has."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sluiceway.api import DONE, BatchLimits, BatchSinkTask, Outcome, SinkConnector, SinkRecord, WriteResult
from sluiceway.config.connector import NAME
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyString, Range
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.keys import flag, text, unreachable_key, unreachable_seconds
from sluiceway.connectors.mqtt.connection import (
    FAILURE,
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
from sluiceway.connectors.simple_values import record_name, required_bytes
from sluiceway.errors import ConnectError, DataError

TOPIC, QOS, RETAINED, BATCH = "mqtt.topic", "mqtt.qos", "mqtt.retained.enabled", "batch.size"
TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER, KEY_PLACEHOLDER = "${topic}", "${partition}", "${key}"
_WRITES = "Writes"
_MOST_TOPIC_BYTES, _MOST_PAYLOAD_BYTES = 65_535, 268_435_455 - 65_540
_QUOTA_EXCEEDED = 0x97
_WINDOW_OF_V3 = 20  # of messages in flight, where the broker cannot say it: Mosquitto's
_OTHER_BYTES = 5 + 2 + 2 + 1  # of a PUBLISH beside its topic and its payload: header, lengths, number, and properties

CONFIG = ConfigDef(
    [
        *connection_keys(f"sluiceway-{NAME_PLACEHOLDER}-{TASK_PLACEHOLDER}"),
        text(
            name=TOPIC,
            default=TOPIC_PLACEHOLDER,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_WRITES,
            doc=f"The topic of MQTT, such as plant/{KEY_PLACEHOLDER}/state. {TOPIC_PLACEHOLDER} is Kafka's topic, "
            f"{PARTITION_PLACEHOLDER} the partition, {KEY_PLACEHOLDER} the record's key.",
        ),
        ConfigKey(
            name=QOS,
            type=Type.INT,
            default=1,
            validator=Range(0, 2),
            importance=Importance.MEDIUM,
            group=_WRITES,
            doc="The quality of service. 1 and 2: each record is published at least once. 0: the broker does not say whether it "
            "has a record, and some may be lost with a connection.",
        ),
        flag(
            name=RETAINED,
            default=False,
            group=_WRITES,
            doc="Whether the broker keeps the newest message of each topic for new subscribers. A record without a value then "
            "deletes it; without this key it is a bad record.",
        ),
        ConfigKey(
            name=BATCH,
            type=Type.INT,
            default=1000,
            validator=Range(1, MOST_IN_FLIGHT),
            importance=Importance.LOW,
            group=_WRITES,
            doc="The most records in flight; a broker may take fewer at a time.",
        ),
        unreachable_key(_WRITES, "a broker"),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The broker, and the form of the messages there."""

    broker: Broker
    topic: str
    qos: int
    retained: bool
    limits: BatchLimits


def sink_options(config: Mapping[str, str]) -> SinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    return SinkOptions(
        broker=broker_of(values, config.get(NAME, "")),
        topic=str(values[TOPIC]),
        qos=int(str(values[QOS])),
        retained=bool(values[RETAINED]),
        limits=BatchLimits(int(str(values[BATCH])), unreachable=unreachable_seconds(values)),
    )


class Publication(NamedTuple):
    """A message to publish."""

    topic: str
    payload: bytes


class MqttSinkTask(BatchSinkTask[Publication]):
    """Publishes records in batches, and waits for the acknowledgements of each.

    Messages of a topic are published in order. After a lost connection, all of a batch that was not acknowledged as a whole are
    published again.
    """

    _session: Session | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = sink_options(config)
        self.limits = options.limits
        self._answers: dict[int, Any] = {}

    def stop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def prepare(self, record: SinkRecord) -> Publication:
        try:
            return self._publication_of(record)
        except (UnicodeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{record_name(record)} cannot be published by MQTT: {error}") from error

    def _publication_of(self, record: SinkRecord) -> Publication:
        options = self._options
        topic = options.topic.replace(TOPIC_PLACEHOLDER, record.topic).replace(PARTITION_PLACEHOLDER, str(record.kafka_partition))
        if KEY_PLACEHOLDER in topic:
            if record.key is None:
                raise DataError(f"{TOPIC} has {KEY_PLACEHOLDER}, and {record_name(record)} has no key.")
            try:
                topic = topic.replace(KEY_PLACEHOLDER, required_bytes(record.key, record, "key").decode())
            except UnicodeDecodeError as error:
                raise DataError(f"The key of {record_name(record)} is not UTF-8 ({error}), and cannot be in {TOPIC}.") from error
        if set("+#\0") & set(topic) or len(topic.encode(errors="replace")) > _MOST_TOPIC_BYTES:
            raise DataError(
                f"{record_name(record)} cannot be published to {topic[:200]!r}: a topic of MQTT has no +, #, or NUL, and at most "
                "64 KiB."
            )
        if record.value is None and not options.retained:
            raise DataError(
                f"{record_name(record)} has no value. With {RETAINED}=true, it deletes the retained message of its topic."
            )
        payload = b"" if record.value is None else required_bytes(record.value, record, "value")
        if len(payload) > _MOST_PAYLOAD_BYTES:
            raise DataError(f"{record_name(record)} has {len(payload)} bytes, more than a message of MQTT can have.")
        return Publication(topic, payload)

    def order_key(self, item: Publication) -> Hashable:
        return item.topic

    def write(self, items: Sequence[Publication]) -> Sequence[WriteResult]:
        session = self._opened()
        sent: dict[int, int] = {}
        results: dict[int, WriteResult] = {}
        try:
            self._publish(session, items, sent, results)
        except UnreachableError as error:
            self.stop()
            if not self._answers and not results:
                raise
            # Some brokers end the connection at a message that they refuse: what is answered must not be published again.
            left = WriteResult(Outcome.RETRY, str(error))
            results = {place: results.get(place, left) for place in range(len(items))}
        results |= {place: _result(self._answers[number]) for number, place in sent.items() if number in self._answers}
        return [results[place] for place in range(len(items))]

    def _publish(
        self, session: Session, items: Sequence[Publication], sent: dict[int, int], refused: dict[int, WriteResult]
    ) -> None:
        """Publish items, and wait for the answers.

        ``sent`` gets the places of items by the numbers of their messages, ``refused`` the results of those that are not sent.
        """
        options, largest = self._options, int(session.properties.get("MaximumPacketSize", _MOST_PAYLOAD_BYTES))
        window = int(session.properties.get("ReceiveMaximum", MOST_IN_FLIGHT if options.broker.is_v5 else _WINDOW_OF_V3))
        self._answers.clear()
        for place, (topic, payload) in enumerate(items):
            if len(topic.encode()) + len(payload) + _OTHER_BYTES > largest:
                refused[place] = WriteResult(Outcome.REFUSED, f"the broker takes messages of at most {largest} bytes")
                continue
            self._wait(session, len(sent) - window + 1)
            sent[session.publish(topic, payload, options.qos, retain=options.retained)] = place
        self._wait(session, len(sent))

    def _wait(self, session: Session, acknowledged: int) -> None:
        """Wait until so many messages are acknowledged. Raises UnreachableError."""
        quiet_since, before = time.monotonic(), len(self._answers)
        while len(self._answers) < acknowledged:
            session.turn(1.0)
            if len(self._answers) > before:
                quiet_since, before = time.monotonic(), len(self._answers)
            elif time.monotonic() - quiet_since > self._options.broker.timeout:
                raise UnreachableError(f"The MQTT broker has acknowledged no message for {self._options.broker.timeout:.0f} s")

    def _opened(self) -> Session:
        """Return the session, a new one if the connection was lost. Raises UnreachableError and ConnectError."""
        if self._session is not None:
            return self._session
        options = self._options
        self._session = session = Session(options.broker, clean=True, on_publish=self._answers.__setitem__)
        try:
            session.open()
            self._check(session.properties)
        except OSError:
            self.stop()
            raise
        return session

    def _check(self, broker: Mapping[str, Any]) -> None:
        if (most := int(broker.get("MaximumQoS", 2))) < self._options.qos:
            raise ConnectError(f"The MQTT broker takes messages of at most quality {most}: set {QOS}={most}.")
        if self._options.retained and not broker.get("RetainAvailable", 1):
            raise ConnectError(f"The MQTT broker retains no messages: set {RETAINED}=false.")


def _result(reason: Any) -> WriteResult:
    """Return the outcome by the reason code of an acknowledgement (version 5, sections 3.4 and 3.5)."""
    if reason.value < FAILURE:
        return DONE
    return WriteResult(Outcome.RETRY if reason.value == _QUOTA_EXCEEDED else Outcome.REFUSED, f"the broker says: {reason}")


class MqttSinkConnector(MqttConnector, SinkConnector):
    """Publishes records to an MQTT broker."""

    task_class = MqttSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self._config, TASK: str(number)} for number in range(max_tasks)]
