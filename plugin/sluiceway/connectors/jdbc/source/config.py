"""The keys of the JDBC source: the usual ones with their usual defaults, and, below ``sluiceway.``, ours."""

from __future__ import annotations

import re
from collections.abc import Mapping as Config
from dataclasses import dataclass

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, Width
from sluiceway.config.validators import Check, EnumText, OneOf, OrNull, Range
from sluiceway.connectors.jdbc.columns import Granularity, Mapping, NumericMapping
from sluiceway.connectors.jdbc.connection_keys import (
    CONNECTION,
    DB_TIMEZONE_KEY,
    QUOTE_SQL_IDENTIFIERS_KEY,
    ConnectionSettings,
)
from sluiceway.connectors.jdbc.tables import TableSelection
from sluiceway.errors import ConfigError

MODE = "mode"
INCREMENTING_COLUMN_NAME = "incrementing.column.name"
TIMESTAMP_COLUMN_NAME = "timestamp.column.name"
TIMESTAMP_INITIAL = "timestamp.initial"
TIMESTAMP_DELAY_INTERVAL_MS = "timestamp.delay.interval.ms"
TIMESTAMP_GRANULARITY = "timestamp.granularity"
VALIDATE_NON_NULL = "validate.non.null"
QUERY = "query"
QUERY_SUFFIX = "query.suffix"
NUMERIC_MAPPING = "numeric.mapping"
NUMERIC_PRECISION_MAPPING = "numeric.precision.mapping"
TABLE_WHITELIST = "table.whitelist"
TABLE_BLACKLIST = "table.blacklist"
TABLE_INCLUDE_LIST = "table.include.list"
TABLE_EXCLUDE_LIST = "table.exclude.list"
TABLE_TYPES = "table.types"
CATALOG_PATTERN = "catalog.pattern"
SCHEMA_PATTERN = "schema.pattern"
TOPIC_PREFIX = "topic.prefix"
POLL_INTERVAL_MS = "poll.interval.ms"
TABLE_POLL_INTERVAL_MS = "table.poll.interval.ms"
BATCH_MAX_ROWS = "batch.max.rows"
HORIZON = "sluiceway.horizon"
SNAPSHOT_RANGES = "sluiceway.snapshot.ranges"
SNAPSHOT_COLUMN = "sluiceway.snapshot.column"
DELETES_INTERVAL_MS = "sluiceway.deletes.interval.ms"

TABLES = "tables"
RANGE = "sluiceway.snapshot.range"
RANGE_PLAN = "sluiceway.snapshot.plan"

BULK, INCREMENTING, TIMESTAMP, TIMESTAMP_INCREMENTING = "bulk", "incrementing", "timestamp", "timestamp+incrementing"
MODES = (BULK, TIMESTAMP, INCREMENTING, TIMESTAMP_INCREMENTING)

AUTO, REQUIRED, NONE = "auto", "required", "none"

_TYPES = ("TABLE", "VIEW", "MATERIALIZED VIEW", "PARTITIONED TABLE", "FOREIGN TABLE")


def _key(name: str, type_: Type, default: ConfigValue, doc: str, display: str, group: str, **more: object) -> ConfigKey:
    attributes = {"importance": Importance.MEDIUM, "width": Width.MEDIUM, **more}
    return ConfigKey(name=name, type=type_, default=default, doc=doc, display_name=display, group=group, **attributes)  # type: ignore[arg-type]


def _patterns(name: str, value: ConfigValue) -> None:
    for pattern in value if isinstance(value, list) else ():
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(name, pattern, f"is not a regular expression: {error}") from error


_PATTERNS = Check(_patterns, "regular expressions")
_HIGH, _LOW = Importance.HIGH, Importance.LOW

