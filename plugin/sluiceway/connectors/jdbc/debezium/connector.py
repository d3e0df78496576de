"""The JDBC sink under the keys of Debezium's JDBC sink: accepts its configs and change events unchanged."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, EnumText, Range
from sluiceway.connectors.jdbc.connection_keys import (
    CONNECTION,
    CONNECTION_PASSWORD,
    CONNECTION_USER,
    DB_TIMEZONE,
    QUOTE_SQL_IDENTIFIERS,
)
from sluiceway.connectors.jdbc.debezium.events import Events, FieldFilter
from sluiceway.connectors.jdbc.sink import config as own
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.connectors.jdbc.sink.task import JdbcSinkTask
from sluiceway.connectors.jdbc.url import CONNECTION_URL
from sluiceway.connectors.null_values import REPLACE_NULLS, replace_nulls
from sluiceway.errors import ConfigError

USERNAME = "connection.username"
COLLECTION_NAME_FORMAT = "collection.name.format"
PRIMARY_KEY_MODE = "primary.key.mode"
PRIMARY_KEY_FIELDS = "primary.key.fields"
SCHEMA_EVOLUTION = "schema.evolution"
QUOTE_IDENTIFIERS = "quote.identifiers"
USE_TIME_ZONE = "use.time.zone"
DATABASE_TIME_ZONE = "database.time_zone"
FLUSH_MAX_RETRIES = "flush.max.retries"
FLUSH_RETRY_DELAY_MS = "flush.retry.delay.ms"
TRUNCATE_ENABLED = "truncate.enabled"
FIELD_INCLUDE_LIST = "field.include.list"
FIELD_EXCLUDE_LIST = "field.exclude.list"

_SAME = (
    CONNECTION_URL,
    CONNECTION_PASSWORD,
    own.INSERT_MODE,
    own.DELETE_ENABLED,
    own.EXACTLY_ONCE,
    own.OFFSETS_TABLE,
    UNREACHABLE_MS,
)
_RENAMED = {
    CONNECTION_USER: USERNAME,
    own.PK_MODE: PRIMARY_KEY_MODE,
    own.PK_FIELDS: PRIMARY_KEY_FIELDS,
    own.BATCH_SIZE: own.BATCH_SIZE,
    own.MAX_RETRIES: FLUSH_MAX_RETRIES,
    own.RETRY_BACKOFF_MS: FLUSH_RETRY_DELAY_MS,
}


def _no_truncation(name: str, value: object) -> None:
    if value:
        raise ConfigError(name, value, "truncations are not supported; leave it false, and they are dropped")


def _only(default: str) -> Check:
    """Return the validator of a key whose default, by any of its names, is the only value."""

    def check(name: str, value: object) -> None:
        if value is not None and value != default and value not in _FORMER_NAMES.get(default, ()):
            raise ConfigError(name, value, f"only {default} is supported; leave it out, or use Debezium's Java class")

    return Check(check, default)


_text = functools.partial(ConfigKey, type=Type.STRING, importance=Importance.MEDIUM)
_unread = functools.partial(ConfigKey, importance=Importance.LOW, group="Without effect")
_NO_EFFECT = "Accepted, but without effect here."
_COLLECTIONS = "io.debezium.sink.naming.DefaultCollectionNamingStrategy"
_FORMER_NAMES = {
    _COLLECTIONS: (
        "io.debezium.connector.jdbc.naming.DefaultCollectionNamingStrategy",
        "io.debezium.connector.jdbc.naming.DefaultTableNamingStrategy",
    )
}
"""Names that classes have in older documentation and configs."""
_COLUMNS = "io.debezium.connector.jdbc.naming.DefaultColumnNamingStrategy"
_DEFAULTS = {
    "collection.naming.strategy": (_COLLECTIONS, "The class that names tables."),
    "table.naming.strategy": (_COLLECTIONS, "The former name of collection.naming.strategy."),
    "column.naming.strategy": (_COLUMNS, "The class that names columns."),
    "collection.table.format": ("${table}", "The form of the tables' names after collection.name.format."),
    "cloud.events.schema.name.pattern": (r".*CloudEvents\.Envelope$", "The schemas of records that are CloudEvents."),
}
"""Keys whose default is the only value, with it and their documentation."""

_UNREAD = (
    _unread(name="connection.provider", type=Type.STRING, default=None, doc=f"Hibernate's class for connections. {_NO_EFFECT}"),
    _unread(
        name="use.reduction.buffer",
        type=Type.BOOLEAN,
        default=False,
        doc=f"Whether only the last change of a key in a batch is written. {_NO_EFFECT}",
    ),
    _unread(name="connection.pool.min_size", type=Type.INT, default=5, doc=f"The least connections. {_NO_EFFECT}"),
    _unread(name="connection.pool.max_size", type=Type.INT, default=32, doc=f"The most connections. {_NO_EFFECT}"),
    _unread(name="connection.pool.acquire_increment", type=Type.INT, default=32, doc=f"Connections opened at once. {_NO_EFFECT}"),
    _unread(name="connection.pool.timeout", type=Type.LONG, default=1800, doc=f"Seconds of an idle connection. {_NO_EFFECT}"),
    _unread(
        name="connection.restart.on.errors",
        type=Type.BOOLEAN,
        default=False,
        doc=f"Whether a lost connection is opened again, as it is in any case. {_NO_EFFECT}",
    ),
    _unread(
        name="dialect.postgres.postgis.schema", type=Type.STRING, default="public", doc=f"The schema of PostGIS. {_NO_EFFECT}"
    ),
    _unread(
        name="dialect.sqlserver.identity.insert",
        type=Type.BOOLEAN,
        default=False,
        doc=f"Whether identity columns of SQL Server are written. {_NO_EFFECT}",
    ),
)
_list = functools.partial(ConfigKey, type=Type.LIST, default=[], importance=Importance.LOW)

DEBEZIUM = ConfigDef([CONNECTION[CONNECTION_URL], CONNECTION[CONNECTION_PASSWORD]]).define(
    *[
        _text(name=USERNAME, default=None, importance=Importance.HIGH, group="Database", doc="The database user."),
        own.SINK[own.INSERT_MODE],
        own.SINK[own.DELETE_ENABLED],
        ConfigKey(
            name=TRUNCATE_ENABLED,
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.LOW,
            validator=Check(_no_truncation, "false"),
            doc="Must be false: truncations are dropped.",
        ),
        _text(
            name=PRIMARY_KEY_MODE,
            default="none",
            importance=Importance.HIGH,
            validator=EnumText(*(mode.value for mode in own.PkMode)),
            doc="The source of the primary key's columns; pk.mode of JdbcSink.",
        ),
        _list(name=PRIMARY_KEY_FIELDS, importance=Importance.MEDIUM, doc="The primary key's columns; pk.fields of JdbcSink."),
        ConfigKey(
            name=QUOTE_IDENTIFIERS,
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.LOW,
            doc="Whether table and column names are quoted; if not, their case is left to the database.",
        ),
        _text(
            name=SCHEMA_EVOLUTION,
            default="none",
            validator=EnumText("none", "basic"),
            doc="basic: missing tables are created and missing columns added. none: they are errors.",
        ),
        _text(
            name=COLLECTION_NAME_FORMAT,
            default=None,
            doc="The table for records. ${topic} stands for the record's topic with underscores for its dots, "
            "${source.name} for a field of a change event's source. Default is ${topic}.",
        ),
        _text(
            name=own.TABLE_NAME_FORMAT, default=None, importance=Importance.LOW, doc="The former name of collection.name.format."
        ),
        _text(
            name=USE_TIME_ZONE,
            default=None,
            importance=Importance.LOW,
            doc="The time zone for timestamps in columns without one; default is UTC.",
        ),
        replace_nulls(default=False),
        _text(name=DATABASE_TIME_ZONE, default=None, importance=Importance.LOW, doc="The former name of use.time.zone."),
        ConfigKey(
            name=own.BATCH_SIZE,
            type=Type.INT,
            default=500,
            validator=Range(1),
            importance=Importance.LOW,
            doc="The maximum number of records that are written together.",
        ),
        ConfigKey(
            name=FLUSH_MAX_RETRIES,
            type=Type.INT,
            default=5,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="How often a batch that the database rolled back is retried; max.retries of JdbcSink.",
        ),
        ConfigKey(
            name=FLUSH_RETRY_DELAY_MS,
            type=Type.LONG,
            default=1000,
            validator=Range(0),
            importance=Importance.LOW,
            doc="Milliseconds between two attempts to write a batch.",
        ),
        _list(name=FIELD_INCLUDE_LIST, doc="The fields to write, as field or topic:field; all if empty."),
        _list(name=FIELD_EXCLUDE_LIST, doc="The fields of values to leave out, as field or topic:field."),
        *(own.SINK[name] for name in (own.EXACTLY_ONCE, own.OFFSETS_TABLE, UNREACHABLE_MS)),
        *(
            _text(
                name=name,
                default=default,
                importance=Importance.LOW,
                validator=_only(default),
                doc=f"{doc} Only the default.",
            )
            for name, (default, doc) in _DEFAULTS.items()
        ),
        *_UNREAD,
    ]
)


def translate(config: Mapping[str, str]) -> dict[str, str]:
    """Return the config of JdbcSink for a config of Debezium's sink; other keys stay unchanged. Raises ConfigError."""
    values = DEBEZIUM.parse(config)
    if values[FIELD_INCLUDE_LIST] and values[FIELD_EXCLUDE_LIST]:
        raise ConfigError(FIELD_EXCLUDE_LIST, config[FIELD_EXCLUDE_LIST], f"cannot be combined with {FIELD_INCLUDE_LIST}")

    def text(name: str) -> str:
        value = values[name]
        return ",".join(value) if isinstance(value, list) else str(value)

    translated = {key: value for key, value in config.items() if key not in own.SINK or key in _SAME}
    translated |= {key: text(theirs) for key, theirs in _RENAMED.items() if values[theirs] is not None}
    translated[DB_TIMEZONE] = str(values[USE_TIME_ZONE] or values[DATABASE_TIME_ZONE] or "UTC")
    translated[QUOTE_SQL_IDENTIFIERS] = "always" if values[QUOTE_IDENTIFIERS] else "never"
    translated[own.AUTO_CREATE] = translated[own.AUTO_EVOLVE] = "true" if text(SCHEMA_EVOLUTION).lower() == "basic" else "false"
    translated[REPLACE_NULLS] = "true" if values[REPLACE_NULLS] else "false"
    translated[COLLECTION_NAME_FORMAT] = str(
        values[COLLECTION_NAME_FORMAT] or values[own.TABLE_NAME_FORMAT] or own.TOPIC_PLACEHOLDER
    )
    return translated


