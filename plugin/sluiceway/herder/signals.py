"""Sends signals to connectors of change data capture through their signal topics, for the REST API.

Works for connectors in Python and for Debezium's in Java alike: both read the topic of their config.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION, NAME
from sluiceway.config.signal_topic import (
    BOOTSTRAP_KEY,
    CHANNELS_KEY,
    KAFKA,
    PREFIX_KEY,
    TYPES,
    Signal,
    SignalTopic,
    enabled_channels,
)
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, is_sink, java_name
from sluiceway.errors import BadRequestError, ConflictError, ConnectError, KafkaClientError
from sluiceway.herder.isolated import Isolated, here
from sluiceway.herder.references import References
from sluiceway.kafka.signal_sender import send_signal

log = logging.getLogger(__name__)

_DEBEZIUM = "io.debezium.connector."


class ConnectorSignals:
    """The Kafka channel of a connector's signals. ``call`` connects to it with the connector's rights."""

    def __init__(self, worker: WorkerConfig, name: str, config: Mapping[str, str], call: Isolated = here) -> None:
        self._worker = worker
        self._name = name
        self._config = {**config, NAME: name}
        self._call = call

    def send(self, signal: Signal, user: str | None = None) -> str:
        """Write a signal to the connector's signal topic, and return the topic's name once Kafka has acknowledged it.

        A connector that does not run executes the signal when it runs again. ``user`` is for the log.

        Raises:
            BadRequestError: the connector does not know the type of the signal, or its data names no tables.
            ConflictError: the connector takes no signals from Kafka; the message says which keys to set.
            KafkaClientError: the brokers cannot be reached or refuse the record.
        """
        check_class(self._name, self._config)
        check_signal(self._name, self._config, signal)
        topic = str(self._call(_send, self._config, self._worker, signal))
        by = f" by {user}" if user else ""
        log.info("[%s|worker] Signal %s (%s) sent to topic %s%s", self._name, signal.id, signal.type, topic, by)
        return topic


def _send(config: Mapping[str, str], worker: WorkerConfig, signal: Signal) -> str:
    name = config[NAME]
    topic = signal_topic(name, _resolved(config, worker))
    try:
        send_signal(topic.properties, topic.name, topic.key.encode(), document(signal))
    except KafkaClientError as error:
        raise KafkaClientError(
            f"The signal to connector {name} was not acknowledged. {error} Check {BOOTSTRAP_KEY}, the security "
            f"settings in signal.consumer.*, and that their user may write to topic {topic.name}.",
            error.code,
        ) from error
    return topic.name


def _resolved(config: Mapping[str, str], worker: WorkerConfig) -> Mapping[str, str]:
    """Return the keys of signals with their references resolved."""
    used = {key: text for key, text in config.items() if key.startswith("signal.") or key == PREFIX_KEY}
    references = References.of(used, worker)
    if references.unknown:
        raise ConflictError(
            f"Connector {config[NAME]}: the reference in {', '.join(sorted(references.unknown))} cannot be resolved on the "
            "machine of the REST API. Make it readable there, or write the record to the signal topic yourself."
        )
    return {key: text for key, text in references.config.items() if text is not None}


def document(signal: Signal) -> bytes:
    """Return a signal as the JSON document that Debezium's Kafka channel reads."""
    return json.dumps(signal._asdict(), ensure_ascii=False).encode()


def check_class(name: str, config: Mapping[str, str]) -> None:
    """Raise ConflictError if a connector's class is not one of change data capture."""
    class_name, sink, _ = _class_of(config)
    if sink or not class_name.startswith(_DEBEZIUM):
        raise ConflictError(
            f"Connector {name} takes no signals: {class_name or 'its class'} is not a connector of change data capture. Signals "
            "are for the source connectors with Debezium's names."
        )


def check_signal(name: str, config: Mapping[str, str], signal: Signal) -> None:
    """Raise BadRequestError for a signal that a connector in Python would ignore. A Java connector checks its signals itself."""
    if not _class_of(config)[2]:
        return
    if signal.type not in TYPES:
        raise BadRequestError(f"Unknown signal type {signal.type!r}. Connector {name} takes {', '.join(TYPES)}.")
    if signal.type == "execute-snapshot" and not signal.data.get("data-collections"):
        raise BadRequestError(
            "The data of execute-snapshot must name the tables to read: "
            '{"data-collections": ["schema\\\\.table"], "type": "incremental"}.'
        )


def signal_topic(name: str, config: Mapping[str, str]) -> SignalTopic:
    """Return a connector's signal topic. Raises ConflictError if the connector does not read one."""
    if KAFKA not in enabled_channels(config):
        channels = config.get(CHANNELS_KEY) or "source"
        raise ConflictError(
            f"Connector {name} takes no signals from Kafka: {CHANNELS_KEY} is {channels!r}. Add kafka to it, and set "
            f"{BOOTSTRAP_KEY}."
        )
    topic = SignalTopic.of(config)
    missing = [key for key, text in ((PREFIX_KEY, topic.key), (BOOTSTRAP_KEY, topic.properties["bootstrap.servers"])) if not text]
    if missing:
        raise ConflictError(f"Connector {name} takes no signals from Kafka: its config does not set {' and '.join(missing)}.")
    return topic


def _class_of(config: Mapping[str, str]) -> tuple[str, bool, bool]:
    """Return the Java name of a connector's class, whether it is a sink, and whether it is written in Python.

    A class that is not installed here may be on the machine of the driver, and is judged by its name.
    """
    named = config.get(CONNECTOR_CLASS, "")
    try:
        found = connector_class(named, config.get(CONNECTOR_VERSION))
        return java_name(found), is_sink(found), getattr(found, "plugin", None) is None
    except ConnectError:
        return named, "Sink" in named, False
