"""The settings that all connectors of change data capture share, parsed. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.connectors.cdc.columns import ColumnRules
from sluiceway.connectors.cdc.filters import KeyColumns, Matcher, filter_of, matcher, split_list
from sluiceway.connectors.cdc.naming import Adjuster, TopicNames, adjuster, field_adjuster
from sluiceway.connectors.cdc.tables import TableSchemas
from sluiceway.data import Schema

_QUEUE_BYTES = 64 << 20

Parsed = Mapping[str, ConfigValue]


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
    snapshot_mode: str
    snapshot_tables: Matcher
    select_overrides: Mapping[str, str]
    fetch_size: int
    batch_size: int
    queue_size: int
    queue_bytes: int
    poll_interval: float
    heartbeat_interval: float
    heartbeat_query: str | None
    signal_table: str | None
    signal_channels: frozenset[str]
    signal_interval: float
    read_only: bool
    notification_channels: frozenset[str]
    notification_topic: str | None
    chunk_size: int
    delete_watermarks: bool
    max_retries: int
    retry_wait: float

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
    parsed = {key.name: key.parse(config) for key in definition}

    def text(name: str) -> str | None:
        value = parsed[name]
        return None if value is None or value == "" else str(value)

    def number(name: str) -> int:
        value = parsed[name]
        return int(value) if isinstance(value, (int, float)) else 0

    def seconds(name: str) -> float:
        return number(name) / 1000

    def choice(name: str) -> str:
        return (text(name) or "").strip().lower()

    prefix = text("topic.prefix") or ""
    operations = {item.strip() for item in (text("skipped.operations") or "").split(",")}
    return CommonConfig(
        config=dict(config),
        prefix=prefix,
        topics=TopicNames(
            prefix,
            delimiter=text("topic.delimiter") or ".",
            heartbeat_prefix=text("topic.heartbeat.prefix") or "",
            transaction=text("topic.transaction") or "",
        ),
        columns=filter_of(text("column.include.list"), text("column.exclude.list")),
        keys=KeyColumns(text("message.key.columns")),
        rules=ColumnRules(config),
        schema_name=adjuster(choice("schema.name.adjustment.mode")),
        field_name=field_adjuster(choice("field.name.adjustment.mode")),
        skipped_operations=frozenset(operations - {"none"}),
        skip_unchanged=bool(parsed["skip.messages.without.change"]),
        tombstones=bool(parsed["tombstones.on.delete"]),
        extended_headers=bool(parsed["extended.headers.enabled"]),
        transaction_metadata=bool(parsed["provide.transaction.metadata"]),
        decimal_mode=choice("decimal.handling.mode"),
        binary_mode=choice("binary.handling.mode"),
        time_mode=choice("time.precision.mode"),
        placeholder=_placeholder(text("unavailable.value.placeholder") or ""),
        correct=choice("sluiceway.cdc.compat") == "correct",
        snapshot_mode=choice("snapshot.mode"),
        snapshot_tables=matcher(text("snapshot.include.collection.list")) or (lambda _name: True),
        select_overrides=_overrides(config),
        fetch_size=number("snapshot.fetch.size") or 10240,
        batch_size=number("max.batch.size"),
        queue_size=number("max.queue.size"),
        queue_bytes=number("max.queue.size.in.bytes") or _QUEUE_BYTES,
        poll_interval=seconds("poll.interval.ms"),
        heartbeat_interval=seconds("heartbeat.interval.ms"),
        heartbeat_query=text("heartbeat.action.query"),
        signal_table=text("signal.data.collection"),
        signal_channels=_names(text("signal.enabled.channels")),
        signal_interval=seconds("signal.poll.interval.ms"),
        read_only=bool(parsed["read.only"]),
        notification_channels=_names(text("notification.enabled.channels")),
        notification_topic=text("notification.sink.topic.name"),
        chunk_size=number("incremental.snapshot.chunk.size"),
        delete_watermarks=choice("incremental.snapshot.watermarking.strategy") == "insert_delete",
        max_retries=number("errors.max.retries"),
        retry_wait=seconds("retriable.restart.connector.wait.ms"),
    )


def _names(text: str | None) -> frozenset[str]:
    return frozenset(item.strip().lower() for item in (text or "").split(",") if item.strip())


def _placeholder(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


def _overrides(config: Mapping[str, str]) -> dict[str, str]:
    """Return the statements that read tables in snapshots, by table."""
    key = "snapshot.select.statement.overrides"
    names = split_list(config.get(key))
    return {name: config[f"{key}.{name}"] for name in names if f"{key}.{name}" in config}
