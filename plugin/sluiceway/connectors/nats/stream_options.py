"""The keys of NatsStreamSourceConnector: the streams to read, and where to begin. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from sluiceway.api import Partition
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check
from sluiceway.connectors.keys import text, whole
from sluiceway.connectors.nats.messages import SourceOptions, check_names, source_keys, source_options
from sluiceway.errors import ConfigError

STREAMS, BEGIN, BATCH = "nats.streams", "nats.stream.begin", "batch.size"
STREAM, SUBJECT = "stream", "subject"
FIRST, NEXT = "first", "next"
_STREAMS = "Streams"


def _begin(value: str) -> str | int | datetime:
    """Return where to begin. Raises ValueError."""
    if value in (FIRST, NEXT):
        return value
    if value.isascii() and value.isdigit():
        return max(1, int(value))
    found = datetime.fromisoformat(value.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _check_begin(name: str, value: ConfigValue) -> None:
    try:
        begin = _begin(str(value))
    except ValueError as error:
        message = f"must be {FIRST}, {NEXT}, a sequence, or a time such as 2026-01-31T12:00:00Z"
        raise ConfigError(name, value, message) from error
    if isinstance(begin, int) and begin >= 2**63:
        raise ConfigError(name, value, "must be less than 2^63")


CONFIG = ConfigDef(
    [
        *source_keys(
            _STREAMS,
            "The subject of the messages to read, in which * stands for a token, and > at the end for all further ones. Without "
            "it, all are read.",
        ),
        ConfigKey(
            name=STREAMS,
            type=Type.LIST,
            validator=Check(check_names, "names of streams"),
            importance=Importance.HIGH,
            group=_STREAMS,
            doc="The streams, separated by commas. They must exist: one that does not is waited for. Streams of work queues, and "
            "those that keep messages by interest, are read with NatsConsumerSource.",
        ),
        text(
            name=BEGIN,
            default=FIRST,
            validator=Check(_check_begin, "first, next, a sequence, or a time"),
            group=_STREAMS,
            doc="Where to begin if there is no offset: first, next for new messages only, a sequence, or a time such as "
            "2026-01-31T12:00:00Z.",
        ),
        whole(BATCH, 1000, 1, _STREAMS, "The most messages of each stream that are read at once."),
    ]
)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The streams, and where to begin."""

    source: SourceOptions
    streams: Sequence[str]
    begin: str | int | datetime
    most: int

    def partition(self, stream: str) -> Partition:
        subject = self.source.subject
        return {STREAM: stream} if subject is None else {STREAM: stream, SUBJECT: subject}


def options_of(config: Mapping[str, str]) -> StreamOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    streams = values[STREAMS]
    assert isinstance(streams, list)  # noqa: S101 (parsed as such)
    return StreamOptions(
        source=source_options(CONFIG, config),
        streams=tuple(map(str, streams)),
        begin=_begin(str(values[BEGIN])),
        most=int(str(values[BATCH])),
    )
