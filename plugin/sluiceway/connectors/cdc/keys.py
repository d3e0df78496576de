"""Defines the config keys that Debezium's relational connectors share, with Debezium's defaults and messages."""

from __future__ import annotations

from collections.abc import Collection

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, Validator, Width
from sluiceway.config.validators import Check
from sluiceway.connectors.cdc.filters import check_patterns
from sluiceway.connectors.cdc.naming_strategies import NAMING_STRATEGY, NAMING_STRATEGY_DOC
from sluiceway.errors import ConfigError
from sluiceway.java.hash_map import hash_map_order

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
STRING, INT, LONG, BOOLEAN, PASSWORD = Type.STRING, Type.INT, Type.LONG, Type.BOOLEAN, Type.PASSWORD

_NO_EFFECT = "Accepted, but without effect here."

OVERRIDES = "snapshot.select.statement.overrides"

Entry = tuple[str, Type, object, Importance, str]
"""A key: name, type, default, importance and documentation."""


def invalid(name: str, reason: str) -> ConfigError:
    """Return Debezium's error for a value."""
    return ConfigError(f"The '{name}' value is invalid: {reason}")


def one_of(*allowed: str, unset: bool = False) -> Validator:
    """Return the validator of a key with fixed values, which ignores case and lists them in Debezium's order."""

    def check(name: str, value: ConfigValue) -> None:
        if (value is None and unset) or (isinstance(value, str) and value.strip().lower() in allowed):
            return
        raise invalid(name, f"Value must be one of {', '.join(hash_map_order(allowed))}")

    return Check(check, f"[{', '.join(allowed)}]")


def required(name: str, value: ConfigValue) -> None:
    """Raise ConfigError for a value that is not set."""
    if value is None or value == "":
        raise invalid(name, "A value is required")


def at_least(minimum: int, reason: str) -> Validator:
    """Return the validator of a number."""

    def check(name: str, value: ConfigValue) -> None:
        if isinstance(value, int) and value < minimum:
            raise invalid(name, reason)

    return Check(check, f"[{minimum},...]")


POSITIVE = at_least(1, "A positive, non-zero integer value is expected")
NOT_NEGATIVE = at_least(0, "An non-negative integer is expected")
PATTERNS = Check(check_patterns, "regular expressions")
REQUIRED = Check(required, "not empty")


def _check_operations(name: str, value: ConfigValue) -> None:
    for operation in str(value or "").split(","):
        if operation.strip() not in ("none", "c", "u", "d", "t"):
            raise invalid(
                name,
                f"Invalid operation: {operation.strip()}. Must be one of: none, c (create), u (update), d (delete), t (truncate)",
            )


_VALIDATORS: dict[str, Validator] = {
    "database.hostname": REQUIRED,
    "database.user": REQUIRED,
    "topic.prefix": REQUIRED,
    "decimal.handling.mode": one_of("string", "double", "precise"),
    "binary.handling.mode": one_of("bytes", "base64", "base64-url-safe", "hex"),
    "schema.name.adjustment.mode": one_of("none", "avro", "avro_unicode"),
    "field.name.adjustment.mode": one_of("none", "avro", "avro_unicode"),
    "event.processing.failure.handling.mode": one_of("skip", "warn", "fail", "ignore"),
    "incremental.snapshot.watermarking.strategy": one_of("insert_insert", "insert_delete"),
    "snapshot.new.tables": one_of("off", "incremental", "parallel"),
    "sluiceway.cdc.compat": one_of("debezium", "correct"),
    "skipped.operations": Check(_check_operations, "[none,c,u,d,t]"),
    **dict.fromkeys(
        ("max.batch.size", "max.queue.size", "poll.interval.ms", "snapshot.max.threads", "sluiceway.cdc.snapshot.range.rows"),
        POSITIVE,
    ),
    "incremental.snapshot.chunk.size": POSITIVE,
    "errors.max.retries": at_least(-1, "A number of attempts, or -1 for no limit, is expected"),
    **dict.fromkeys(
        (
            "heartbeat.interval.ms",
            "snapshot.delay.ms",
            "snapshot.fetch.size",
            "snapshot.lock.timeout.ms",
            "streaming.delay.ms",
            "max.queue.size.in.bytes",
            "signal.poll.interval.ms",
            "retriable.restart.connector.wait.ms",
            "status.update.interval.ms",
            "connect.timeout.ms",
        ),
        NOT_NEGATIVE,
    ),
    **dict.fromkeys(
        (
            "table.include.list",
            "table.exclude.list",
            "column.include.list",
            "column.exclude.list",
            "column.propagate.source.type",
            "datatype.propagate.source.type",
            "snapshot.include.collection.list",
            "schema.history.internal.ddl.filter",
        ),
        PATTERNS,
    ),
}

