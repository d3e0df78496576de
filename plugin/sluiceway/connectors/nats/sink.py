"""NatsSinkConnector and its task: publish records to the streams of NATS JetStream, which drop what they have already."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluiceway.api import BatchLimits, BatchSinkTask, Outcome, SinkConnector, SinkRecord, WriteResult
from sluiceway.config.connector import NAME
from sluiceway.config.definition import ConfigDef, ConfigValue, Importance, ValidatedValue
from sluiceway.config.validators import NonEmptyString
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.keys import flag, text, unreachable_key, unreachable_seconds, whole
from sluiceway.connectors.nats.connection import CONNECTION_KEYS, NatsConnector, Server, server_of
from sluiceway.connectors.nats.jetstream import streams_of
from sluiceway.connectors.nats.messages import HEADERS, OWN_HEADERS
from sluiceway.connectors.nats.publisher import MESSAGE_ID, Publication, Publisher, size_of
from sluiceway.connectors.nats.session import Session
from sluiceway.connectors.repeats import repeats
from sluiceway.connectors.simple_values import record_name, required_bytes, simple_bytes
from sluiceway.data import java_text
from sluiceway.errors import ConnectError, DataError

SUBJECT, WINDOW, IDS = "nats.subject", "nats.publish.window", "nats.message.id"
TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER, KEY_PLACEHOLDER = "${topic}", "${partition}", "${key}"
OFFSET_PLACEHOLDER, NAME_PLACEHOLDER = "${offset}", "${connector}"
_MESSAGES = "Messages"
_MOST_BYTES = 32 * 1024 * 1024
_MOST_IN_SUBJECT = 2000  # bytes, so that the line of a message has less than the 4096 of the server's limit
_SERVERS_OWN = "nats-"
"""The beginning of the names of headers that the server obeys, in lower case."""
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")

CONFIG = ConfigDef(
    [
        *CONNECTION_KEYS,
        text(
            name=SUBJECT,
            default=TOPIC_PLACEHOLDER,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_MESSAGES,
            doc=f"The subject, such as orders.{KEY_PLACEHOLDER}, which a stream must take. {TOPIC_PLACEHOLDER} is the topic, "
            f"{PARTITION_PLACEHOLDER} the partition, {KEY_PLACEHOLDER} the record's key.",
        ),
        text(
            name=IDS,
            default=f"{NAME_PLACEHOLDER}-{TOPIC_PLACEHOLDER}-{PARTITION_PLACEHOLDER}-{OFFSET_PLACEHOLDER}",
            validator=NonEmptyString(),
            importance=Importance.LOW,
            group=_MESSAGES,
            doc=f"The id of a message ({MESSAGE_ID}). A stream drops a message whose id it has seen within its duplicate window. "
            f"{NAME_PLACEHOLDER} is the connector's name. Connectors that write the same topic to one stream need different ids, "
            "and so do the same topics of several Kafka clusters.",
        ),
        flag(
            name=HEADERS,
            default=True,
            group=_MESSAGES,
            doc="Whether the record's headers are headers of the message. Those that begin with Nats-, which the server obeys, "
            "and those in which NatsStreamSource and NatsConsumerSource say where a message was, are left out.",
        ),
        whole(
            WINDOW,
            1000,
            1,
            _MESSAGES,
            "The most messages that are published and not acknowledged. 1 keeps the order even when a stream refuses messages "
            "because it is full.",
        ),
        unreachable_key(_MESSAGES, "a server"),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The server, and the form of the messages there."""

    server: Server
    subject: str
    ids: str
    headers: bool
    window: int
    limits: BatchLimits


def sink_options(config: Mapping[str, str]) -> SinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    server = server_of(values)
    return SinkOptions(
        server=server,
        subject=str(values[SUBJECT]),
        ids=str(values[IDS]).replace(NAME_PLACEHOLDER, config.get(NAME, "")),
        headers=bool(values[HEADERS]),
        window=int(str(values[WINDOW])),
        limits=BatchLimits(
            records=2**31,
            size=_MOST_BYTES,
            longest_backoff=server.longest_pause,
            unreachable=unreachable_seconds(values),
        ),
    )


class NatsSinkTask(BatchSinkTask[Publication]):
    """Publishes records, and takes those for done that a stream has acknowledged.

    A message has an id of its record, so that a stream drops what it was sent before, as long as it remembers.
    """

    _publisher: Publisher | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = sink_options(config)
        self.limits = options.limits
        self._name = config.get(NAME, "")
        self._connections = 0
        self._repeats: dict[int, int] = {}  # the numbers of records that are not the first ones of their messages

    def stop(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._repeats = repeats(records)
        super().put(records)

    def prepare(self, record: SinkRecord) -> Publication:
        try:
            subject = filled_subject(self._options.subject, record)
            value = record.value
            if value is None:
                raise DataError(
                    f"{record_name(record)} has no value, and a message needs one. Leave such records out with Filter."
                )
            payload = required_bytes(value, record, "value")
            headers = [(MESSAGE_ID, self._id_of(record))]
            if self._options.headers:
                headers += own_headers(record)
        except (UnicodeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{record_name(record)} cannot be published to NATS: {error}") from error
        return Publication(subject, payload, headers, len(payload) + size_of(headers))

    def _id_of(self, record: SinkRecord) -> str:
        topic, partition = record.original_topic_partition
        found = self._options.ids.replace(PARTITION_PLACEHOLDER, str(partition))
        found = found.replace(OFFSET_PLACEHOLDER, str(record.original_kafka_offset)).replace(TOPIC_PLACEHOLDER, topic)
        repeat = self._repeats.get(id(record))
        return found if repeat is None else f"{found}-{repeat}"

    def size_of(self, item: Publication) -> int:
        return item.size

    def write(self, items: Sequence[Publication]) -> Sequence[WriteResult]:
        if self._publisher is None:
            self._publisher = Publisher(self._options.server, self._name, self._connections)
            self._connections += 1
        try:
            found = self._publisher.publish(items, self._options.window)
        except (UnreachableError, ConnectError):
            self.stop()
            raise
        if len(found) < len(items):
            self.stop()
        left = WriteResult(Outcome.RETRY, "the connection to NATS was lost")
        return [found.get(index, left) for index in range(len(items))]

    def metrics(self) -> Mapping[str, float]:
        """Return also how often a connection was opened."""
        return {**super().metrics(), "connections-opened": self._connections}


def filled_subject(template: str, record: SinkRecord) -> str:
    """Return the subject of a record's message. Raises DataError for one that cannot be published to."""
    subject = template.replace(PARTITION_PLACEHOLDER, str(record.kafka_partition)).replace(TOPIC_PLACEHOLDER, record.topic)
    if KEY_PLACEHOLDER in template:
        if record.key is None:
            raise DataError(f"{SUBJECT} has {KEY_PLACEHOLDER}, and {record_name(record)} has no key.")
        try:
            key = required_bytes(record.key, record, "key").decode()
        except UnicodeDecodeError as error:
            raise DataError(f"The key of {record_name(record)} is not UTF-8 ({error}), and cannot be in {SUBJECT}.") from error
        subject = subject.replace(KEY_PLACEHOLDER, key)
    if problem := subject_problem(subject):
        raise DataError(
            f"{record_name(record)} cannot be published to the subject {subject[:200]!r}: {problem}. Check {SUBJECT}."
        )
    return subject


def subject_problem(subject: str) -> str:
    """Return why nothing can be published to a subject; empty if it can be."""
    if re.search(r"[\s\0]", subject) or any(not token or token in ("*", ">") for token in subject.split(".")):
        return "its parts between dots must not be empty, and have no spaces and wildcards"
    if len(subject.encode()) > _MOST_IN_SUBJECT:
        return f"it has more than {_MOST_IN_SUBJECT} bytes"
    if subject.startswith("$") and not subject.startswith(("$KV.", "$O.")):
        return "it begins with $, and is the server's own"
    return ""


def own_headers(record: SinkRecord) -> list[tuple[str, str]]:
    """Return the headers of a record's message. Raises DataError for what no header of NATS can be."""
    found = []
    for header in record.headers:
        name, value = header.key, header.value
        if name in OWN_HEADERS or name.lower().startswith(_SERVERS_OWN):
            continue
        raw = b"" if value is None else simple_bytes(value)
        try:
            written = java_text(value) if raw is None else raw.decode()
        except UnicodeDecodeError:
            written = "\n"  # which no header has
        if not _HEADER_NAME.fullmatch(name) or set("\r\n") & set(written) or written != written.strip():
            what = f"The header {name[:200]!r} of {record_name(record)} cannot be one of NATS"
            raise DataError(
                f"{what}: a name has letters, digits, and some signs of ASCII, a value is one line of UTF-8 without spaces "
                f"around it. Remove it with DropHeaders, or all with {HEADERS}=false."
            )
        found.append((name, written))
    return found


class NatsSinkConnector(NatsConnector, SinkConnector):
    """Publishes records to streams of NATS JetStream: at least once, and without repeats within a stream's duplicate window."""

    task_class = NatsSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        problems = {}
        subject, ids = str(values[SUBJECT]), str(values[IDS])
        known = {TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER, KEY_PLACEHOLDER}
        if unknown := set(_PLACEHOLDER.findall(subject)) - known:
            problems[SUBJECT] = f"has {min(unknown)}; it may have {', '.join(sorted(known))}"
        elif problem := subject_problem(_PLACEHOLDER.sub("x", subject)):
            problems[SUBJECT] = f"cannot be published to: {problem}"
        needed = {TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER, OFFSET_PLACEHOLDER}
        if missing := needed - set(_PLACEHOLDER.findall(ids)):
            problems[IDS] = f"needs {min(missing)}: streams would drop records with the same id"
        elif unknown := set(_PLACEHOLDER.findall(ids)) - needed - {NAME_PLACEHOLDER}:
            problems[IDS] = f"has {min(unknown)}; it may have {', '.join(sorted((*needed, NAME_PLACEHOLDER)))}"
        elif set("\r\n") & set(ids):
            problems[IDS] = "must be one line"
        return problems

    @classmethod
    def try_server(cls, session: Session, found: Mapping[str, ValidatedValue]) -> None:
        subject = str(found[SUBJECT].value)
        if not _PLACEHOLDER.search(subject) and not streams_of(session, subject):
            found[SUBJECT].errors.append(f"{session.where}: no stream takes the subject {subject}. Add it to a stream.")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks
