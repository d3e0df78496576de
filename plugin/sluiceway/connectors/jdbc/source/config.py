"""The typed config of the JDBC source, and the rules for keys that conflict."""

from __future__ import annotations

from collections.abc import Mapping as Config
from dataclasses import dataclass

from sluiceway.config.definition import ConfigValue, ValidatedValue
from sluiceway.config.intervals import Interval, interval_of
from sluiceway.connectors.jdbc.columns import Granularity, Mapping, NumericMapping
from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
from sluiceway.connectors.jdbc.dialects.sql import without_end
from sluiceway.connectors.jdbc.source.keys import (
    BATCH_MAX_ROWS,
    CATALOG_PATTERN,
    CONFIG,
    DELETES_INTERVAL_MS,
    HORIZON,
    INCREMENTING,
    INCREMENTING_COLUMN_NAME,
    MODE,
    MODES,
    NUMERIC_MAPPING,
    NUMERIC_PRECISION_MAPPING,
    POLL_INTERVAL_MS,
    QUERY,
    QUERY_SUFFIX,
    SCHEMA_PATTERN,
    SNAPSHOT_COLUMN,
    SNAPSHOT_RANGES,
    TABLE_BLACKLIST,
    TABLE_EXCLUDE_LIST,
    TABLE_INCLUDE_LIST,
    TABLE_POLL_INTERVAL_MS,
    TABLE_TYPES,
    TABLE_WHITELIST,
    TIMESTAMP,
    TIMESTAMP_COLUMN_NAME,
    TIMESTAMP_DELAY_INTERVAL_MS,
    TIMESTAMP_GRANULARITY,
    TIMESTAMP_INCREMENTING,
    TIMESTAMP_INITIAL,
    TOPIC_PREFIX,
    VALIDATE_NON_NULL,
)
from sluiceway.connectors.jdbc.tables import TableSelection
from sluiceway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """The typed values of a source's config; times in seconds, except ``timestamp_initial`` in milliseconds."""

    connection: ConnectionSettings
    selection: TableSelection
    mapping: Mapping
    mode: str
    incrementing_column: str
    timestamp_columns: tuple[str, ...]
    timestamp_initial: int | None
    timestamp_delay: float
    validate_non_null: bool
    query: str
    query_suffix: str
    horizon: str
    topic_prefix: str
    poll_interval: float
    table_poll_interval: float
    batch_max_rows: int
    ranges: int
    range_column: str
    deletes_interval: float
    interval: Interval | None = None
    """The interval whose rows a run moves, by their timestamps."""

    @property
    def uses_incrementing(self) -> bool:
        return self.mode in (INCREMENTING, TIMESTAMP_INCREMENTING)

    @property
    def uses_timestamp(self) -> bool:
        return self.mode in (TIMESTAMP, TIMESTAMP_INCREMENTING)


def source_config(config: Config[str, str]) -> SourceConfig:
    """Return the values of a config. Raises ConfigError for an invalid value and for keys that conflict."""
    values = CONFIG.parse(config)
    for key, message in conflicts(values).items():
        raise ConfigError(key, values[key], message)
    interval = interval_of(config)
    numeric = values[NUMERIC_MAPPING] or ("precision_only" if values[NUMERIC_PRECISION_MAPPING] else "none")
    initial = values[TIMESTAMP_INITIAL]
    return SourceConfig(
        connection=ConnectionSettings.of(values),
        selection=TableSelection(
            _texts(values[TABLE_TYPES]),
            _text(values[CATALOG_PATTERN]) or None,
            _text(values[SCHEMA_PATTERN]) or None,
            _texts(values[TABLE_WHITELIST]),
            _texts(values[TABLE_BLACKLIST]),
            _texts(values[TABLE_INCLUDE_LIST]),
            _texts(values[TABLE_EXCLUDE_LIST]),
        ),
        mapping=Mapping(NumericMapping(str(numeric).lower()), Granularity(_text(values[TIMESTAMP_GRANULARITY]).lower())),
        mode=_text(values[MODE]),
        incrementing_column=_text(values[INCREMENTING_COLUMN_NAME]),
        timestamp_columns=_texts(values[TIMESTAMP_COLUMN_NAME]),
        timestamp_initial=None if initial is None else int(str(initial)),
        timestamp_delay=int(str(values[TIMESTAMP_DELAY_INTERVAL_MS])) / 1000,
        validate_non_null=values[VALIDATE_NON_NULL] is True,
        query=without_end(_text(values[QUERY])),
        query_suffix=_text(values[QUERY_SUFFIX]).strip(),
        horizon=_text(values[HORIZON]).lower(),
        topic_prefix=_text(values[TOPIC_PREFIX]),
        poll_interval=int(str(values[POLL_INTERVAL_MS])) / 1000,
        table_poll_interval=int(str(values[TABLE_POLL_INTERVAL_MS])) / 1000,
        batch_max_rows=int(str(values[BATCH_MAX_ROWS])),
        ranges=int(str(values[SNAPSHOT_RANGES])) if interval is None else 1,
        range_column=_text(values[SNAPSHOT_COLUMN]),
        deletes_interval=int(str(values[DELETES_INTERVAL_MS])) / 1000 if interval is None else 0.0,
        interval=interval,
    )


