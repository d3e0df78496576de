"""The settings that all connectors of change data capture share, parsed. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.config.password import Password
from sluiceway.connectors.cdc.columns import ColumnRules
from sluiceway.connectors.cdc.filters import KeyColumns, Matcher, TableId, filter_of, matcher, split_list
from sluiceway.connectors.cdc.keys import OVERRIDES
from sluiceway.connectors.cdc.naming import Adjuster, TopicNames, adjuster, field_adjuster
from sluiceway.connectors.cdc.naming_strategies import NAMING_STRATEGY, topic_names
from sluiceway.connectors.cdc.tables import TableSchemas
from sluiceway.connectors.jdbc.dialects.sql import without_end
from sluiceway.data import Schema

_QUEUE_BYTES = 32 << 20

Parsed = Mapping[str, ConfigValue]


class Values:
    """The values of a valid config, by type. Unset texts are None, unset numbers 0."""

    def __init__(self, definition: ConfigDef, config: Mapping[str, str]) -> None:
        self.parsed: Parsed = {key.name: key.parse(config) for key in definition}

    def text(self, name: str) -> str | None:
        value = self.parsed[name]
        if isinstance(value, Password):
            return value.value
        return None if value is None or value == "" else str(value)

    def number(self, name: str) -> int:
        value = self.parsed[name]
        return int(value) if isinstance(value, (int, float)) else 0

    def seconds(self, name: str) -> float:
        return self.number(name) / 1000

    def flag(self, name: str) -> bool:
        return bool(self.parsed[name])

    def choice(self, name: str) -> str:
        """Return one of a key's fixed values, in lower case."""
        return (self.text(name) or "").strip().lower()

    def names(self, name: str) -> frozenset[str]:
        """Return the items of a list, in lower case."""
        return frozenset(item.strip().lower() for item in (self.text(name) or "").split(",") if item.strip())


@dataclass(frozen=True, slots=True)
class SnapshotConfig:
    """The keys of initial and blocking snapshots. ``range_rows`` is the size of the ranges that are read at once."""

    mode: str
    tables: Matcher
    select_overrides: Mapping[str, str]
    fetch_size: int
    threads: int
    range_rows: int
    new_tables: bool
    order: str
    lock_timeout: float

    @classmethod
    def of(cls, values: Values, config: Mapping[str, str]) -> SnapshotConfig:
        return cls(
            mode=values.choice("snapshot.mode"),
            tables=matcher(values.text("snapshot.include.collection.list")) or (lambda _name: True),
            select_overrides=_overrides(config),
            fetch_size=values.number("snapshot.fetch.size") or 10240,
            threads=values.number("snapshot.max.threads"),
            range_rows=values.number("sluiceway.cdc.snapshot.range.rows"),
            new_tables=values.choice("snapshot.new.tables") != "off",
            order=values.choice("snapshot.tables.order.by.row.count"),
            lock_timeout=values.seconds("snapshot.lock.timeout.ms"),
        )


@dataclass(frozen=True, slots=True)
class SignalConfig:
    """The keys of signals, incremental snapshots and notifications."""

    table: str | None
    channels: frozenset[str]
    interval: float
    read_only: bool
    chunk_size: int
    delete_watermarks: bool
    notification_channels: frozenset[str]
    notification_topic: str | None

    @classmethod
    def of(cls, values: Values) -> SignalConfig:
        return cls(
            table=values.text("signal.data.collection"),
            channels=values.names("signal.enabled.channels"),
            interval=values.seconds("signal.poll.interval.ms"),
            read_only=values.flag("read.only"),
            chunk_size=values.number("incremental.snapshot.chunk.size"),
            delete_watermarks=values.choice("incremental.snapshot.watermarking.strategy") == "insert_delete",
            notification_channels=values.names("notification.enabled.channels"),
            notification_topic=values.text("notification.sink.topic.name"),
        )


@dataclass(frozen=True, slots=True)
class CommonConfig:
    """The parsed common keys. Names are those of the keys; times are in seconds."""

    config: Mapping[str, str]
    prefix: str
    topics: TopicNames
    columns: Matcher
    keys: KeyColumns
    rules: ColumnRules
    schema_name: Adjuster
    field_name: Adjuster
    skipped_operations: frozenset[str]
    skip_unchanged: bool
    tombstones: bool
    extended_headers: bool
    transaction_metadata: bool
    decimal_mode: str
    binary_mode: str
    time_mode: str
    placeholder: bytes
    correct: bool
    batch_size: int
    queue_size: int
    queue_bytes: int
    poll_interval: float
    heartbeat_interval: float
    heartbeat_query: str | None
    max_retries: int
    retry_wait: float
    snapshots: SnapshotConfig
    signals: SignalConfig

    def has_snapshot(self, table: TableId) -> bool:
        """Tell whether snapshots read a captured table; they leave out the signal table."""
        return str(table) != self.signals.table and self.snapshots.tables(str(table))

    def schemas(self, source: Schema) -> TableSchemas:
        """Return the builder of table schemas, with a connector's source block."""
        return TableSchemas(
            topics=self.topics,
            source=source,
            rules=self.rules,
            keys=self.keys,
            included=self.columns,
            schema_name=self.schema_name,
            field_name=self.field_name,
        )


def common_config(definition: ConfigDef, config: Mapping[str, str]) -> CommonConfig:
    """Return the common settings of a valid config."""
    values = Values(definition, config)
    prefix = values.text("topic.prefix") or ""
    correct = values.choice("sluiceway.cdc.compat") == "correct"
    return CommonConfig(
        config=dict(config),
        prefix=prefix,
        topics=topic_names(values, own=str(definition[NAMING_STRATEGY].default)),
        columns=filter_of(values.text("column.include.list"), values.text("column.exclude.list")),
        keys=KeyColumns(values.text("message.key.columns")),
        rules=ColumnRules(config, correct=correct),
        schema_name=adjuster(values.choice("schema.name.adjustment.mode")),
        field_name=field_adjuster(values.choice("field.name.adjustment.mode")),
        skipped_operations=values.names("skipped.operations") - {"none"},
        skip_unchanged=values.flag("skip.messages.without.change"),
        tombstones=values.flag("tombstones.on.delete"),
        extended_headers=values.flag("extended.headers.enabled"),
        transaction_metadata=values.flag("provide.transaction.metadata"),
        decimal_mode=values.choice("decimal.handling.mode"),
        binary_mode=values.choice("binary.handling.mode"),
        time_mode=values.choice("time.precision.mode"),
        placeholder=_placeholder(values.text("unavailable.value.placeholder") or ""),
        correct=correct,
        batch_size=values.number("max.batch.size"),
        queue_size=values.number("max.queue.size"),
        queue_bytes=values.number("max.queue.size.in.bytes") or _QUEUE_BYTES,
        poll_interval=values.seconds("poll.interval.ms"),
        heartbeat_interval=values.seconds("heartbeat.interval.ms"),
        heartbeat_query=values.text("heartbeat.action.query"),
        max_retries=values.number("errors.max.retries"),
        retry_wait=values.seconds("retriable.restart.connector.wait.ms"),
        snapshots=SnapshotConfig.of(values, config),
        signals=SignalConfig.of(values),
    )


def _placeholder(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


def _overrides(config: Mapping[str, str]) -> dict[str, str]:
    """Return the statements that read tables in snapshots, by table. They may end in a semicolon, or a comment."""
    keys = {name: f"{OVERRIDES}.{name}" for name in split_list(config.get(OVERRIDES))}
    return {name: without_end(config[key]) + "\n" for name, key in keys.items() if key in config}
