"""Messages of SQS as records, and the names of headers, which the sink knows, too. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.aws.sqs_queue import Queue
from sluiceway.data import BYTES_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Header

TOPIC, HEADERS, VALUES = "kafka.topic", "sqs.headers.enabled", "sqs.values"
QUEUE_PLACEHOLDER = "${queue}"
QUEUE_HEADER, ID_HEADER, RECEIVES_HEADER = "sqs.queue", "sqs.message.id", "sqs.receive.count"
DEDUPLICATION_HEADER, SEQUENCE_HEADER = "sqs.deduplication.id", "sqs.sequence.number"
OWN_HEADERS = (QUEUE_HEADER, ID_HEADER, RECEIVES_HEADER, DEDUPLICATION_HEADER, SEQUENCE_HEADER)
"""The headers of records that say where a message was, and are none of the message's."""
_GROUP, _SENT, _RECEIVES = "MessageGroupId", "SentTimestamp", "ApproximateReceiveCount"
SYSTEM_ATTRIBUTES = (_GROUP, _SENT, _RECEIVES, "MessageDeduplicationId", "SequenceNumber")
_BY_ATTRIBUTE = {"MessageDeduplicationId": DEDUPLICATION_HEADER, "SequenceNumber": SEQUENCE_HEADER}
_BINARY = "Binary"


def receives_of(message: Mapping[str, Any]) -> int:
    """Return how often a message was received, about."""
    return int(message.get("Attributes", {}).get(_RECEIVES, 1))


class Records:
    """Makes records of the messages of queues."""

    def __init__(self, topic: str, *, as_bytes: bool, headers: bool) -> None:
        self._topic = topic
        self._as_bytes = as_bytes
        self._headers = headers

    def record(self, queue: Queue, message: Mapping[str, Any]) -> SourceRecord:
        """Return the record of a message, as ReceiveMessage gives it. Its key is that of its order, or else its id."""
        attributes: Mapping[str, str] = message.get("Attributes", {})
        body = str(message["Body"])
        return SourceRecord(
            None,
            None,
            self._topic.replace(QUEUE_PLACEHOLDER, queue.name),
            body.encode() if self._as_bytes else body,
            BYTES_SCHEMA if self._as_bytes else STRING_SCHEMA,
            attributes.get(_GROUP) or str(message["MessageId"]),
            STRING_SCHEMA,
            timestamp=int(attributes[_SENT]) if _SENT in attributes else None,
            headers=tuple(_headers(queue, message, attributes)) if self._headers else (),
        )


def _headers(queue: Queue, message: Mapping[str, Any], attributes: Mapping[str, str]) -> Sequence[Header]:
    own = [
        Header(QUEUE_HEADER, queue.name, STRING_SCHEMA),
        Header(ID_HEADER, str(message["MessageId"]), STRING_SCHEMA),
        Header(RECEIVES_HEADER, receives_of(message), INT64_SCHEMA),
    ]
    own += [Header(name, attributes[each], STRING_SCHEMA) for each, name in _BY_ATTRIBUTE.items() if each in attributes]
    for name, value in message.get("MessageAttributes", {}).items():
        if str(value["DataType"]).startswith(_BINARY):
            own.append(Header(name, bytes(value["BinaryValue"]), BYTES_SCHEMA))
        else:  # a text, or a number, which may be larger than any type
            own.append(Header(name, str(value["StringValue"]), STRING_SCHEMA))
    return own
