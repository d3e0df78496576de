"""SqsSinkConnector and its task: send records to a queue of SQS."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import DONE, Outcome, SinkConnector, SinkRecord, WriteResult
from sluiceway.config.connector import NAME
from sluiceway.config.definition import ConfigDef, ConfigValue, Importance, ValidatedValue
from sluiceway.config.validators import Check, EnumText
from sluiceway.connectors.aws.client import aws_errors, code_of, is_busy
from sluiceway.connectors.aws.connection import Account, AwsConnector, connection_keys
from sluiceway.connectors.aws.requests import RequestLimits, RequestSinkTask
from sluiceway.connectors.aws.sqs_messages import HEADERS, OWN_HEADERS
from sluiceway.connectors.aws.sqs_queue import (
    MOST_AT_ONCE,
    MOST_BYTES,
    SERVICE,
    URL,
    Queue,
    check_queue,
    failure_text,
    failures_of,
    numbered,
    queue_of,
    sqs_account,
)
from sluiceway.connectors.errors import RefusedError
from sluiceway.connectors.keys import flag, text, unreachable_key, unreachable_seconds, whole
from sluiceway.connectors.repeats import repeats
from sluiceway.connectors.simple_values import record_name, required_bytes
from sluiceway.errors import ConfigError, DataError

NULLS, AT_ONCE = "sqs.null.values", "sqs.requests.max"
GROUP, ORDERED = "sqs.message.group", "sqs.ordered"
_MESSAGES = "Messages"
_BY_KEY, _BY_PARTITION = "key", "partition"
_MOST_ATTRIBUTES = 10
_MOST_ID = 128
_ID = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")
_ATTRIBUTE = re.compile(r"(?!(?i:aws\.|amazon\.)|\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_NOT_ALLOWED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OF_ITEMS = (
    "InvalidMessageContents",
    "InvalidParameterValue",
    "InvalidAttributeValue",
    "BatchRequestTooLong",
    "ValidationException",
)

CONFIG = ConfigDef(
    [
        *connection_keys(SERVICE),
        text(
            name=URL,
            validator=Check(check_queue, "the URL or the name of a queue"),
            importance=Importance.HIGH,
            group=_MESSAGES,
            doc="The URL of the queue, or its name. It must exist.",
        ),
        text(
            name=GROUP,
            default=_BY_KEY,
            validator=EnumText(_BY_KEY, _BY_PARTITION),
            group=_MESSAGES,
            doc="The group of messages of a FIFO queue, whose order is kept: the record's key (its partition, for records "
            "without a key), or always its partition.",
        ),
        flag(
            name=ORDERED,
            default=True,
            group=_MESSAGES,
            doc="Whether a request to a FIFO queue has at most one message of each group. If not, requests are fewer, and a "
            "message that SQS takes at the second attempt only comes after later ones of its group.",
        ),
        text(
            name=NULLS,
            default="fail",
            validator=EnumText("fail", "ignore"),
            group=_MESSAGES,
            doc="Records without a value, which no message can be: fail makes them bad records, ignore leaves them out.",
        ),
        flag(
            name=HEADERS,
            default=True,
            group=_MESSAGES,
            doc="Whether the record's headers are attributes of the message, which has up to ten. Those in which SqsSource says "
            "where a message was are left out.",
        ),
        whole(AT_ONCE, 8, 1, _MESSAGES, "The most requests at once."),
        unreachable_key(_MESSAGES, "SQS"),
    ]
)


@dataclass(frozen=True, slots=True)
class SqsSinkOptions:
    """The queue, and the form of its messages."""

    account: Account
    queue: str
    by_key: bool
    ordered: bool
    leaves_nulls_out: bool
    headers: bool
    at_once: int
    unreachable: float | None


def sink_options(config: Mapping[str, str]) -> SqsSinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    return SqsSinkOptions(
        account=sqs_account(values),
        queue=str(values[URL]),
        by_key=str(values[GROUP]).lower() == _BY_KEY,
        ordered=bool(values[ORDERED]),
        leaves_nulls_out=str(values[NULLS]).lower() == "ignore",
        headers=bool(values[HEADERS]),
        at_once=int(str(values[AT_ONCE])),
        unreachable=unreachable_seconds(values),
    )


@dataclass(slots=True, eq=False)
class SqsMessage:
    """A message to send. ``group`` and ``deduplication`` are for FIFO queues."""

    body: str
    attributes: Mapping[str, Mapping[str, Any]]
    size: int
    group: str
    deduplication: str

    def entry(self, queue: Queue) -> dict[str, Any]:
        made: dict[str, Any] = {"MessageBody": self.body, "MessageAttributes": self.attributes}
        if queue.is_fifo:
            made |= {"MessageGroupId": self.group, "MessageDeduplicationId": self.deduplication}
        return made


class SqsSinkTask(RequestSinkTask[SqsMessage]):
    """Sends records to a queue, and takes those for done that SQS has.

    A message of a FIFO queue has an id of its record, so that SQS drops what it was sent within the last five minutes.
    """

    _queue: Queue | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = sink_options(config)
        self.open_requests(options.account, RequestLimits(MOST_AT_ONCE, MOST_BYTES, options.at_once), options.unreachable)
        self._name = config.get(NAME, "")
        self._is_fifo = options.queue.endswith(".fifo")
        self._repeats: Mapping[int, int] = {}

    def connect(self, client: Any) -> None:
        self._queue = queue_of(client, self.account, self._options.queue)

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._repeats = repeats(records)
        super().put(records)

    def prepare(self, record: SinkRecord) -> SqsMessage | None:
        if record.value is None:
            if self._options.leaves_nulls_out:
                return None
            raise DataError(
                f"{record_name(record)} has no value, and a message of SQS needs one. {NULLS}=ignore leaves such records out."
            )
        try:
            body = required_bytes(record.value, record, "value").decode()
            attributes = attributes_of(record) if self._options.headers else {}
            group, deduplication = (self._group(record), self._deduplication(record)) if self._is_fifo else ("", "")
        except (UnicodeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{record_name(record)} cannot be sent to SQS, whose messages are texts: {error}") from error
        if not body or _NOT_ALLOWED.search(body):
            raise DataError(
                f"{record_name(record)} cannot be sent to SQS: its value is empty, or has a character that XML does not have."
            )
        size = len(body.encode()) + sum(map(_size_of, attributes.items()))
        most = MOST_BYTES if self._queue is None else self._queue.most_bytes
        if size > most:
            raise DataError(f"{record_name(record)} cannot be sent to SQS: it has {size} bytes, and the queue takes {most}.")
        return SqsMessage(body, attributes, size, group, deduplication)

    def _group(self, record: SinkRecord) -> str:
        topic, partition = record.original_topic_partition
        if not self._options.by_key or record.key is None:
            return id_of(f"{topic}-{partition}")
        return id_of(required_bytes(record.key, record, "key").decode())

    def _deduplication(self, record: SinkRecord) -> str:
        topic, partition = record.original_topic_partition
        found = f"{self._name}-{topic}-{partition}-{record.original_kafka_offset}"
        repeat = self._repeats.get(id(record))
        return id_of(found if repeat is None else f"{found}-{repeat}")

    def size_of(self, item: SqsMessage) -> int:
        return item.size

    def order_key(self, item: SqsMessage) -> Hashable:
        return item.group if self._is_fifo and self._options.ordered else None

    def send(self, client: Any, items: Sequence[SqsMessage]) -> Sequence[WriteResult]:
        queue = self._queue
        assert queue is not None  # noqa: S101 (found with the client)
        with aws_errors(self.account):
            answer = client.send_message_batch(QueueUrl=queue.url, Entries=numbered([each.entry(queue) for each in items]))
        failures = failures_of(answer)
        return [_result(failures.get(number)) for number in range(len(items))]

    def is_of_item(self, error: RefusedError) -> bool:
        return error.code in _OF_ITEMS


def _result(failure: Mapping[str, Any] | None) -> WriteResult:
    if failure is None:
        return DONE
    refused = failure.get("SenderFault") and not is_busy(code_of(failure))
    return WriteResult(Outcome.REFUSED if refused else Outcome.RETRY, failure_text(failure))


def id_of(text: str) -> str:
    """Return a text as the id of a group or a message, or its hash if SQS does not take it as such."""
    return text if _ID.fullmatch(text) else hashlib.sha256(text.encode()).hexdigest()


def attributes_of(record: SinkRecord) -> dict[str, dict[str, Any]]:
    """Return the headers of a record as attributes of a message. Raises DataError for what none can be."""
    found: dict[str, dict[str, Any]] = {}
    for header in record.headers:
        name, value = header.key, header.value
        if name in OWN_HEADERS:
            continue
        what = f"The header {name[:200]!r}"
        if not _ATTRIBUTE.fullmatch(name):
            raise DataError(
                f"{what} of {record_name(record)} cannot be an attribute of SQS: a name has letters, digits, '_', '-', "
                f"and single dots within, and does not begin with AWS. Remove it with DropHeaders, or all with {HEADERS}=false."
            )
        if isinstance(value, (bytes, bytearray)):
            made = {"DataType": "Binary", "BinaryValue": bytes(value)}
        else:
            written = "" if value is None else required_bytes(value, record, f"header {name}").decode()
            made = {"DataType": "String", "StringValue": written}
        if not next(iter([made[key] for key in made if key != "DataType"])) or _NOT_ALLOWED.search(
            str(made.get("StringValue", ""))
        ):
            raise DataError(
                f"{what} of {record_name(record)} is empty, or has a character that XML does not have. Remove it with "
                "DropHeaders."
            )
        found[name] = made
    if len(found) > _MOST_ATTRIBUTES:
        raise DataError(
            f"{record_name(record)} has {len(found)} headers, and a message of SQS up to {_MOST_ATTRIBUTES} attributes. Remove "
            f"some with DropHeaders, or all with {HEADERS}=false."
        )
    return found


def _size_of(attribute: tuple[str, Mapping[str, Any]]) -> int:
    name, value = attribute
    raw = value.get("BinaryValue") or str(value["StringValue"]).encode()
    return len(name) + len(value["DataType"]) + len(raw)


class SqsSinkConnector(AwsConnector, SinkConnector):
    """Sends records to a queue of Amazon SQS: at least once, and to a FIFO queue without repeats within five minutes."""

    task_class = SqsSinkTask
    address_key = URL

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def account(cls, values: Mapping[str, ConfigValue]) -> Account:
        return sqs_account(values)

    @classmethod
    def try_service(cls, client: Any, account: Account, found: Mapping[str, ValidatedValue]) -> None:
        try:
            queue_of(client, account, str(found[URL].value))
        except ConfigError as error:
            found[URL].errors.append(str(error))

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks
