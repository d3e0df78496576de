"""KinesisSinkConnector and its task: put records into a stream of Kinesis."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import DONE, Outcome, SinkConnector, SinkRecord, WriteResult
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, EnumText, NonEmptyString, Range
from sluiceway.connectors.aws.client import aws_errors
from sluiceway.connectors.aws.connection import Account, AwsConnector, account_of, connection_keys
from sluiceway.connectors.aws.kinesis_stream import SERVICE, STREAM_KEY, check_stream, stream_state
from sluiceway.connectors.aws.requests import RequestLimits, RequestSinkTask
from sluiceway.connectors.errors import RefusedError
from sluiceway.connectors.keys import flag, text, unreachable_key, unreachable_seconds, whole
from sluiceway.connectors.simple_values import record_name, required_bytes
from sluiceway.errors import DataError

PARTITION_KEY, NULLS, ORDERED = "kinesis.partition.key", "kinesis.null.values", "kinesis.ordered"
RECORDS, BYTES, AT_ONCE = "kinesis.request.records", "kinesis.request.bytes", "kinesis.requests.max"
TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER, KEY_PLACEHOLDER = "${topic}", "${partition}", "${key}"
OFFSET_PLACEHOLDER = "${offset}"
_WITHOUT_KEY = f"{TOPIC_PLACEHOLDER}-{PARTITION_PLACEHOLDER}-{OFFSET_PLACEHOLDER}"
_RECORDS = "Records"
_FAIL, _IGNORE, _EMPTY = "fail", "ignore", "empty"
_MOST_RECORDS = 500
_MOST_BYTES = 5 * 1024 * 1024
_MOST_KEY = 256
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_KNOWN = {TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER, KEY_PLACEHOLDER, OFFSET_PLACEHOLDER}

CONFIG = ConfigDef(
    [
        *connection_keys(SERVICE),
        text(
            name=STREAM_KEY,
            validator=Check(check_stream, "the name of a stream"),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc="The stream, which must exist.",
        ),
        text(
            name=PARTITION_KEY,
            default=KEY_PLACEHOLDER,
            validator=NonEmptyString(),
            group=_RECORDS,
            doc=f"The partition key, whose records are in one shard, in their order. {KEY_PLACEHOLDER} is the record's key, "
            f"{TOPIC_PLACEHOLDER} the topic, {PARTITION_PLACEHOLDER} the partition, {OFFSET_PLACEHOLDER} the offset. A record "
            f"without a key has {_WITHOUT_KEY} instead of {KEY_PLACEHOLDER}: such records are spread over the "
            "shards, in no order.",
        ),
        flag(
            name=ORDERED,
            default=True,
            group=_RECORDS,
            doc="Whether a request has at most one record of each partition key. If not, requests are fewer, and a record that "
            "Kinesis takes at the second attempt only comes after later ones of its key.",
        ),
        text(
            name=NULLS,
            default=_FAIL,
            validator=EnumText(_FAIL, _IGNORE, _EMPTY),
            group=_RECORDS,
            doc=f"Records without a value: {_FAIL} makes them bad records, {_IGNORE} leaves them out, {_EMPTY} puts no bytes.",
        ),
        ConfigKey(
            name=RECORDS,
            type=Type.INT,
            default=_MOST_RECORDS,
            validator=Range(1, _MOST_RECORDS),
            importance=Importance.LOW,
            group=_RECORDS,
            doc="The most records of a request.",
        ),
        ConfigKey(
            name=BYTES,
            type=Type.INT,
            default=_MOST_BYTES,
            validator=Range(1, 2 * _MOST_BYTES),
            importance=Importance.LOW,
            group=_RECORDS,
            doc="The most bytes of a request, with the partition keys. A larger record is sent alone.",
        ),
        whole(AT_ONCE, 4, 1, _RECORDS, "The most requests at once."),
        unreachable_key(_RECORDS, "Kinesis"),
    ]
)


@dataclass(frozen=True, slots=True)
class KinesisSinkOptions:
    """The stream, and the form of its records."""

    account: Account
    stream: str
    partition_key: str
    ordered: bool
    nulls: str
    requests: RequestLimits
    unreachable: float | None


def sink_options(config: Mapping[str, str]) -> KinesisSinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    records, size, at_once = (int(str(values[key])) for key in (RECORDS, BYTES, AT_ONCE))
    return KinesisSinkOptions(
        account=account_of(SERVICE, values),
        stream=str(values[STREAM_KEY]),
        partition_key=str(values[PARTITION_KEY]),
        ordered=bool(values[ORDERED]),
        nulls=str(values[NULLS]).lower(),
        requests=RequestLimits(records, size, at_once),
        unreachable=unreachable_seconds(values),
    )


@dataclass(slots=True, eq=False)
class Put:
    """A record to put. ``size`` is that of the data and the key."""

    data: bytes
    key: str
    size: int


class KinesisSinkTask(RequestSinkTask[Put]):
    """Puts records, and takes those for done that have a sequence number."""

    _most_bytes = 1024 * 1024

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = sink_options(config)
        self.open_requests(options.account, options.requests, options.unreachable)

    def connect(self, client: Any) -> None:
        self._most_bytes = stream_state(client, self.account, self._options.stream).most_bytes

    def prepare(self, record: SinkRecord) -> Put | None:
        nulls = self._options.nulls
        if record.value is None and nulls == _IGNORE:
            return None
        if record.value is None and nulls == _FAIL:
            raise DataError(
                f"{record_name(record)} has no value. {NULLS}={_IGNORE} leaves such records out, {_EMPTY} puts them "
                "without bytes."
            )
        try:
            data = b"" if record.value is None else required_bytes(record.value, record, "value")
            key = partition_key_of(self._options.partition_key, record)
        except (UnicodeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{record_name(record)} cannot be put into Kinesis: {error}") from error
        size = len(data) + len(key.encode())
        if size > self._most_bytes and self._client is not None:
            raise DataError(
                f"{record_name(record)} has {size} bytes with its partition key, and the stream takes {self._most_bytes}."
            )
        return Put(data, key, size)

    def size_of(self, item: Put) -> int:
        return item.size

    def order_key(self, item: Put) -> Hashable:
        return item.key if self._options.ordered else None

    def send(self, client: Any, items: Sequence[Put]) -> Sequence[WriteResult]:
        entries = [{"Data": each.data, "PartitionKey": each.key} for each in items]
        with aws_errors(self.account):
            answer = client.put_records(StreamName=self._options.stream, Records=entries)
        return [_result(each) for each in answer["Records"]]

    def is_of_item(self, error: RefusedError) -> bool:
        return error.code in ("ValidationException", "InvalidArgumentException")


def _result(answer: Mapping[str, Any]) -> WriteResult:
    if not answer.get("ErrorCode"):
        return DONE
    return WriteResult(Outcome.RETRY, f"{answer['ErrorCode']}: {answer.get('ErrorMessage', '')}")


def partition_key_of(template: str, record: SinkRecord) -> str:
    """Return the partition key of a record. Raises DataError for one that none can be."""
    if record.key is None:
        template = template.replace(KEY_PLACEHOLDER, _WITHOUT_KEY)
    topic, partition = record.original_topic_partition
    found = template.replace(PARTITION_PLACEHOLDER, str(partition)).replace(OFFSET_PLACEHOLDER, str(record.original_kafka_offset))
    found = found.replace(TOPIC_PLACEHOLDER, topic)
    if KEY_PLACEHOLDER in found:
        found = found.replace(KEY_PLACEHOLDER, required_bytes(record.key, record, "key").decode())
    if not 0 < len(found) <= _MOST_KEY:
        raise DataError(
            f"{record_name(record)} has a partition key of {len(found)} characters, and Kinesis takes 1 to {_MOST_KEY}."
        )
    return found


class KinesisSinkConnector(AwsConnector, SinkConnector):
    """Puts records into a stream of Amazon Kinesis Data Streams: at least once, and in the order of each partition key."""

    task_class = KinesisSinkTask
    address_key = STREAM_KEY

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def account(cls, values: Mapping[str, ConfigValue]) -> Account:
        return account_of(SERVICE, values)

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        if unknown := set(_PLACEHOLDER.findall(str(values[PARTITION_KEY]))) - _KNOWN:
            return {PARTITION_KEY: f"has {min(unknown)}; it may have {', '.join(sorted(_KNOWN))}"}
        return {}

    @classmethod
    def try_service(cls, client: Any, account: Account, found: Mapping[str, ValidatedValue]) -> None:
        stream_state(client, account, str(found[STREAM_KEY].value))

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks
