"""The settings of the PostgreSQL connector, parsed. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluiceway.connectors.cdc.config import CommonConfig, Values, common_config
from sluiceway.connectors.cdc.filters import Matcher, TableId, compile_anchored, filter_of, split_list, table_filter_of
from sluiceway.connectors.cdc.postgres.connection import Address
from sluiceway.connectors.cdc.postgres.keys import CONFIG
from sluiceway.connectors.cdc.postgres.type_info import TypeSettings

_SSL = ("sslmode", "sslcert", "sslkey", "sslpassword", "sslrootcert")


@dataclass(frozen=True, slots=True)
class PostgresConfig:
    """The parsed keys. Times are in seconds."""

    common: CommonConfig
    address: Address
    settings: TypeSettings
    slot: str
    drop_slot: bool
    failover: bool
    stream_parameters: Mapping[str, str]
    publication: str
    autocreate: str
    via_root: bool
    isolation: str
    lock_tables: bool
    schemas: Matcher
    tables: Matcher
    message_prefixes: Matcher
    status_interval: float
    flush: bool
    mismatch: str
    slot_retries: int
    slot_retry_wait: float
    snapshot_data: bool
    snapshot_on_gap: bool
    start_stream: bool

    def captured(self, table: TableId) -> bool:
        """Tell whether a table's changes have records."""
        return self.schemas(table.schema) and self.tables(str(table))

    def in_list_order(self, tables: Sequence[TableId]) -> list[TableId]:
        """Return tables in the order of ``table.include.list``, as snapshots read them."""
        patterns = [compile_anchored(item) for item in split_list(self.common.config.get("table.include.list"))]

        def place(table: TableId) -> int:
            return next((index for index, each in enumerate(patterns) if each.matches(str(table))), len(patterns))

        return sorted(tables, key=place)


def postgres_config(config: Mapping[str, str]) -> PostgresConfig:
    """Return the settings of a valid config."""
    values = Values(CONFIG, config)
    common = common_config(CONFIG, config)
    pairs = (pair.partition("=") for pair in (values.text("slot.stream.params") or "").split(";") if pair.strip())
    return PostgresConfig(
        common=common,
        address=_address(values),
        settings=_settings(values, common),
        slot=values.text("slot.name") or "",
        drop_slot=values.flag("slot.drop.on.stop"),
        failover=values.flag("slot.failover"),
        stream_parameters={name.strip(): value.strip() for name, _, value in pairs},
        publication=values.text("publication.name") or "",
        autocreate=values.choice("publication.autocreate.mode"),
        via_root=values.flag("publish.via.partition.root"),
        isolation=values.choice("snapshot.isolation.mode"),
        lock_tables=values.choice("snapshot.locking.mode") == "shared",
        schemas=_filter(config, "schema"),
        tables=table_filter_of(config.get("table.include.list"), config.get("table.exclude.list")),
        message_prefixes=_filter(config, "message.prefix"),
        status_interval=values.seconds("status.update.interval.ms"),
        flush=values.flag("flush.lsn.source") and values.choice("lsn.flush.mode") != "manual",
        mismatch=values.choice("offset.mismatch.strategy"),
        slot_retries=values.number("slot.max.retries"),
        slot_retry_wait=values.number("slot.retry.delay.ms") / 1000,
        snapshot_data=values.flag("snapshot.mode.configuration.based.snapshot.data"),
        snapshot_on_gap=values.flag("snapshot.mode.configuration.based.snapshot.on.data.error"),
        start_stream=values.flag("snapshot.mode.configuration.based.start.stream"),
    )


def _address(values: Values) -> Address:
    ssl = {name: text for name in _SSL if (text := values.text(f"database.{name}"))}
    return Address(
        values.text("database.hostname") or "",
        values.number("database.port"),
        values.text("database.user") or "",
        values.text("database.password") or "",
        values.text("database.dbname") or "",
        ssl,
    )


def _settings(values: Values, common: CommonConfig) -> TypeSettings:
    return TypeSettings(
        decimal_mode=common.decimal_mode,
        binary_mode=common.binary_mode,
        time_mode=common.time_mode,
        interval_mode=values.choice("interval.handling.mode"),
        hstore_mode=values.choice("hstore.handling.mode"),
        money_digits=values.number("money.fraction.digits"),
        include_unknown=values.flag("include.unknown.datatypes"),
        placeholder=common.placeholder,
        correct=common.correct,
    )


def _filter(config: Mapping[str, str], kind: str) -> Matcher:
    return filter_of(config.get(f"{kind}.include.list"), config.get(f"{kind}.exclude.list"))
