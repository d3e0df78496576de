"""Reads signals from the channels besides the signal table: a file and a Kafka topic."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from sluiceway.config.signal_topic import KAFKA, Signal, SignalTopic
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.kafka.clients import OFFSET_STORED, TopicPartitionOffset, consumer, to_librdkafka

log = logging.getLogger(__name__)

SIGNAL_OFFSET = "incremental_snapshot_signal_offset"
OWN_SIGNAL_OFFSET = "sluiceway_signal_offset"
"""The key of source offsets with the offset of the last signal, where Debezium does not keep it."""
_KAFKA_SECONDS = 0.1
_ERROR_SECONDS = 1.0
_MOST_SIGNALS = 100


class Channel(Protocol):
    """A source of signals. One thread reads; ``commit`` may be called by another."""

    def read(self) -> list[Signal]:
        """Return new signals, without waiting."""

    def state(self) -> dict[str, Any]:
        """Return the channel's part of source offsets."""

    def commit(self, offset: Mapping[str, Any]) -> None:
        """A source offset is stored: the signals that its state contains need not be read again."""

    def close(self) -> None: ...


def open_channels(config: CommonConfig, offset: Mapping[str, Any]) -> list[Channel]:
    """Return the channels of ``signal.enabled.channels`` besides the signal table."""
    channels: list[Channel] = []
    if "file" in config.signals.channels:
        channels.append(FileChannel(config.config.get("signal.file") or "file-signals.txt", config.signals.interval))
    if KAFKA in config.signals.channels:
        channels.append(KafkaChannel(config, offset))
    return channels


class FileChannel:
    """Reads signals from a file: one JSON document a line. The file is emptied when it was read."""

    def __init__(self, path: str, interval: float) -> None:
        self._path = Path(path)
        self._interval = interval
        self._due = 0.0

    def read(self) -> list[Signal]:
        """Return the signals in the file, if the interval has passed."""
        if time.monotonic() < self._due:
            return []
        self._due = time.monotonic() + self._interval
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines() if self._path.exists() else []
            if lines:
                self._path.write_text("", encoding="utf-8")
        except OSError as error:
            log.warning("The signal file %s cannot be read: %s", self._path, error)
            return []
        return [signal for line in lines if line.strip() and (signal := parse_document(line)) is not None]

    def state(self) -> dict[str, Any]:
        return {}

    def commit(self, offset: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class KafkaChannel:
    """Reads signals from the first partition of a topic: records whose key is the topic prefix.

    It starts after the signal of the source offset. Without one it starts at the offset that its consumer group has committed, or
    by ``signal.consumer.auto.offset.reset``. An offset is committed once a source offset is stored that has the signal's request.
    """

    def __init__(self, config: CommonConfig, offset: Mapping[str, Any]) -> None:
        topic = SignalTopic.of(config.config)
        self._prefix = topic.key
        self._topic = topic.name
        self._due = 0.0
        self._key = SIGNAL_OFFSET if config.signals.read_only else OWN_SIGNAL_OFFSET
        self._last: int | None = None if offset.get(self._key) is None else int(offset[self._key])
        self._committed = self._last
        properties = {
            "auto.offset.reset": "earliest",
            "group.id": config.config.get("signal.kafka.groupId") or "kafka-signal",
            **topic.properties,
            "enable.auto.commit": "false",
        }
        self._consumer = consumer(to_librdkafka(properties))
        self._assign()
        log.info("Reading signals from topic '%s'", self._topic)

    def read(self) -> list[Signal]:
        """Return the signals that have arrived."""
        if time.monotonic() < self._due:
            return []
        self._due = time.monotonic() + _KAFKA_SECONDS
        found = []
        for message in self._consumer.consume(_MOST_SIGNALS, 0):
            error = message.error()
            if error is not None:
                log.warning("The signal topic '%s' cannot be read: %s", self._topic, error)
                if message.topic() is None:  # librdkafka does not ask again for a committed offset that it did not get
                    self._assign()
                    self._due = time.monotonic() + _ERROR_SECONDS
                continue
            self._last = message.offset()
            if (message.key() or b"").decode("utf-8", "replace") != self._prefix:
                continue
            signal = parse_document((message.value() or b"").decode("utf-8", "replace"))
            if signal is not None:
                found.append(signal)
        return found

    def _assign(self) -> None:
        start = OFFSET_STORED if self._last is None else self._last + 1
        self._consumer.assign([TopicPartitionOffset(self._topic, 0, start)])

    def state(self) -> dict[str, Any]:
        return {} if self._last is None else {self._key: self._last}

    def commit(self, offset: Mapping[str, Any]) -> None:
        last = offset.get(self._key)
        if last is not None and last != self._committed:
            self._consumer.commit(offsets=[TopicPartitionOffset(self._topic, 0, last + 1)], asynchronous=True)
            self._committed = last

    def close(self) -> None:
        self._consumer.close()


def parse_document(text: str) -> Signal | None:
    """Return the signal of a JSON document with id, type and data; None with a warning for another text."""
    try:
        document = _parsed(text)
        data = document.get("data") or {}
        data = _parsed(data) if isinstance(data, str) else data
        if not isinstance(data, dict):
            raise ValueError("its data is no JSON object")
        return Signal(str(document.get("id", "")), str(document["type"]), data)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        log.warning("A signal is not a JSON document with id, type and data: %s", error)
        return None


def parse_row(values: Sequence[Any]) -> Signal | None:
    """Return the signal of a row of the signal table: id, type and data, whatever the columns' names."""
    if len(values) < 2 or values[0] is None or values[1] is None:
        return None
    text = values[2] if len(values) > 2 else None
    try:
        data = _parsed(text) if text else {}
    except (ValueError, TypeError, RecursionError) as error:
        log.warning("Signal %s: its data is not JSON, so it is ignored: %s", values[0], error)
        return None
    return Signal(str(values[0]), str(values[1]), data if isinstance(data, dict) else {})


def _parsed(text: str | bytes) -> Any:
    r"""Parse JSON. Raises ValueError also for a text such as "\ud800", which no record, no statement, and no log can have."""
    found = json.loads(text)
    json.dumps(found, ensure_ascii=False).encode()
    return found
