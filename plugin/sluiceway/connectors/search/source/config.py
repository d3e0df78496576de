"""Defines the keys of the search sources, and their typed values.

Keys of the connection are those of the sinks. Others are named after those of Confluent's JDBC source where they mean the same.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.intervals import interval_of
from sluiceway.config.validators import Check, EnumText, NonEmptyList, Range
from sluiceway.connectors.search.connection import (
    UNREACHABLE,
    Server,
    aiven_connection,
    confluent_connection,
    connection_problems,
    flag,
    items,
    names,
    number,
    raise_first,
    server_of,
    text,
    whole,
)
from sluiceway.errors import ConfigError

INDEX = "index"
MODE = "mode"
TIMESTAMP_FIELD, TIMESTAMP_DELAY, TIMESTAMP_INITIAL = "timestamp.field", "timestamp.delay.ms", "timestamp.initial"
INCREMENTING_FIELD = "incrementing.field"
QUERY = "query"
INCLUDE, EXCLUDE = "fields.include", "fields.exclude"
TOPIC_PREFIX = "topic.prefix"
METADATA_HEADERS = "metadata.headers"
POLL_INTERVAL, INDEX_POLL_INTERVAL = "poll.interval.ms", "index.poll.interval.ms"
BATCH_ROWS = "batch.max.rows"
KEEP_ALIVE = "point.in.time.keep.alive.ms"

SEQ_NO = "_seq_no"
"""The number of a document's last write, by which a server orders the writes of a shard."""

_READ_TIMEOUT = 60_000  # milliseconds; a first page over a large index is sorted for longer than a bulk request lasts
_LARGEST_PAGE = 10_000  # of index.max_result_window
_INDEXES, _MODE, _RECORDS, _READING = "Indexes", "Mode", "Records", "Reading"
_high, _medium, _low = Importance.HIGH, Importance.MEDIUM, Importance.LOW


class Mode(enum.Enum):
    """The documents that a pass reads (``mode``)."""

    BULK = "bulk"
    TIMESTAMP = "timestamp"
    INCREMENTING = "incrementing"


def _query_of(value: ConfigValue) -> dict[str, Any] | None:
    """Return the query of a config's value. Raises ValueError."""
    if not value:
        return None
    found = orjson.loads(str(value))
    if not isinstance(found, dict) or len(found) != 1:
        raise ValueError("no query")
    return found


def _check_query(name: str, value: ConfigValue) -> None:
    try:
        _query_of(value)
    except ValueError as error:
        raise ConfigError(name, value, 'is not one query in JSON, such as {"term": {"country": "NO"}}') from error


def _check_patterns(name: str, value: ConfigValue) -> None:
    NonEmptyList()(name, value)
    for each in items(value):
        if ":" in each or "/" in each:
            raise ConfigError(name, each, "must be an index, alias, data stream or wildcard of the cluster itself")


_KEYS = [
    names(
        name=INDEX,
        importance=_high,
        group=_INDEXES,
        validator=Check(_check_patterns, "indexes"),
        doc="The indexes to read: names, wildcards such as orders-*, aliases and data streams. After a wildcard, -orders-old "
        "leaves one out. Their shards are divided among tasks.max tasks.",
    ),
    text(
        name=MODE,
        default=Mode.INCREMENTING.value,
        validator=EnumText(*(each.value for each in Mode)),
        importance=_high,
        group=_MODE,
        doc=f"Which documents are read. incrementing: those with a higher number in {INCREMENTING_FIELD} than the last one read; "
        f"with {SEQ_NO}, each new or changed document. timestamp: those with a later time in {TIMESTAMP_FIELD}. bulk: all at "
        "each poll.",
    ),
    text(
        name=INCREMENTING_FIELD,
        default=SEQ_NO,
        importance=_medium,
        group=_MODE,
        doc=f"The field of whole numbers that grow with each document, with mode=incrementing. {SEQ_NO} is the number that the "
        "server gives each write: changed documents are read too, and none is missed.",
    ),
    text(
        name=TIMESTAMP_FIELD,
        default="@timestamp",
        importance=_medium,
        group=_MODE,
        doc="The field of the type date or date_nanos with mode=timestamp. Documents without it are not read.",
    ),
    whole(
        TIMESTAMP_DELAY,
        10_000,
        0,
        _MODE,
        "The least age of a document's time before it is read, in milliseconds by the executors' clocks. Set more than passes "
        "from that time until the document can be searched: the time to index it, and index.refresh_interval. Later "
        "ones are missed.",
    ),
    ConfigKey(
        name=TIMESTAMP_INITIAL,
        type=Type.LONG,
        default=None,
        importance=_low,
        group=_MODE,
        doc="The time to start from without a stored offset, in milliseconds since the epoch; empty: the oldest document.",
    ),
    text(
        name=QUERY,
        default="",
        importance=_medium,
        group=_RECORDS,
        validator=Check(_check_query, "a query in JSON"),
        doc='A query that documents must match, in JSON, such as {"term": {"country": "NO"}}.',
    ),
    names(
        name=INCLUDE, default=[], importance=_medium, group=_RECORDS, doc="The fields to read, also as wildcards; all by default."
    ),
    names(name=EXCLUDE, default=[], importance=_low, group=_RECORDS, doc="The fields to leave out, also as wildcards."),
    text(
        name=TOPIC_PREFIX,
        default="",
        importance=_high,
        group=_RECORDS,
        doc="The documents of an index go to the topic with this prefix and the index's name; those of a data stream with its.",
    ),
    flag(
        name=METADATA_HEADERS,
        default=False,
        importance=_low,
        group=_RECORDS,
        doc=f"Whether records have the headers _index, _id, _version, {SEQ_NO} and _primary_term.",
    ),
    whole(POLL_INTERVAL, 5000, 0, _READING, "Milliseconds between two polls of a shard for new documents."),
    whole(INDEX_POLL_INTERVAL, 60_000, 1, _READING, "Milliseconds between two checks for new and deleted indexes."),
    ConfigKey(
        name=BATCH_ROWS,
        type=Type.INT,
        default=1000,
        validator=Range(1, _LARGEST_PAGE),
        importance=_medium,
        group=_READING,
        doc="The maximum number of documents in one answer of the server; not more than index.max_result_window.",
    ),
    whole(
        KEEP_ALIVE,
        300_000,
        1000,
        _READING,
        "Milliseconds for which the server keeps a point in time between two answers. One that has expired is opened again.",
    ),
    UNREACHABLE,
]

CONFLUENT = ConfigDef([*confluent_connection(_READ_TIMEOUT), *_KEYS])
AIVEN = ConfigDef([*aiven_connection(_READ_TIMEOUT), *_KEYS])


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The values of a search source's config; times in seconds unless said otherwise."""

    server: Server
    patterns: tuple[str, ...]
    mode: Mode = Mode.INCREMENTING
    field: str = SEQ_NO
    delay: float = 0.0
    initial: int | None = None
    """Milliseconds since the epoch."""
    before: int | None = None
    """The end of the run's interval, in milliseconds since the epoch; None if it has none."""
    query: Mapping[str, Any] | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    topic_prefix: str = ""
    headers: bool = False
    poll_interval: float = 5.0
    index_interval: float = 60.0
    rows: int = 1000
    keep_alive: int = 300_000
    """Milliseconds."""
    unreachable: float | None = None

    @property
    def follows_writes(self) -> bool:
        """Whether documents are read in the order of their writes, up to the last one that all copies of a shard have."""
        return self.mode is Mode.INCREMENTING and self.field == SEQ_NO


def conflicts(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    problems = connection_problems(values, config)
    mode = Mode(str(values[MODE]).lower())
    for key, needed in ((TIMESTAMP_FIELD, Mode.TIMESTAMP), (INCREMENTING_FIELD, Mode.INCREMENTING)):
        if mode is needed and not values[key]:
            problems[key] = f"must name a field with {MODE}={mode.value}"
        elif mode is not needed and config.get(key):
            problems[key] = f"has no effect with {MODE}={mode.value}: remove it, or set {MODE}={needed.value}"
    return problems


def source_options(definition: ConfigDef, config: Mapping[str, str]) -> SourceOptions:
    """Return the options of a config. Raises ConfigError."""
    values = definition.parse(config)
    raise_first(conflicts(values, config), values)
    mode, initial, unreachable = Mode(str(values[MODE]).lower()), values[TIMESTAMP_INITIAL], number(values, UNREACHABLE_MS)
    fields = {Mode.TIMESTAMP: TIMESTAMP_FIELD, Mode.INCREMENTING: INCREMENTING_FIELD}
    interval = interval_of(config)
    return SourceOptions(
        server=server_of(values),
        patterns=tuple(items(values[INDEX])),
        mode=mode,
        field=str(values[fields[mode]]) if mode in fields else SEQ_NO,
        delay=number(values, TIMESTAMP_DELAY) / 1000,
        initial=interval.start if interval else initial if isinstance(initial, int) else None,
        before=interval.end if interval else None,
        query=_query_of(values[QUERY]),
        include=tuple(items(values[INCLUDE])),
        exclude=tuple(items(values[EXCLUDE])),
        topic_prefix=str(values[TOPIC_PREFIX]),
        headers=bool(values[METADATA_HEADERS]),
        poll_interval=number(values, POLL_INTERVAL) / 1000,
        index_interval=number(values, INDEX_POLL_INTERVAL) / 1000,
        rows=number(values, BATCH_ROWS),
        keep_alive=number(values, KEEP_ALIVE),
        unreachable=None if unreachable < 0 else unreachable / 1000,
    )