CONFIG = CONNECTION + ConfigDef(
    [
        _key(
            CATALOG_PATTERN,
            Type.STRING,
            None,
            "Only tables of databases whose names are like this: % stands for any characters, _ for one. Empty is any.",
            "Catalog Pattern",
            "Database",
        ),
        _key(
            SCHEMA_PATTERN,
            Type.STRING,
            None,
            "Only tables of schemas whose names are like this: % stands for any characters, _ for one. Empty is any.",
            "Schema Pattern",
            "Database",
            importance=_HIGH,
        ),
        _key(
            TABLE_WHITELIST,
            Type.LIST,
            "",
            "The tables to read, by name, with or without schema and catalog. Not together with "
            "a blacklist, a query or include and exclude lists.",
            "Table Whitelist",
            "Database",
        ),
        _key(
            TABLE_BLACKLIST, Type.LIST, "", "The tables not to read, by name; all others are read.", "Table Blacklist", "Database"
        ),
        _key(
            TABLE_INCLUDE_LIST,
            Type.LIST,
            "",
            "Regular expressions; tables whose full names (catalog.schema.table) match one are read.",
            "Table Include List",
            "Database",
            validator=_PATTERNS,
        ),
        _key(
            TABLE_EXCLUDE_LIST,
            Type.LIST,
            "",
            "Regular expressions; tables whose full names match one are not read.",
            "Table Exclude List",
            "Database",
            validator=_PATTERNS,
        ),
        _key(
            TABLE_TYPES,
            Type.LIST,
            "TABLE",
            f"The kinds of tables to look for: {', '.join(_TYPES)}.",
            "Table Types",
            "Database",
            importance=_LOW,
        ),
        DB_TIMEZONE_KEY,
        QUOTE_SQL_IDENTIFIERS_KEY,
        _key(
            MODE,
            Type.STRING,
            "",
            "How rows are read. bulk: all of them at each poll. incrementing: those with a higher number "
            "than the last. timestamp: those with a later time, so changed ones too. timestamp+incrementing: both, the number "
            "telling rows of one time apart.",
            "Table Loading Mode",
            "Mode",
            importance=_HIGH,
            validator=OneOf(("", *MODES)),
        ),
        _key(
            INCREMENTING_COLUMN_NAME,
            Type.STRING,
            "",
            "The column whose number grows with each new row; empty looks for one that the database itself counts up.",
            "Incrementing Column Name",
            "Mode",
        ),
        _key(
            TIMESTAMP_COLUMN_NAME,
            Type.LIST,
            "",
            "The columns with the time of a row's last change; the first that is not null counts.",
            "Timestamp Column Name",
            "Mode",
        ),
        _key(
            TIMESTAMP_INITIAL,
            Type.LONG,
            None,
            "Where to start when nothing was read before, in milliseconds since the epoch; -1 is now, empty the oldest row.",
            "Unix time value of initial timestamp",
            "Mode",
            importance=_LOW,
        ),
        _key(
            VALIDATE_NON_NULL,
            Type.BOOLEAN,
            True,
            "Whether to refuse tables whose incrementing column may be null, or all "
            "of whose timestamp columns may be: rows with a null there are never read.",
            "Validate Non Null",
            "Mode",
            importance=_LOW,
        ),
        _key(
            QUERY,
            Type.STRING,
            "",
            "A SELECT statement to read the rows of, instead of tables; conditions are put around it.",
            "Query",
            "Mode",
            width=Width.LONG,
        ),
        _key(
            QUERY_SUFFIX,
            Type.STRING,
            "",
            "What to put behind each statement, such as a LIMIT.",
            "Query suffix",
            "Mode",
            importance=_LOW,
        ),
        _key(
            HORIZON,
            Type.STRING,
            AUTO,
            "Whether rows wait until no older transaction can commit rows with a smaller time or "
            "number any more, by what the database says of its open transactions. auto: where the user may see those; "
            "required: refuse to run where not; none: do not look.",
            "Safe horizon",
            "Mode",
            validator=EnumText(AUTO, REQUIRED, NONE),
        ),
        _key(
            NUMERIC_PRECISION_MAPPING,
            Type.BOOLEAN,
            False,
            "An older way to say numeric.mapping=precision_only.",
            "Map Numeric Values By Precision (deprecated)",
            "Connector",
            importance=_LOW,
        ),
        _key(
            NUMERIC_MAPPING,
            Type.STRING,
            None,
            "What becomes of decimals. none: Connect's Decimal. precision_only: whole ones "
            "become integers that hold them. best_fit: others that a double can hold become doubles too. "
            "best_fit_eager_double: all with a fraction become doubles.",
            "Map Numeric Values",
            "Connector",
            importance=_LOW,
            validator=OrNull(EnumText(*(each.value for each in NumericMapping))),
        ),
        _key(
            TIMESTAMP_GRANULARITY,
            Type.STRING,
            Granularity.CONNECT_LOGICAL.value,
            "What timestamps become: Connect's "
            "Timestamp, which ends at milliseconds, or numbers or texts of micro- or nanoseconds since the epoch, or ISO texts.",
            "Timestamp granularity for timestamp columns",
            "Connector",
            importance=_LOW,
            validator=EnumText(*(each.value for each in Granularity)),
        ),
        _key(
            POLL_INTERVAL_MS,
            Type.INT,
            5000,
            "Milliseconds between two looks for new rows of a table.",
            "Poll Interval (ms)",
            "Connector",
            importance=_HIGH,
            validator=Range(0),
        ),
        _key(
            BATCH_MAX_ROWS,
            Type.INT,
            100,
            "The most rows that one poll returns and that are fetched at once.",
            "Max Rows Per Batch",
            "Connector",
            importance=_LOW,
            validator=Range(1),
        ),
        _key(
            TABLE_POLL_INTERVAL_MS,
            Type.LONG,
            60_000,
            "Milliseconds between two looks for tables that came or went.",
            "Metadata Change Monitoring Interval (ms)",
            "Connector",
            importance=_LOW,
            validator=Range(1),
        ),
        ConfigKey(
            name=TOPIC_PREFIX,
            type=Type.STRING,
            importance=_HIGH,
            width=Width.MEDIUM,
            group="Connector",
            display_name="Topic Prefix",
            doc="What topics' names begin with, before the table's. With a query, the topic.",
        ),
        _key(
            TIMESTAMP_DELAY_INTERVAL_MS,
            Type.LONG,
            0,
            "How old a row's time must be, in milliseconds, before the row is read, by the database's clock.",
            "Delay Interval (ms)",
            "Connector",
            importance=_HIGH,
            validator=Range(0),
        ),
        _key(
            SNAPSHOT_RANGES,
            Type.INT,
            1,
            "Into how many ranges of keys the first reading of each table is cut, for as many tasks to read at once.",
            "Ranges of the first snapshot",
            "Connector",
            importance=_LOW,
            validator=Range(1),
        ),
        _key(
            SNAPSHOT_COLUMN,
            Type.STRING,
            "",
            "The column that ranges are cut by, a whole number with an index; empty is the "
            "incrementing column, or else the primary key.",
            "Column of the ranges",
            "Connector",
            importance=_LOW,
        ),
        _key(
            DELETES_INTERVAL_MS,
            Type.LONG,
            0,
            "Milliseconds between two comparisons of a table's primary keys with those seen "
            "before; for each that is gone a tombstone is written. 0 is never. Records then have the primary key as their key.",
            "Interval of the search for deleted rows (ms)",
            "Connector",
            importance=_LOW,
            validator=Range(0),
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """A source's values; times in seconds but for ``timestamp_initial``, which is in milliseconds."""

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

    @property
    def uses_incrementing(self) -> bool:
        return self.mode in (INCREMENTING, TIMESTAMP_INCREMENTING)

    @property
    def uses_timestamp(self) -> bool:
        return self.mode in (TIMESTAMP, TIMESTAMP_INCREMENTING)


def source_config(config: Config[str, str]) -> SourceConfig:
    """Return a source's typed config. Raises ConfigError, also for keys that do not go together."""
    values = CONFIG.parse(config)
    for key, message in misfits(values).items():
        raise ConfigError(key, values[key], message)
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
        query=_text(values[QUERY]).strip().rstrip(";"),
        query_suffix=_text(values[QUERY_SUFFIX]).strip(),
        horizon=_text(values[HORIZON]).lower(),
        topic_prefix=_text(values[TOPIC_PREFIX]),
        poll_interval=int(str(values[POLL_INTERVAL_MS])) / 1000,
        table_poll_interval=int(str(values[TABLE_POLL_INTERVAL_MS])) / 1000,
        batch_max_rows=int(str(values[BATCH_MAX_ROWS])),
        ranges=int(str(values[SNAPSHOT_RANGES])),
        range_column=_text(values[SNAPSHOT_COLUMN]),
        deletes_interval=int(str(values[DELETES_INTERVAL_MS])) / 1000,
    )


def misfits(values: Config[str, ConfigValue]) -> dict[str, str]:
    """Return which keys do not go together, each with what is the matter. Pure."""
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


def _text(value: ConfigValue) -> str:
    return "" if value is None else str(value)


def _texts(value: ConfigValue) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else ()
