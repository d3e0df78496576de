"""The settings of the PostgreSQL connector, parsed. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluiceway.config.password import Password
from sluiceway.connectors.cdc.config import CommonConfig, common_config
from sluiceway.connectors.cdc.filters import Matcher, TableId, compile_anchored, filter_of, split_list
from sluiceway.connectors.cdc.postgres.connection import Address
from sluiceway.connectors.cdc.postgres.keys import CONFIG
from sluiceway.connectors.cdc.postgres.type_info import Settings

_SSL = ("sslmode", "sslcert", "sslkey", "sslpassword", "sslrootcert")


@dataclass(frozen=True, slots=True)
class PostgresConfig:
    """The parsed keys. Times are in seconds."""

    common: CommonConfig
    address: Address
    settings: Settings
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
    parsed = {key.name: key.parse(config) for key in CONFIG}

    def text(name: str) -> str:
        value = parsed[name]
        return value.value if isinstance(value, Password) else "" if value is None else str(value)

    def number(name: str) -> int:
        value = parsed[name]
        return value if isinstance(value, int) else 0

    def rule(kind: str) -> Matcher:
        return filter_of(config.get(f"{kind}.include.list"), config.get(f"{kind}.exclude.list"))

    common = common_config(CONFIG, config)
    ssl = {name: text(f"database.{name}") for name in _SSL if text(f"database.{name}")}
    pairs = (pair.partition("=") for pair in text("slot.stream.params").split(";") if pair.strip())
    return PostgresConfig(
        common=common,
        address=Address(
            text("database.hostname"),
            number("database.port"),
            text("database.user"),
            text("database.password"),
            text("database.dbname"),
            ssl,
        ),
        settings=Settings(
            decimal_mode=common.decimal_mode,
            binary_mode=common.binary_mode,
            time_mode=common.time_mode,
            interval_mode=text("interval.handling.mode").lower(),
            hstore_mode=text("hstore.handling.mode").lower(),
            money_digits=number("money.fraction.digits"),
            include_unknown=bool(parsed["include.unknown.datatypes"]),
            placeholder=common.placeholder,
            correct=common.correct,
        ),
        slot=text("slot.name"),
        drop_slot=bool(parsed["slot.drop.on.stop"]),
        failover=bool(parsed["slot.failover"]),
        stream_parameters={name.strip(): value.strip() for name, _, value in pairs},
        publication=text("publication.name"),
        autocreate=text("publication.autocreate.mode").lower(),
        via_root=bool(parsed["publish.via.partition.root"]),
        isolation=text("snapshot.isolation.mode").lower(),
        lock_tables=text("snapshot.locking.mode").lower() == "shared",
        schemas=rule("schema"),
        tables=rule("table"),
        message_prefixes=rule("message.prefix"),
        status_interval=number("status.update.interval.ms") / 1000,
        flush=bool(parsed["flush.lsn.source"]) and text("lsn.flush.mode").lower() != "manual",
        snapshot_data=bool(parsed["snapshot.mode.configuration.based.snapshot.data"]),
        snapshot_on_gap=bool(parsed["snapshot.mode.configuration.based.snapshot.on.data.error"]),
        start_stream=bool(parsed["snapshot.mode.configuration.based.start.stream"]),
    )
