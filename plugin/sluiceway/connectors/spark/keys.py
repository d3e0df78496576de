"""Declares the keys of SparkSink and SparkSource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyString, OneOf, Range
from sluiceway.connectors.null_values import replace_nulls

FORMAT = "format"
OPTION_PREFIX = "option."
PATH, TABLE, QUERY = "path", "table", "query"
MODE = "mode"
FLUSH_SIZE, FLUSH_BYTES, ROTATE_INTERVAL = "flush.size", "flush.bytes", "rotate.interval.ms"
ON_NULL = "behavior.on.null.values"
EXACTLY_ONCE = "exactly.once.support"
PARTITION_BY = "partition.by"
TOPIC = "topic"
INCREMENTING, TIMESTAMP, DELAY = "incrementing.column.name", "timestamp.column.name", "timestamp.delay.interval.ms"
SPLITS, SPLIT_ROWS, MAX_FILES = "splits", "split.max.rows", "round.max.files"
POLL_INTERVAL = "poll.interval.ms"

# Formats that read and write a folder or a table, and not what their options name.
_SPARKS_OWN = frozenset(
    {"parquet", "orc", "json", "csv", "text", "xml", "avro", "binaryfile", "image", "jdbc", "kafka", "delta", "iceberg"}
)

_FORMAT = ConfigKey(
    name=FORMAT,
    type=Type.STRING,
    validator=NonEmptyString(),
    importance=Importance.HIGH,
    doc="Spark's name of the format: parquet, orc, json, csv, jdbc, or one that a package in spark.jars.packages adds. The "
    "driver checks it, because only Spark knows its formats. Options of the format follow option., such as option.header.",
)


def _place(name: str, doc: str) -> ConfigKey:
    return ConfigKey(name=name, type=Type.STRING, default="", importance=Importance.HIGH, doc=doc)


SINK = ConfigDef(
    [
        _FORMAT,
        _place(
            PATH,
            "Folder to write to, of a format that writes files. Exactly one of path and table must be set, or neither for a "
            "format of a package whose options say where, such as option.collection of MongoDB.",
        ),
        _place(TABLE, "Table to write to: of the catalog or, with format=jdbc, of the database."),
        ConfigKey(
            name=MODE,
            type=Type.STRING,
            default="append",
            validator=OneOf(("append",), ignore_case=True),
            importance=Importance.LOW,
            doc="Spark's save mode. Only append keeps the records of earlier rounds.",
        ),
        ConfigKey(
            name=PARTITION_BY,
            type=Type.LIST,
            default=[],
            importance=Importance.MEDIUM,
            doc="Columns whose values become folders, as DataFrameWriter.partitionBy makes them.",
        ),
        ConfigKey(
            name=FLUSH_SIZE,
            type=Type.INT,
            default=500_000,
            validator=Range(1),
            importance=Importance.HIGH,
            doc="Largest number of offsets of a topic partition in one write. A write starts once a partition has as many.",
        ),
        ConfigKey(
            name=FLUSH_BYTES,
            type=Type.LONG,
            default=256 << 20,
            validator=Range(1),
            importance=Importance.MEDIUM,
            doc="Largest number of bytes of a topic partition's keys and values in one write, but always one record at least. "
            "The records after them are in the next write, which starts at once.",
        ),
        ConfigKey(
            name=ROTATE_INTERVAL,
            type=Type.LONG,
            default=10_000,
            validator=Range(0),
            importance=Importance.HIGH,
            doc="Milliseconds after which waiting records are written even if they are fewer than flush.size.",
        ),
        ConfigKey(
            name=ON_NULL,
            type=Type.STRING,
            default="fail",
            validator=OneOf(("fail", "ignore"), ignore_case=True),
            importance=Importance.LOW,
            doc="What to do with records without a value (tombstones): fail handles them as the errors.* keys say, ignore skips "
            "them.",
        ),
        replace_nulls(),
        ConfigKey(
            name=EXACTLY_ONCE,
            type=Type.STRING,
            default="requested",
            validator=OneOf(("requested", "required"), ignore_case=True),
            importance=Importance.LOW,
            doc="required rejects the config, because Spark's writers commit without the offsets: this sink delivers at least "
            "once, whatever the format. requested accepts that.",
        ),
    ]
)

SOURCE = ConfigDef(
    [
        _FORMAT,
        ConfigKey(
            name=TOPIC, type=Type.STRING, validator=NonEmptyString(), importance=Importance.HIGH, doc="Topic for the rows."
        ),
        _place(
            PATH,
            "File or folder to read. Without a column name, the files of a folder are read as they arrive, each once. Exactly "
            "one of path, table and query must be set, or none for a format of a package whose options say where, such as "
            "option.collection of MongoDB.",
        ),
        _place(TABLE, "Table to read: of the catalog or, with format=jdbc, of the database."),
        _place(QUERY, "SQL query to read, in the database's SQL. For format=jdbc."),
        ConfigKey(
            name=INCREMENTING,
            type=Type.STRING,
            default="",
            importance=Importance.HIGH,
            doc="Integer column that grows with each row. New rows are those with larger values. Without it and "
            "timestamp.column.name, a table is read once.",
        ),
        ConfigKey(
            name=TIMESTAMP,
            type=Type.STRING,
            default="",
            importance=Importance.HIGH,
            doc="Timestamp column that every change sets to the current time. Rows with later values are read.",
        ),
        ConfigKey(
            name=DELAY,
            type=Type.LONG,
            default=0,
            validator=Range(0),
            importance=Importance.LOW,
            doc="Milliseconds by which reading by timestamp stays behind the current time, so that transactions with earlier "
            "timestamps can be committed first.",
        ),
        ConfigKey(
            name=SPLITS,
            type=Type.INT,
            default=4,
            validator=Range(1, 256),
            importance=Importance.MEDIUM,
            doc="Number of parts that are read and produced in parallel, each in a transaction of its own.",
        ),
        ConfigKey(
            name=SPLIT_ROWS,
            type=Type.INT,
            default=100_000,
            validator=Range(1),
            importance=Importance.MEDIUM,
            doc="Approximate number of rows of a part that is read by a column. A transaction must end within "
            "producer.override.transaction.timeout.ms.",
        ),
        ConfigKey(
            name=MAX_FILES,
            type=Type.INT,
            default=1000,
            validator=Range(1),
            importance=Importance.LOW,
            doc="Largest number of new files of a folder that are read at once.",
        ),
        ConfigKey(
            name=POLL_INTERVAL,
            type=Type.LONG,
            default=5000,
            validator=Range(0),
            importance=Importance.MEDIUM,
            doc="Milliseconds between two looks for new rows or files.",
        ),
    ]
)


def place_error(config: Mapping[str, str], places: Sequence[str]) -> str | None:
    """Return why a config does not say where to read or write; None if it does, by one of the keys or by the format's options."""
    given = [key for key in places if config.get(key)]
    by_options = options_of(config) and config.get(FORMAT, "").strip().lower() not in _SPARKS_OWN
    if len(given) == 1 or (not given and by_options):
        return None
    names = f"{', '.join(places[:-1])} and {places[-1]}"
    return f"Exactly one of {names} must be set, or none of them for a format of a package whose options say where."


def options_of(config: Mapping[str, str]) -> dict[str, str]:
    """Return the format's options, without their prefix."""
    return {key[len(OPTION_PREFIX) :]: value for key, value in config.items() if key.startswith(OPTION_PREFIX)}