def checked(config: Config[str, str]) -> dict[str, ValidatedValue]:
    """Return each key's value and errors, those of conflicts included. No I/O."""
    found = CONFIG.validate(config)
    errors = {} if found[MODE].errors else conflicts({name: each.value for name, each in found.items()})
    for key, message in errors.items():
        found[key].errors.append(str(ConfigError(key, config.get(key, ""), message)))
    return found


def conflicts(values: Config[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by key. No I/O."""
    mode, query = values.get(MODE), values.get(QUERY)
    lists = [key for key in (TABLE_WHITELIST, TABLE_BLACKLIST, TABLE_INCLUDE_LIST, TABLE_EXCLUDE_LIST) if values.get(key)]
    numbered, timed = mode in (INCREMENTING, TIMESTAMP_INCREMENTING), mode in (TIMESTAMP, TIMESTAMP_INCREMENTING)
    number, times = bool(values.get(INCREMENTING_COLUMN_NAME)), bool(values.get(TIMESTAMP_COLUMN_NAME))
    rules = (
        (MODE, not mode, f"must be one of {', '.join(MODES)}"),
        (QUERY, query and lists, f"does not go with {lists[:1]}: name tables, or give a query that reads them"),
        (TABLE_WHITELIST, values.get(TABLE_WHITELIST) and lists[1:], f"does not go with {lists[1:]}"),
        (TABLE_BLACKLIST, lists[:2] == [TABLE_BLACKLIST, TABLE_INCLUDE_LIST], f"does not go with {TABLE_INCLUDE_LIST}"),
        (TIMESTAMP_COLUMN_NAME, timed and not times, f"must be given with mode={mode}"),
        (TIMESTAMP_COLUMN_NAME, times and mode and not timed, f"does not go with mode={mode}"),
        (INCREMENTING_COLUMN_NAME, number and mode and not numbered, f"does not go with mode={mode}"),
        (INCREMENTING_COLUMN_NAME, numbered and query and not number, f"must be given with a {QUERY}"),
        (SNAPSHOT_RANGES, query and values.get(SNAPSHOT_RANGES) != 1, f"is for tables, not for a {QUERY}"),
        (DELETES_INTERVAL_MS, query and values.get(DELETES_INTERVAL_MS), f"is for tables, not for a {QUERY}"),
        (
            DELETES_INTERVAL_MS,
            values.get(DELETES_INTERVAL_MS) and values.get(SNAPSHOT_RANGES) not in (None, 1),
            f"does not go with {SNAPSHOT_RANGES}",
        ),
    )
    return {key: message for key, wrong, message in rules if wrong}


def interval_refusal(config: Config[str, str]) -> str:
    """Return why a source with this config cannot read the rows of an interval; empty if it can."""
    mode = config.get(MODE, "").strip()
    return "" if mode in (TIMESTAMP, TIMESTAMP_INCREMENTING) else f"{MODE}={mode} reads no timestamps: set {MODE}={TIMESTAMP}"


def _text(value: ConfigValue) -> str:
    return "" if value is None else str(value)


def _texts(value: ConfigValue) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else ()
