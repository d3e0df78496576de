"""The keys of KinesisSource: the stream to read, where to begin, and the form of its records. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, EnumText, NonEmptyString, Range
from sluiceway.connectors.aws.connection import Account, account_of, connection_keys
from sluiceway.connectors.aws.kinesis_shards import OLDEST
from sluiceway.connectors.aws.kinesis_stream import SERVICE, STREAM_KEY, check_stream
from sluiceway.connectors.keys import flag, text, whole
from sluiceway.errors import ConfigError

POSITION, TIMESTAMP, TRIMMED = "kinesis.position", "kinesis.shard.timestamp", "kinesis.trimmed"
LIMIT, EMPTY_BACKOFF = "kinesis.record.limit", "kinesis.empty.records.backoff.ms"
THROTTLED_BACKOFF, SHARDS_INTERVAL = "kinesis.throughput.exceeded.backoff.ms", "kinesis.shards.interval.ms"
TOPIC, VALUES, HEADERS = "kafka.topic", "kinesis.values", "kinesis.headers.enabled"
TASK_SHARDS = "kinesis.task.shards"
STREAM_PLACEHOLDER = "${stream}"
FAIL, CONTINUE = "fail", "oldest"
_STREAM, _RECORDS = "Stream", "Records"
_OLDEST, _LATEST, _AT_TIME = "TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"
_HEADERS = "kinesis.shard, kinesis.sequence, kinesis.subsequence, and kinesis.hash.key"


def _milliseconds(value: str) -> int:
    """Return a time as milliseconds since the epoch. Raises ValueError."""
    if value.isascii() and value.isdigit():
        return int(value)
    found = datetime.fromisoformat(value.replace("Z", "+00:00"))
    return int((found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def _check_time(name: str, value: ConfigValue) -> None:
    try:
        known = not value or 0 <= _milliseconds(str(value)) < 2**53
    except (ValueError, OverflowError):
        known = False
    if not known:
        raise ConfigError(name, value, "must be a time such as 2026-01-31T12:00:00Z, or milliseconds since the epoch")


CONFIG = ConfigDef(
    [
        *connection_keys(SERVICE),
        text(
            name=STREAM_KEY,
            validator=Check(check_stream, "the name of a stream"),
            importance=Importance.HIGH,
            group=_STREAM,
            doc="The stream, which must exist.",
        ),
        text(
            name=POSITION,
            default=_OLDEST,
            validator=EnumText(_OLDEST, _LATEST, _AT_TIME),
            group=_STREAM,
            doc=f"Where to begin if there is no offset: with the oldest record, with records to come, or at {TIMESTAMP}.",
        ),
        text(
            name=TIMESTAMP,
            default="",
            validator=Check(_check_time, "a time"),
            group=_STREAM,
            doc=f"The arrival of the first records to read with {POSITION}={_AT_TIME}: a time such as 2026-01-31T12:00:00Z, or "
            "milliseconds since the epoch.",
        ),
        text(
            name=TRIMMED,
            default=FAIL,
            validator=EnumText(FAIL, CONTINUE),
            group=_STREAM,
            doc="What to do when a shard was not read for longer than the stream keeps records, so that some may be lost: fail, "
            "or continue with the oldest one that is there.",
        ),
        ConfigKey(
            name=LIMIT,
            type=Type.INT,
            default=1000,
            validator=Range(1, 10_000),
            importance=Importance.LOW,
            group=_STREAM,
            doc="The most records of a shard that are read at once.",
        ),
        whole(EMPTY_BACKOFF, 1000, 200, _STREAM, "Milliseconds between two requests to a shard of which all was read."),
        whole(
            THROTTLED_BACKOFF,
            10_000,
            200,
            _STREAM,
            "The most milliseconds between two requests to a shard that is read too often or too fast, by all of its readers.",
        ),
        whole(SHARDS_INTERVAL, 30_000, 100, _STREAM, "Milliseconds between two checks for new shards."),
        text(
            name=TOPIC,
            default=STREAM_PLACEHOLDER,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc=f"The topic; {STREAM_PLACEHOLDER} is the stream's name.",
        ),
        text(
            name=VALUES,
            default="bytes",
            validator=EnumText("bytes", "string"),
            group=_RECORDS,
            doc="The type of values: bytes, for ByteArrayConverter, or string. Data that is not UTF-8 is a bad record then, "
            "handled by errors.tolerance.",
        ),
        flag(name=HEADERS, default=True, group=_RECORDS, doc=f"Whether records have the headers {_HEADERS}."),
        ConfigKey(
            name=TASK_SHARDS, type=Type.LIST, default="", importance=Importance.LOW, internal=True, doc="The shards of the task."
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class KinesisSourceOptions:
    """The stream, where to begin, and the form of the records. Times are in seconds, ``since`` in milliseconds.

    Attributes:
        since: the arrival of the records to begin with; None for those to come.
        shards: those of the task.
    """

    account: Account
    stream: str
    since: int | None
    skips_trimmed: bool
    limit: int
    empty_backoff: float
    throttled_backoff: float
    interval: float
    topic: str
    as_bytes: bool
    headers: bool
    shards: tuple[str, ...]


def options_of(config: Mapping[str, str]) -> KinesisSourceOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    shards, position, stream = values[TASK_SHARDS], str(values[POSITION]).upper(), str(values[STREAM_KEY])
    assert isinstance(shards, list)  # noqa: S101 (parsed as such)
    since = {_OLDEST: OLDEST, _LATEST: None}.get(position, OLDEST)
    if position == _AT_TIME:
        since = max(1, _milliseconds(str(values[TIMESTAMP]) or "1"))
    return KinesisSourceOptions(
        account=account_of(SERVICE, values),
        stream=stream,
        since=since,
        skips_trimmed=str(values[TRIMMED]).lower() == CONTINUE,
        limit=int(str(values[LIMIT])),
        empty_backoff=int(str(values[EMPTY_BACKOFF])) / 1000,
        throttled_backoff=int(str(values[THROTTLED_BACKOFF])) / 1000,
        interval=int(str(values[SHARDS_INTERVAL])) / 1000,
        topic=str(values[TOPIC]).replace(STREAM_PLACEHOLDER, stream),
        as_bytes=str(values[VALUES]).lower() == "bytes",
        headers=bool(values[HEADERS]),
        shards=tuple(map(str, shards)),
    )


def conflicts_of(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict."""
    if (str(values[POSITION]).upper() == _AT_TIME) != bool(values[TIMESTAMP]):
        return {TIMESTAMP: f"is needed with {POSITION}={_AT_TIME}, and only with it"}
    return {}