class DebeziumJdbcSinkTask(JdbcSinkTask):
    """The JDBC sink's task for records that may be change events."""

    takes_columns = False

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self._events = _events(config, deletes=self._options.delete_enabled)

    def prepared(self, records: Sequence[SinkRecord]) -> Sequence[SinkRecord]:
        return list(self._events.records(records))


def _events(config: Mapping[str, str], *, deletes: bool) -> Events:
    """Return the converter of change events for a config that ``translate`` has returned."""
    values = DEBEZIUM.parse(config)
    fields = FieldFilter(_names(values[FIELD_INCLUDE_LIST]), _names(values[FIELD_EXCLUDE_LIST]))
    return Events(str(values[COLLECTION_NAME_FORMAT]), fields, deletes=deletes)


def _names(value: ConfigValue) -> frozenset[str]:
    return frozenset(value if isinstance(value, list) else ())


class DebeziumJdbcSinkConnector(JdbcSinkConnector):
    """JdbcSink for configs of Debezium's JDBC sink: accepts its keys, and change events as well as flat records. Writes rows,
    changes tables and stores offsets like JdbcSink.
    """

    replaces_rows = False  # the column would be a field of the envelope
    task_class = DebeziumJdbcSinkTask
    java_class = "io.debezium.connector.jdbc.JdbcSinkConnector"
    java_task_class = "io.debezium.connector.jdbc.JdbcSinkConnectorTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return DEBEZIUM

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return cls._translated(config, JdbcSinkConnector.validate)

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return cls._translated(config, JdbcSinkConnector.check)

    @classmethod
    def _translated(
        cls, config: Mapping[str, str], validate: Callable[[Mapping[str, str]], dict[str, ValidatedValue]]
    ) -> dict[str, ValidatedValue]:
        """Validate Debezium's keys, then JdbcSink's, and return the errors at Debezium's keys."""
        found = DEBEZIUM.validate(config)
        if any(each.errors for each in found.values()):
            return found
        try:
            checked = validate(translate(config))
        except ConfigError as error:
            found[FIELD_EXCLUDE_LIST].errors.append(str(error))
            return found
        theirs = {**_RENAMED, DB_TIMEZONE: USE_TIME_ZONE, QUOTE_SQL_IDENTIFIERS: QUOTE_IDENTIFIERS}
        for name, value in checked.items():
            if value.errors:
                found[theirs.get(name, name)].errors += [_with_own_keys(message) for message in value.errors]
        return found

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str]:
        translated = translate(config)
        events = _events(translated, deletes=own.SinkOptions.of(translated).delete_enabled)
        return super().preview(translated, list(events.records(records)))

    def start(self, config: Mapping[str, str]) -> None:
        super().start(translate(config))

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        return super().alter_offsets(translate(config), offsets)


def _with_own_keys(message: str) -> str:
    """Return an error of JdbcSink with Debezium's names of keys."""
    for name, theirs in _RENAMED.items():
        message = message.replace(name, theirs)
    return message