_COMMON: list[Entry] = [
    ("topic.prefix", STRING, None, HIGH, "The name of the database server, which begins the names of all topics and schemas."),
    ("database.hostname", STRING, None, HIGH, "The host name or address of the database server."),
    ("database.user", STRING, None, HIGH, "The user that reads the database."),
    ("database.password", PASSWORD, None, HIGH, "The user's password."),
    ("table.include.list", STRING, None, HIGH, "Regular expressions of the tables to capture; all others are left out."),
    ("table.exclude.list", STRING, None, MEDIUM, "Regular expressions of the tables not to capture."),
    ("table.ignore.builtin", BOOLEAN, True, LOW, "Whether the database's own tables are left out."),
    ("column.include.list", STRING, None, MEDIUM, "Regular expressions of the columns in the records' values."),
    ("column.exclude.list", STRING, None, MEDIUM, "Regular expressions of the columns left out of the records' values."),
    (
        "column.propagate.source.type",
        STRING,
        None,
        MEDIUM,
        "Columns whose database type becomes parameters of the field's schema.",
    ),
    ("datatype.propagate.source.type", STRING, None, MEDIUM, "Types of columns, like column.propagate.source.type."),
    ("message.key.columns", STRING, None, MEDIUM, "The key columns of tables: table:column,column;table:column."),
    ("skipped.operations", STRING, "t", LOW, "Operations without records: c, u, d, t, or none for all records."),
    ("skip.messages.without.change", BOOLEAN, False, LOW, "Whether updates that change no included column have no records."),
    ("tombstones.on.delete", BOOLEAN, True, MEDIUM, "Whether a tombstone follows the record of a delete."),
    ("decimal.handling.mode", STRING, "precise", MEDIUM, "The form of decimals: precise, double or string."),
    ("binary.handling.mode", STRING, "bytes", LOW, "The form of binary columns: bytes, base64, base64-url-safe or hex."),
    (
        "schema.name.adjustment.mode",
        STRING,
        "none",
        MEDIUM,
        "How schema names become valid for a converter: none, avro, avro_unicode.",
    ),
    (
        "field.name.adjustment.mode",
        STRING,
        "none",
        MEDIUM,
        "How field names become valid for a converter: none, avro, avro_unicode.",
    ),
    (
        "unavailable.value.placeholder",
        STRING,
        "__debezium_unavailable_value",
        MEDIUM,
        "Stands for a value that the log leaves out.",
    ),
    ("include.schema.comments", BOOLEAN, False, MEDIUM, "Whether schemas have the comments of tables and columns."),
    ("snapshot.fetch.size", INT, 0, MEDIUM, "The number of rows read at once in a snapshot; 0: 10,240."),
    ("snapshot.max.threads", INT, 1, MEDIUM, "The number of connections that read tables in a snapshot."),
    ("snapshot.delay.ms", LONG, 0, LOW, "Milliseconds to wait before a snapshot."),
    ("snapshot.lock.timeout.ms", LONG, 10000, MEDIUM, "Milliseconds to wait for table locks in a snapshot."),
    ("snapshot.include.collection.list", STRING, None, MEDIUM, "Regular expressions of the captured tables that snapshots read."),
    (
        OVERRIDES,
        STRING,
        None,
        MEDIUM,
        "Tables whose rows snapshots read by a statement of their own.",
    ),
    (
        "snapshot.tables.order.by.row.count",
        STRING,
        "disabled",
        LOW,
        "The order of tables in a snapshot: disabled, ascending, descending.",
    ),
    ("snapshot.mode.configuration.based.snapshot.data", BOOLEAN, False, MEDIUM, "For configuration_based: read data."),
    ("snapshot.mode.configuration.based.snapshot.schema", BOOLEAN, False, MEDIUM, "For configuration_based: read schemas."),
    ("snapshot.mode.configuration.based.start.stream", BOOLEAN, False, MEDIUM, "For configuration_based: read the log."),
    (
        "snapshot.mode.configuration.based.snapshot.on.schema.error",
        BOOLEAN,
        False,
        MEDIUM,
        "For configuration_based: read schemas if the schema history is lost.",
    ),
    (
        "snapshot.mode.configuration.based.snapshot.on.data.error",
        BOOLEAN,
        False,
        MEDIUM,
        "For configuration_based: read data if the position is no longer in the log.",
    ),
    ("streaming.delay.ms", LONG, 0, LOW, "Milliseconds to wait between the snapshot and the log."),
    ("max.batch.size", INT, 2048, MEDIUM, "The most records in a batch."),
    ("max.queue.size", INT, 8192, MEDIUM, "The most changes that wait in memory."),
    ("max.queue.size.in.bytes", LONG, 0, LOW, "The most bytes of changes that wait in memory; 0: 32 MiB."),
    ("poll.interval.ms", LONG, 500, MEDIUM, "The longest wait for a change, in milliseconds."),
    ("heartbeat.interval.ms", INT, 0, MEDIUM, "Milliseconds between heartbeat records; 0 for none."),
    ("heartbeat.action.query", STRING, None, LOW, "A statement to execute with each heartbeat."),
    ("topic.heartbeat.prefix", STRING, "__debezium-heartbeat", LOW, "The first part of the heartbeat topic's name."),
    ("topic.transaction", STRING, "transaction", LOW, "The last part of the transaction topic's name."),
    ("topic.delimiter", STRING, ".", MEDIUM, "The separator in topic names."),
    (
        NAMING_STRATEGY,
        STRING,
        "io.debezium.schema.SchemaTopicNamingStrategy",
        MEDIUM,
        NAMING_STRATEGY_DOC,
    ),
    ("topic.regex", STRING, None, LOW, "For a regex strategy: the names of topics that change, as a whole."),
    ("topic.replacement", STRING, None, LOW, "For a regex strategy: the new name of a topic; $1 is the first group."),
    (
        "topic.key.enforce.uniqueness",
        BOOLEAN,
        True,
        LOW,
        "For a regex strategy: whether keys have a field that tells the tables of a topic apart.",
    ),
    ("topic.key.field.name", STRING, "__dbz__physicalTableIdentifier", LOW, "For a regex strategy: the name of that field."),
    (
        "topic.key.field.regex",
        STRING,
        None,
        LOW,
        "For a regex strategy: the table's own topic names whose value in that field changes, as a whole.",
    ),
    ("topic.key.field.replacement", STRING, None, LOW, "For a regex strategy: the new value of that field."),
    ("topic.cache.size", INT, 10000, LOW, "How many names of topics are remembered. All are."),
    ("provide.transaction.metadata", BOOLEAN, False, LOW, "Whether records have transaction blocks, and transactions records."),
    ("signal.data.collection", STRING, None, MEDIUM, "The table in which signals are inserted."),
    ("signal.enabled.channels", STRING, "source", MEDIUM, "Where signals come from: source, kafka, file."),
    ("signal.poll.interval.ms", LONG, 5000, LOW, "Milliseconds between two checks for signals."),
    ("signal.kafka.topic", STRING, None, MEDIUM, "The topic of the kafka channel's signals; default: <topic.prefix>-signal."),
    ("signal.kafka.bootstrap.servers", STRING, None, MEDIUM, "The brokers of the kafka channel's signals."),
    ("signal.kafka.groupId", STRING, "kafka-signal", LOW, "The consumer group of the kafka channel, which keeps its offset."),
    ("signal.file", STRING, "file-signals.txt", LOW, "The file of the file channel's signals, one JSON document a line."),
    ("notification.enabled.channels", STRING, None, MEDIUM, "Where notifications go: sink, log."),
    ("notification.sink.topic.name", STRING, None, MEDIUM, "The topic of the sink channel's notifications."),
    ("incremental.snapshot.chunk.size", INT, 1024, MEDIUM, "The most rows that an incremental snapshot reads at once."),
    (
        "incremental.snapshot.watermarking.strategy",
        STRING,
        "insert_insert",
        MEDIUM,
        "Whether the end of a window is inserted into the signal table (insert_insert), or its begin deleted (insert_delete).",
    ),
    ("incremental.snapshot.allow.schema.changes", BOOLEAN, False, LOW, "Whether tables may change during incremental snapshots."),
    ("read.only", BOOLEAN, False, LOW, "Whether incremental snapshots write nothing into the database."),
    (
        "event.processing.failure.handling.mode",
        STRING,
        "fail",
        MEDIUM,
        "What to do with a change that cannot be read: fail, warn, skip.",
    ),
    ("errors.max.retries", INT, -1, MEDIUM, "How often to reconnect after an error; -1: without end."),
    ("retriable.restart.connector.wait.ms", LONG, 10000, LOW, "Milliseconds before reconnecting after an error."),
    ("extended.headers.enabled", BOOLEAN, True, LOW, "Whether records have the headers __debezium.context.*."),
    ("sourceinfo.struct.maker", STRING, None, LOW, "A Java class that makes source blocks; none can be loaded."),
    (
        "transaction.metadata.factory",
        STRING,
        "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",
        LOW,
        "The class that describes transactions; only the default.",
    ),
    ("converters", STRING, None, LOW, "Names of custom converters, each with <name>.type."),
    ("post.processors", STRING, None, LOW, "Names of post processors, each with <name>.type."),
    ("database.query.timeout.ms", INT, 600000, LOW, "Milliseconds after which a query fails."),
    ("database.initial.statements", STRING, None, LOW, "Statements to execute on each new connection, separated by semicolons."),
    ("custom.metric.tags", STRING, None, LOW, "Tags of metrics."),
    ("query.fetch.size", INT, 0, MEDIUM, "The number of rows that other queries fetch at once."),
    (
        "snapshot.new.tables",
        STRING,
        "off",
        LOW,
        "Whether a captured table that earlier runs did not capture is read by an incremental snapshot: off or incremental.",
    ),
    (
        "sluiceway.cdc.snapshot.range.rows",
        INT,
        100_000,
        LOW,
        "The rows that a thread of an initial snapshot reads at once, and again after a crash.",
    ),
    ("sluiceway.cdc.compat", STRING, "debezium", MEDIUM, "Whether values that Debezium gets wrong are Debezium's, or correct."),
]


def config_def(
    own: Collection[Entry], validators: dict[str, Validator], group: str, without_effect: Collection[str]
) -> ConfigDef:
    """Return the definition of a connector's keys: its own, and the common ones that it does not define itself.

    The documentation of those ``without_effect`` says so.
    """
    names = {entry[0] for entry in own}
    checks = {**_VALIDATORS, **validators}
    entries = [*own, *(entry for entry in _COMMON if entry[0] not in names)]
    return ConfigDef(
        ConfigKey(
            name=name,
            type=type_,
            default=default,  # type: ignore[arg-type]  # values of the key's type, or None
            importance=importance,
            doc=f"{doc} {_NO_EFFECT}" if name in without_effect else doc,
            group=group,
            order_in_group=order,
            width=Width.MEDIUM,
            display_name=name,
            validator=checks.get(name),
        )
        for order, (name, type_, default, importance, doc) in enumerate(entries)
    )
