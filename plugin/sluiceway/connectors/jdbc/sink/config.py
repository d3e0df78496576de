"""Defines the keys of the JDBC sink, and their typed values.

Names and defaults are those of Confluent's JDBC sink; keys below ``sluiceway.`` are additional.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from zoneinfo import ZoneInfo

from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import EnumText, NonEmptyString, Range
from sluiceway.connectors import own_tables
from sluiceway.connectors.jdbc.connection_keys import CONNECTION, DB_TIMEZONE_KEY, QUOTE_SQL_IDENTIFIERS_KEY, ConnectionSettings
from sluiceway.connectors.null_values import REPLACE_NULLS, replace_nulls
from sluiceway.connectors.replacement import interval_column
from sluiceway.errors import ConfigError

INSERT_MODE = "insert.mode"
BATCH_SIZE = "batch.size"
DELETE_ENABLED = "delete.enabled"
TABLE_TYPES = "table.types"
TABLE_NAME_FORMAT = "table.name.format"
PK_MODE = "pk.mode"
PK_FIELDS = "pk.fields"
FIELDS_WHITELIST = "fields.whitelist"
AUTO_CREATE = "auto.create"
AUTO_EVOLVE = "auto.evolve"
MAX_RETRIES = "max.retries"
RETRY_BACKOFF_MS = "retry.backoff.ms"
EXACTLY_ONCE = "sluiceway.exactly.once"
OFFSETS_TABLE = "sluiceway.offsets.table"

TOPIC_PLACEHOLDER = "${topic}"
KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")

_WRITING, _MAPPING, _TABLES, _RETRIES, _DELIVERY = "Writes", "Data Mapping", "Tables", "Retries", "Delivery"


class InsertMode(enum.Enum):
    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"


class PkMode(enum.Enum):
    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


_text = functools.partial(ConfigKey, type=Type.STRING)
_flag = functools.partial(ConfigKey, type=Type.BOOLEAN)

SINK = CONNECTION.define(
    *[
        _text(
            name=INSERT_MODE,
            default="insert",
            validator=EnumText(*(mode.value for mode in InsertMode)),
            importance=Importance.HIGH,
            group=_WRITING,
            doc="How a record with a value is written. insert: inserts a row. upsert: inserts a row, or updates the row with its "
            "key. update: updates the row with its key, if it exists.",
        ),
        ConfigKey(
            name=BATCH_SIZE,
            type=Type.INT,
            default=3000,
            validator=Range(1),
            importance=Importance.MEDIUM,
            group=_WRITING,
            doc="The maximum number of records that are written together. The records of one poll (max.poll.records of the "
            "consumer) are one transaction in any case; raise consumer.override.max.poll.records for larger transactions.",
        ),
        _flag(
            name=DELETE_ENABLED,
            default=False,
            importance=Importance.MEDIUM,
            group=_WRITING,
            doc="Whether a record without a value (a tombstone) deletes the row with its key; needs pk.mode=record_key.",
        ),
        ConfigKey(
            name=TABLE_TYPES,
            type=Type.LIST,
            default=["TABLE"],
            importance=Importance.LOW,
            group=_WRITING,
            doc="The kinds of tables that may be written to: TABLE, VIEW, or both, separated by a comma.",
        ),
        _text(
            name=TABLE_NAME_FORMAT,
            default=TOPIC_PLACEHOLDER,
            validator=NonEmptyString(),
            importance=Importance.MEDIUM,
            group=_MAPPING,
            doc="The table for records; ${topic} stands for the record's topic. A dot separates schema and table.",
        ),
        _text(
            name=PK_MODE,
            default="none",
            validator=EnumText(*(mode.value for mode in PkMode)),
            importance=Importance.HIGH,
            group=_MAPPING,
            doc="The source of the primary key's columns. none: no key. kafka: topic, partition and offset of the "
            "record. record_key: the record's key, or fields of it. record_value: fields of the record's value.",
        ),
        ConfigKey(
            name=PK_FIELDS,
            type=Type.LIST,
            default=[],
            importance=Importance.MEDIUM,
            group=_MAPPING,
            doc="The primary key's columns. kafka: three names for topic, partition and offset, in this order; by default "
            "__connect_topic, __connect_partition, __connect_offset. record_key: fields of the key, all if empty; "
            "one name if the key is not a struct. record_value: fields of the value, all if empty.",
        ),
        ConfigKey(
            name=FIELDS_WHITELIST,
            type=Type.LIST,
            default=[],
            importance=Importance.MEDIUM,
            group=_MAPPING,
            doc="The value's fields that become columns; all if empty. The primary key is always written.",
        ),
        replace_nulls(_MAPPING),
        DB_TIMEZONE_KEY,
        _flag(
            name=AUTO_CREATE,
            default=False,
            importance=Importance.MEDIUM,
            group=_TABLES,
            doc="Whether a table that does not exist is created, with the columns of the first record's schema.",
        ),
        _flag(
            name=AUTO_EVOLVE,
            default=False,
            importance=Importance.MEDIUM,
            group=_TABLES,
            doc="Whether columns are added to a table for fields without a column. Nothing else about a table is ever "
            "changed: no column is dropped or renamed, and no type is changed.",
        ),
        QUOTE_SQL_IDENTIFIERS_KEY,
        ConfigKey(
            name=MAX_RETRIES,
            type=Type.INT,
            default=10,
            validator=Range(-1),
            importance=Importance.MEDIUM,
            group=_RETRIES,
            doc="How often a batch is retried after the database has rolled it back for a transient reason, such as a deadlock, "
            "before the task fails; -1 is unlimited. An unreachable database does not count, see "
            f"{UNREACHABLE_MS}.",
        ),
        ConfigKey(
            name=RETRY_BACKOFF_MS,
            type=Type.INT,
            default=3000,
            validator=Range(0),
            importance=Importance.MEDIUM,
            group=_RETRIES,
            doc="Milliseconds between two attempts to write a batch.",
        ),
        ConfigKey(
            name=UNREACHABLE_MS,
            type=Type.LONG,
            default=3_600_000,
            validator=Range(-1),
            importance=Importance.LOW,
            group=_RETRIES,
            doc="Milliseconds to wait for an unreachable database before the task fails; -1 is unlimited. Meanwhile the task "
            "reads nothing from Kafka.",
        ),
        _flag(
            name=EXACTLY_ONCE,
            default=True,
            importance=Importance.MEDIUM,
            group=_DELIVERY,
            doc="Whether offsets are stored in a table of the database, in the same transaction as the rows, so that each record "
            "is applied once even if the task is killed. Needs tables with transactions.",
        ),
        _text(
            name=OFFSETS_TABLE,
            default=own_tables.OFFSETS_TABLE,
            validator=NonEmptyString(),
            importance=Importance.LOW,
            group=_DELIVERY,
            doc="The table for offsets, shared by all connectors; created if it does not exist.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The typed values of a sink's config; times in seconds, None for unlimited. The repr shows no password."""

    name: str
    connection: ConnectionSettings
    insert_mode: InsertMode
    pk_mode: PkMode
    pk_fields: tuple[str, ...]
    fields: frozenset[str]
    replace_nulls: bool
    batch_size: int
    delete_enabled: bool
    table_format: str
    views: bool
    tables: bool
    zone: ZoneInfo
    auto_create: bool
    auto_evolve: bool
    max_retries: int | None
    backoff: float
    unreachable: float | None
    exactly_once: bool
    offsets_table: str
    interval_column: str | None = None

    @classmethod
    def of(cls, config: Mapping[str, str]) -> SinkOptions:
        """Return the values of a config. Raises ConfigError for an invalid value and for keys that conflict."""
        values = SINK.parse(config)
        problems = conflicts(values)
        if problems:
            name, message = next(iter(problems.items()))
            raise ConfigError(name, _shown(values[name]), message)
        kinds = {name.upper() for name in _list(values[TABLE_TYPES])}
        connection = ConnectionSettings.of(values)
        return cls(
            config.get("name", ""),
            connection,
            _enum(InsertMode, values, INSERT_MODE),
            _enum(PkMode, values, PK_MODE),
            tuple(_list(values[PK_FIELDS])),
            frozenset(_list(values[FIELDS_WHITELIST])),
            bool(values[REPLACE_NULLS]),
            _whole(values, BATCH_SIZE),
            bool(values[DELETE_ENABLED]),
            str(values[TABLE_NAME_FORMAT]),
            "VIEW" in kinds,
            bool(kinds - {"VIEW"}),
            ZoneInfo(connection.timezone),
            bool(values[AUTO_CREATE]),
            bool(values[AUTO_EVOLVE]),
            _limit(_whole(values, MAX_RETRIES)),
            _whole(values, RETRY_BACKOFF_MS) / 1000,
            _seconds(_whole(values, UNREACHABLE_MS)),
            bool(values[EXACTLY_ONCE]),
            str(values[OFFSETS_TABLE]),
            interval_column(config),
        )


def add_conflicts(found: dict[str, ValidatedValue]) -> dict[str, ValidatedValue]:
    """Add the errors of conflicting keys to the results of validation, unless single keys have errors."""
    if not any(found[key.name].errors for key in SINK):
        for name, message in conflicts({key.name: found[key.name].value for key in SINK}).items():
            found[name].errors.append(str(ConfigError(name, _shown(found[name].value), message)))
    return found


def conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    mode, pk_mode = _enum(InsertMode, values, INSERT_MODE), _enum(PkMode, values, PK_MODE)
    fields, problems = _list(values[PK_FIELDS]), {}
    if mode is not InsertMode.INSERT and pk_mode is PkMode.NONE:
        problems[PK_MODE] = f"{INSERT_MODE}={mode.value} needs a primary key: kafka, record_key or record_value"
    if values[DELETE_ENABLED] and pk_mode is not PkMode.RECORD_KEY:
        problems[DELETE_ENABLED] = f"needs {PK_MODE}=record_key, since a tombstone has nothing but its key"
    if pk_mode is PkMode.KAFKA and len(fields) not in (0, len(KAFKA_COLUMNS)):
        problems[PK_FIELDS] = "has to name three columns, for topic, partition and offset, or none"
    unknown = {name.upper() for name in _list(values[TABLE_TYPES])} - {"TABLE", "VIEW", "PARTITIONED TABLE"}
    if unknown or not values[TABLE_TYPES]:
        problems[TABLE_TYPES] = "has to name TABLE, VIEW, or both"
    return problems


E = TypeVar("E", InsertMode, PkMode)


def _enum(kind: Callable[[str], E], values: Mapping[str, ConfigValue], name: str) -> E:
    return kind(str(values[name]).lower())


def _list(value: ConfigValue) -> list[str]:
    return value if isinstance(value, list) else []


def _whole(values: Mapping[str, ConfigValue], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value


def _limit(number: int) -> int | None:
    return None if number < 0 else number


def _seconds(milliseconds: int) -> float | None:
    return None if milliseconds < 0 else milliseconds / 1000


def _shown(value: ConfigValue) -> object:
    return ",".join(value) if isinstance(value, list) else value
