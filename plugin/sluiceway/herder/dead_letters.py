"""Shows and replays dead letter queue records of one connector, for the REST API. Blocks until Kafka has answered."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sluiceway.config.connector import DLQ_TOPIC
from sluiceway.config.worker import WorkerConfig
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.discovery import converter_class
from sluiceway.errors import BadRequestError, ConnectError, NotFoundError
from sluiceway.herder.isolated import Isolated, here
from sluiceway.herder.references import References
from sluiceway.kafka.dead_letter_headers import ConsumedDeadLetter
from sluiceway.kafka.dead_letter_topic import DeadLetterPosition, DeadLetterTopic, ReplayResult
from sluiceway.runtime.task_converters import class_and_options

log = logging.getLogger(__name__)

_REPLACED = "\ufffd"
"""The character that StringConverter, as Java, puts in place of bytes that are not UTF-8."""

_Converted = tuple[str, bytes | None]  # the key of a converter, and what it reads


@dataclass(frozen=True, slots=True)
class ReadableBytes:
    """Bytes as text. ``format`` is text, json if the connector's converter could read them, or base64."""

    text: str
    format: str


@dataclass(frozen=True, slots=True)
class ReadableRecord:
    """A dead letter queue record with its key, value and headers as text; None for null."""

    record: ConsumedDeadLetter
    key: ReadableBytes | None
    value: ReadableBytes | None
    headers: list[tuple[str, ReadableBytes | None]]


@dataclass(frozen=True, slots=True)
class DeadLetterList:
    """The newest records of a connector. ``count`` is that of all records in the topic, None without a topic in the config."""

    topic: str | None
    count: int | None
    records: list[ReadableRecord]


class ConnectorDeadLetters:
    """The dead letter queue of a connector, which is read with the worker's rights. ``call`` runs its converters."""

    def __init__(self, worker: WorkerConfig, name: str, config: Mapping[str, str], call: Isolated = here) -> None:
        self._worker = worker
        self._name = name
        self._config = config
        self._call = call
        self._topic = config.get(DLQ_TOPIC, "").strip()

    def newest(self, limit: int) -> DeadLetterList:
        """Return up to ``limit`` of the newest records, newest first. Raises KafkaClientError."""
        if not self._topic:
            return DeadLetterList(None, None, [])
        try:
            queue = DeadLetterTopic(self._worker, self._topic, self._name)
        except NotFoundError:  # the first record creates the topic
            return DeadLetterList(self._topic, 0, [])
        records = queue.newest(limit)
        decoded = self._decoded(records)
        return DeadLetterList(self._topic, queue.count(), [_readable_record(record, decoded) for record in records])

    def replay(self, positions: Collection[DeadLetterPosition], to: str | None) -> ReplayResult:
        """Send records to the topics they came from, or to ``to``. Raises BadRequestError, and as ``replay_chosen`` does."""
        if not self._topic:
            raise BadRequestError(f"Connector {self._name} has no dead letter queue: its config does not set {DLQ_TOPIC}.")
        return DeadLetterTopic(self._worker, self._topic, self._name).replay_chosen(positions, to=to)

    def _decoded(self, records: Iterable[ConsumedDeadLetter]) -> Mapping[_Converted, str]:
        """Return as JSON what is no text and the connector's converters can read."""
        found = [each for record in records for each in _converted(record)]
        unread = [(key, data) for key, data in dict.fromkeys(found) if data is not None and _text(data) is None]
        if not unread:
            return {}
        try:
            texts = self._call(_decode, self._config, self._worker, self._topic, unread)
        except ConnectError as error:
            log.warning("[%s|worker] Dead letter queue records are shown as base64: %s", self._name, error)
            return {}
        return {each: text for each, text in zip(unread, texts, strict=True) if text is not None}


def _converted(record: ConsumedDeadLetter) -> tuple[_Converted, _Converted]:
    return ("key.converter", record.key), ("value.converter", record.value)


def _decode(config: Mapping[str, str], worker: WorkerConfig, topic: str, data: Sequence[tuple[str, bytes]]) -> list[str | None]:
    """Return bytes as JSON; None for those that the connector's converter does not read."""
    decoders = {key: _decoder(config, worker, topic, key) for key in {key for key, _ in data}}
    return [decoders[key](each) for key, each in data]


def _decoder(given: Mapping[str, str], worker: WorkerConfig, topic: str, key: str) -> Callable[[bytes], str | None]:
    """Return a function that decodes bytes with a converter of the connector to JSON, or returns None.

    Java converters are not used: a request must not start a JVM.
    """
    try:
        config = {name: text for name, text in References.of(given, worker).config.items() if text is not None}
        name, options = class_and_options(key, config, worker)
        cls = converter_class(name, options.get("plugin.version"))
        if getattr(cls, "plugin", None) is not None:
            return _undecoded
        converter = cls()
        converter.configure(options, is_key=key == "key.converter")
    except ConnectError:
        return _undecoded
    json = JsonConverter()
    json.configure({"schemas.enable": "false"})

    def decode(data: bytes) -> str | None:
        try:
            schema, value = converter.to_connect_data(topic, data)
            encoded = json.from_connect_data(topic, schema, value)
        except ConnectError:
            return None
        text = None if encoded is None else encoded.decode()
        return None if text is None or _REPLACED in text else text

    return decode


def _undecoded(_data: bytes) -> None:
    return None


def _readable_record(record: ConsumedDeadLetter, decoded: Mapping[_Converted, str]) -> ReadableRecord:
    key, value = (_readable(each[1], decoded.get(each)) for each in _converted(record))
    return ReadableRecord(record, key, value, [(name, _readable(data, None)) for name, data in record.headers])


def _readable(data: bytes | None, decoded: str | None) -> ReadableBytes | None:
    if data is None:
        return None
    text = _text(data)
    if text is not None:
        return ReadableBytes(text, "text")
    if decoded is not None:
        return ReadableBytes(decoded, "json")
    return ReadableBytes(base64.b64encode(data).decode(), "base64")


def _text(data: bytes) -> str | None:
    """Return the text in bytes; None if there are control characters besides white space, as in Avro that is valid UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(each.isprintable() or each in "\r\n\t" for each in text) else None
