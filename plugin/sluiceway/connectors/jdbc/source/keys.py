"""Defines the keys of the JDBC source.

Names and defaults are those of Confluent's JDBC source; keys below ``sluiceway.`` are additional.
"""

from __future__ import annotations

import re

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, Width
from sluiceway.config.validators import Check, EnumText, OneOf, OrNull, Range
from sluiceway.connectors.jdbc.columns import Granularity, NumericMapping
from sluiceway.connectors.jdbc.connection_keys import CONNECTION, DB_TIMEZONE_KEY, QUOTE_SQL_IDENTIFIERS_KEY
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

# Keys that the connector passes to its tasks.
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


def _check_patterns(name: str, value: ConfigValue) -> None:
    for pattern in value if isinstance(value, list) else ():
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(name, pattern, f"is not a regular expression: {error}") from error


_PATTERNS = Check(_check_patterns, "regular expressions")
_HIGH, _LOW = Importance.HIGH, Importance.LOW

CONFIG = CONNECTION + ConfigDef(
    [
        _key(
            CATALOG_PATTERN,
            Type.STRING,
            None,
            "A pattern for the databases of tables: % stands for any characters, _ for one; empty for all databases.",
            "Catalog Pattern",
            "Database",
        ),
        _key(
            SCHEMA_PATTERN,
            Type.STRING,
            None,
            "A pattern for the schemas of tables: % stands for any characters, _ for one; empty for all schemas.",
            "Schema Pattern",
            "Database",
            importance=_HIGH,
        ),
        _key(
            TABLE_WHITELIST,
            Type.LIST,
            "",
            "The names of the tables to read, with or without schema and catalog. Cannot be combined with "
            "a blacklist, a query or include and exclude lists.",
            "Table Whitelist",
            "Database",
        ),
        _key(
            TABLE_BLACKLIST,
            Type.LIST,
            "",
            "Tables to leave out, by name; all others are read.",
            "Table Blacklist",
            "Database",
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
            f"The types of tables to read: {', '.join(_TYPES)}.",
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
            "How rows are read. bulk: all rows at each poll. incrementing: rows with a higher number than the last row read. "
            "timestamp: rows with a later timestamp, so changed rows too. timestamp+incrementing: both; the number "
            "distinguishes rows with the same timestamp.",
            "Table Loading Mode",
            "Mode",
            importance=_HIGH,
            validator=OneOf(("", *MODES)),
        ),
        _key(
            INCREMENTING_COLUMN_NAME,
            Type.STRING,
            "",
            "The column whose number is higher in each new row; empty for the table's auto-increment column.",
            "Incrementing Column Name",
            "Mode",
        ),
        _key(
            TIMESTAMP_COLUMN_NAME,
            Type.LIST,
            "",
            "The columns with the timestamp of a row's last change; the first that is not null is used.",
            "Timestamp Column Name",
            "Mode",
        ),
        _key(
            TIMESTAMP_INITIAL,
            Type.LONG,
            None,
            "The timestamp to start from without a stored offset, in milliseconds since the epoch; -1: now, empty: oldest row.",
            "Unix time value of initial timestamp",
            "Mode",
            importance=_LOW,
        ),
        _key(
            VALIDATE_NON_NULL,
            Type.BOOLEAN,
            True,
            "Whether to refuse tables whose incrementing column is nullable, or all "
            "of whose timestamp columns are: rows with null there are never read.",
            "Validate Non Null",
            "Mode",
            importance=_LOW,
        ),
        _key(
            QUERY,
            Type.STRING,
            "",
            "A SELECT statement whose rows are read instead of tables; it becomes a subquery of statements with conditions.",
            "Query",
            "Mode",
            width=Width.LONG,
        ),
        _key(
            QUERY_SUFFIX,
            Type.STRING,
            "",
            "A clause to append to each statement, such as a LIMIT.",
            "Query suffix",
            "Mode",
            importance=_LOW,
        ),
        _key(
            HORIZON,
            Type.STRING,
            AUTO,
            "Whether rows are held back until no open transaction of the database can commit rows with a smaller timestamp or "
            "number. auto: if the user may see open transactions; required: fail if the user may not; none: rows are never "
            "held back.",
            "Safe horizon",
            "Mode",
            validator=EnumText(AUTO, REQUIRED, NONE),
        ),
        _key(
            NUMERIC_PRECISION_MAPPING,
            Type.BOOLEAN,
            False,
            "The former way to set numeric.mapping=precision_only.",
            "Map Numeric Values By Precision (deprecated)",
            "Connector",
            importance=_LOW,
        ),
        _key(
            NUMERIC_MAPPING,
            Type.STRING,
            None,
            "The mapping of decimals. none: Connect's Decimal. precision_only: integers for decimals "
            "without a fraction, if they fit. best_fit: doubles for the others too, if they fit. "
            "best_fit_eager_double: doubles for all decimals with a fraction.",
            "Map Numeric Values",
            "Connector",
            importance=_LOW,
            validator=OrNull(EnumText(*(each.value for each in NumericMapping))),
        ),
        _key(
            TIMESTAMP_GRANULARITY,
            Type.STRING,
            Granularity.CONNECT_LOGICAL.value,
            "The mapping of timestamps: Connect's "
            "Timestamp, which has milliseconds, or micro- or nanoseconds since the epoch as numbers or strings, or ISO strings.",
            "Timestamp granularity for timestamp columns",
            "Connector",
            importance=_LOW,
            validator=EnumText(*(each.value for each in Granularity)),
        ),
        _key(
            POLL_INTERVAL_MS,
            Type.INT,
            5000,
            "Milliseconds between two polls of a table for new rows.",
            "Poll Interval (ms)",
            "Connector",
            importance=_HIGH,
            validator=Range(0),
        ),
        _key(
            BATCH_MAX_ROWS,
            Type.INT,
            100,
            "The maximum number of rows in one batch and in one fetch from the database. Batches of 2,000 rows and more are "
            "handled as columns, which saves processor time, if the extra columns is installed.",
            "Max Rows Per Batch",
            "Connector",
            importance=_LOW,
            validator=Range(1),
        ),
        _key(
            TABLE_POLL_INTERVAL_MS,
            Type.LONG,
            60_000,
            "Milliseconds between two checks for new and dropped tables.",
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
            doc="The prefix of topic names; the table's name follows. With a query, the topic.",
        ),
        _key(
            TIMESTAMP_DELAY_INTERVAL_MS,
            Type.LONG,
            0,
            "The minimum age of a row's timestamp, in milliseconds by the database's clock, before the row is read.",
            "Delay Interval (ms)",
            "Connector",
            importance=_HIGH,
            validator=Range(0),
        ),
        _key(
            SNAPSHOT_RANGES,
            Type.INT,
            1,
            "The number of key ranges of each table's first snapshot, for as many tasks to read in parallel.",
            "Ranges of the first snapshot",
            "Connector",
            importance=_LOW,
            validator=Range(1),
        ),
        _key(
            SNAPSHOT_COLUMN,
            Type.STRING,
            "",
            "The column of the ranges, an indexed integer; empty for the incrementing column, or else the primary key.",
            "Column of the ranges",
            "Connector",
            importance=_LOW,
        ),
        _key(
            DELETES_INTERVAL_MS,
            Type.LONG,
            0,
            "Milliseconds between two comparisons of a table's primary keys with those read "
            "before; each missing key becomes a tombstone. 0 disables this. Otherwise records have the primary key as their key.",
            "Interval of the search for deleted rows (ms)",
            "Connector",
            importance=_LOW,
            validator=Range(0),
        ),
    ]
)
